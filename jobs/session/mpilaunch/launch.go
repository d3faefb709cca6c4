// Package mpilaunch runs programs that bring a launcher of their own, such as mpirun: in the
// first rank of a job it runs the user's command, with all that launchers look for; the other
// ranks hold their slots until that has ended.
package mpilaunch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/mpi"
	"zorilla/jobs/session"
	"zorilla/jobs/session/client"
	"zorilla/jobs/session/workerapi"
)

// What is run in place of a command.
const (
	Hold    = "--hold"    // nothing, in no rank, until Release
	Within  = "--within"  // the command that follows, beside a rank 0 that holds
	Release = "--release" // beside that: the end of all ranks
	Prepare = "--prepare" // what Libraries is to have, where a launcher starts something
)

const (
	// overFile, in the TMPDIR of a rank, says that it is not needed any more.
	overFile = ".zorilla-over"
	// Work leads to the work directory of the job's first rank at a host: launchers want
	// to begin everywhere at the path at which they began.
	Work = "/tmp/zorilla-work"
	// Libraries has, at each host, what helps the ranks of MPICH (jobs/mpi): Finish, last.
	Libraries = "/tmp/zorilla-mpi"
	Finish    = Libraries + "/libzfinish.so"
	// Variable is set where a launcher runs.
	Variable = "ZORILLA_LAUNCHER"
	// atOnce is how many ranks are told so at a time.
	atOnce = 16
)

// Run is all that a rank does; agent is the path of a remote shell. It returns the exit code,
// or why there is none.
func Run(agent string, args []string) (code int, err error) {
	rank, err1 := strconv.Atoi(os.Getenv("ZORILLA_RANK"))
	size, err2 := strconv.Atoi(os.Getenv("ZORILLA_SIZE"))
	tmp, hosts := os.Getenv("TMPDIR"), os.Getenv("ZORILLA_HOSTFILE")
	if err1 != nil || err2 != nil || tmp == "" || hosts == "" {
		return 0, errors.New("this is not a rank of a job")
	}
	if args[0] == Release {
		release(size)
		return 0, os.WriteFile(filepath.Join(tmp, overFile), nil, 0o644)
	}
	libraries := prepare(Libraries)
	switch {
	case args[0] == Prepare:
		return 0, nil
	case rank != 0 || args[0] == Hold:
		return 0, wait(tmp)
	case args[0] == Within && len(args) > 1:
		return command(agent, tmp, hosts, libraries, args[1:])
	}
	if code, err = command(agent, tmp, hosts, libraries, args); err == nil && code == 0 {
		release(size)
	}
	return code, err
}

// prepare has what programs load be in a directory, which all ranks of a job at a host share.
// Where it cannot they do without: not all of them need it.
func prepare(dir string) mpi.Libraries {
	if os.MkdirAll(dir, 0o755) != nil {
		return mpi.Libraries{}
	}
	l, err := mpi.Install(dir)
	if err != nil {
		return mpi.Libraries{}
	}
	return l
}

// wait returns when a rank is not needed any more.
func wait(tmp string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err == nil {
		_, err = unix.InotifyAddWatch(fd, tmp, unix.IN_CREATE|unix.IN_MOVED_TO)
	}
	buf := make([]byte, 4096)
	for err == nil || err == unix.EINTR {
		if _, missing := os.Lstat(filepath.Join(tmp, overFile)); missing == nil {
			return nil
		}
		_, err = unix.Read(fd, buf)
	}
	return fmt.Errorf("wait for the end: %w", err)
}

// release tells the other ranks that they are not needed any more, until each knows or has ended:
// the job does not end before them.
func release(size int) {
	var all sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for rank := 1; rank < size; rank++ {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			for pause := firstPause; ; pause = min(2*pause, longestPause) {
				exit, err := endRank(rank)
				if err == nil && exit.Code == 0 || gone(err) {
					return
				}
				time.Sleep(pause) // its node may just be started again
			}
		})
	}
	all.Wait()
}

// Between two tries to tell a rank.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

func endRank(rank int) (session.Exit, error) {
	s := client.Session{
		Start:  session.Start{Args: []string{"/bin/sh", "-c", ": >$TMPDIR/" + overFile}},
		Stdout: io.Discard, Stderr: io.Discard,
		Open: func(ctx context.Context, in io.Reader, out io.Writer) error {
			return workerapi.Enter(ctx, os.Getenv(workerapi.Variable), workerapi.Ask{Rank: rank}, in, out)
		},
	}
	return s.Run(context.Background())
}

// gone reports whether an error says that a rank has ended for good, or its job: of what nodes
// say there are only the words.
func gone(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.HasSuffix(text, " is ended") || strings.HasSuffix(text, " is stopped") ||
		strings.Contains(text, " has ended (") || strings.Contains(text, "not found")
}

// command runs the user's command to its end.
func command(agent, tmp, hosts string, libraries mpi.Libraries, args []string) (int, error) {
	env, err := Environment(agent, tmp, hosts, libraries)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(args[0], args[1:]...)
	if text := mismatch(args); text != "" {
		fmt.Fprintln(os.Stderr, "zorilla: warning: "+text)
	}
	if err := os.Symlink(os.Getenv("HOME"), Work); err == nil || errors.Is(err, os.ErrExist) {
		cmd.Dir = Work
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), append(unset(env), Variable+"=1", "PWD="+Work)...)
	// Signals of the job go to all processes of the rank, and the command is to end first. They
	// are not ignored, since it would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	if err := cmd.Start(); errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return 127, err
	} else if err != nil {
		return 126, err
	}
	err = cmd.Wait()
	signal.Reset(syscall.SIGTERM) // nothing is left to wait for
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// unset returns those variables that have no value yet: what the user says goes before ours.
func unset(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		_, own := os.LookupEnv(name)
		return own
	})
}

// Environment is what launchers look for: Open MPI's mpirun (4 and 5), hydra's mpiexec and GNU
// parallel; and what the ranks find that these start, who get their launcher's variables. It
// writes the files that it names to a directory. Libraries are the same at all hosts.
func Environment(agent, dir, hostFile string, libraries mpi.Libraries) ([]string, error) {
	b, err := os.ReadFile(hostFile)
	if err != nil {
		return nil, err
	}
	var hydra, parallel strings.Builder
	var addrs []string
	most := 0 // slots of a host
	for line := range strings.Lines(string(b)) {
		addr, slots, found := strings.Cut(strings.TrimSpace(line), " slots=")
		if !found {
			return nil, fmt.Errorf("%s: %q: want ADDRESS slots=N", hostFile, line)
		}
		addrs = append(addrs, addr)
		n, _ := strconv.Atoi(slots) // what is none is the launcher's to refuse
		most = max(most, n)
		fmt.Fprintf(&hydra, "%s:%s\n", addr, slots)
		fmt.Fprintf(&parallel, "%s/%s\n", slots, addr)
	}
	hydraFile, parallelFile := filepath.Join(dir, "hosts-hydra"), filepath.Join(dir, "hosts-parallel")
	if err := errors.Join(os.WriteFile(hydraFile, []byte(hydra.String()), 0o644), os.WriteFile(parallelFile, []byte(parallel.String()), 0o644)); err != nil {
		return nil, err
	}
	env := []string{
		"OMPI_MCA_plm_rsh_agent=" + agent, "PRTE_MCA_plm_ssh_agent=" + agent,
		"OMPI_MCA_orte_default_hostfile=" + hostFile, "PRTE_MCA_prte_default_hostfile=" + hostFile,
		"OMPI_MCA_osc=^ucx", // see jobs/mpi
		// Each node binds by itself, also where several are on one machine.
		"OMPI_MCA_hwloc_base_binding_policy=none", "PRTE_MCA_hwloc_default_binding_policy=none",
		"HYDRA_LAUNCHER=ssh", "HYDRA_LAUNCHER_EXEC=" + agent, "HYDRA_HOST_FILE=" + hydraFile,
		"PARALLEL_SSH=" + agent, "ZORILLA_LOGINFILE=" + parallelFile,
	}
	if os.Geteuid() == 0 {
		env = append(env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	}
	env = append(env, remedies(len(addrs), most, libraries)...)
	if name := interfaceOf(addrs); name != "" { // the machine's name may mean nothing to others
		env = append(env, "HYDRA_IFACE="+name)
	}
	return env, nil
}

// remedies are what the ranks of jobs with --mpi find too: those that wait for a message, which
// comes over the network, or from one that has no processor, let others go on; and those of MPICH
// end. Launchers take the slots for processors, and say nothing of the kind.
func remedies(hosts, slots int, l mpi.Libraries) (env []string) {
	if hosts < 2 && slots <= runtime.NumCPU() {
		return nil
	}
	env = append(env, "OMPI_MCA_mpi_yield_when_idle=1")
	if l.Finish == "" {
		return env
	}
	env = append(env, "LD_PRELOAD="+l.Finish, "ZORILLA_MPI_YIELD=1")
	if hosts > 1 {
		env = append(env, "ZORILLA_MPI_FINISH=1")
	}
	return env
}

// interfaceOf returns the interface that has the first of some addresses that is this machine's.
func interfaceOf(addrs []string) string {
	all, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, addr := range addrs {
		ip := net.ParseIP(addr)
		for _, i := range all {
			own, _ := i.Addrs() // one that has gone has none
			for _, a := range own {
				if n, ok := a.(*net.IPNet); ok && (n.IP.Equal(ip) || ip.IsLoopback() && n.IP.IsLoopback() && n.Contains(ip)) {
					return i.Name
				}
			}
		}
	}
	return ""
}
