// Command hosts is a lab: it emulates a network of several sites on one Linux
// machine and runs a script in it. Every host is a network namespace with a
// cable to the bridge of its site; what passes between sites is delayed by a
// router in this process, so programs run unchanged and see real sockets, local
// broadcasts and the round trips of a plan.
//
//	go run ./testnet/hosts grid5000                    # a shell in it
//	go run ./testnet/hosts grid5000 -- sh script.sh    # ends with its exit code
//
// It builds zorilla first. The script finds it and the command "lab" in its
// path:
//
//	lab host nancy-1 zorilla node &                          # a network of one node,
//	lab host nancy-2 zorilla node &                          # found by the other one,
//	lab host sophia-1 zorilla node --join 10.0.1.1:5444 &    # and from another site by address
//	lab host nancy-2 zorilla run -n 3 hostname
//	lab cut site sophia
//	lab heal
//
// "lab help" lists all of it. Each host has its own host name and its own state
// directory, $ZORILLA_LAB/NAME; all have the same secret. Everything is inside
// namespaces of the lab, its files on a file system in memory there: when the
// lab ends the kernel removes all of it, also after kill -9.
//
// It needs Linux, iproute2 and /dev/net/tun, and either root or the right to
// make user namespaces and to open that device.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/testnet/hosts/lab"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	if dir := os.Getenv(lab.Variable); dir != "" {
		return inScript(dir, args)
	}
	flags := flag.NewFlagSet("hosts", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "go run ./testnet/hosts [-zorilla PROGRAM] NETWORK [-- SCRIPT [ARGUMENT...]]\n\n"+
			"Builds the NETWORK, %s, and runs SCRIPT, or a shell, in it.\n\n%s", lab.Plans, controlUsage)
	}
	zorilla := flags.String("zorilla", "", "use this `PROGRAM` instead of building ./cmd/zorilla")
	if err := flags.Parse(args); err != nil {
		return 2, nil // it has printed why
	}
	if flags.NArg() == 0 || flags.NArg() > 1 && flags.Arg(1) != "--" {
		flags.Usage()
		return 2, nil
	}
	plan, err := lab.PlanOf(flags.Arg(0))
	if err != nil {
		return 2, err
	}
	script := flags.Args()[min(2, flags.NArg()):]
	stage := os.Getenv(stageVariable)
	if err := os.Unsetenv(stageVariable); err != nil {
		return 1, err
	}
	switch stage {
	case stageInit:
		return serveAsInit(args)
	case stageWork:
		return work(plan, *zorilla, script)
	}
	return isolate(args)
}

// work builds everything inside the lab's namespaces and runs the script.
func work(plan *lab.Plan, zorilla string, script []string) (int, error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := furnish(ctx, zorilla); err != nil {
		return 1, err
	}
	// Ordinary users often do not have ip and tc in their path.
	if err := os.Setenv("PATH", filepath.Join(labDir, "bin")+":"+os.Getenv("PATH")+":/usr/sbin:/sbin"); err != nil {
		return 1, err
	}
	n, err := buildNetwork(labDir, plan)
	if err != nil {
		return 1, err
	}
	l, err := net.Listen("unix", lab.ControlSocket(labDir))
	if err != nil {
		return 1, err
	}
	defer l.Close()
	c := &control{net: n, cut: make([]bool, len(n.hosts))}
	go c.serve(l)
	if len(script) == 0 {
		script = []string{"sh"}
		if shell := os.Getenv("SHELL"); shell != "" {
			script = []string{shell}
		}
		fmt.Print(c.show(), "\n", controlUsage)
	}
	cmd := exec.CommandContext(ctx, script[0], script[1:]...)
	cmd.Env = append(os.Environ(), lab.Variable+"="+labDir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	err = lab.On(labDir, lab.Fabric, cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	return exitCode(err)
}

// furnish fills the lab's directory with programs and the hosts' secret.
func furnish(ctx context.Context, zorilla string) error {
	bin := filepath.Join(labDir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(labDir, "secret"), []byte(rand.Text()), 0o600); err != nil {
		return err
	}
	if err := lab.Copy("/proc/self/exe", filepath.Join(bin, "lab"), 0o755); err != nil {
		return err
	}
	if zorilla != "" {
		return lab.Copy(zorilla, filepath.Join(bin, "zorilla"), 0o755)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(bin, "zorilla"), "./cmd/zorilla")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build zorilla: %w: start me in the root of the repository, or give me the program with -zorilla", err)
	}
	return nil
}

// inScript is what "lab" does in a script.
func inScript(dir string, args []string) (int, error) {
	switch {
	case len(args) == 0 || args[0] == "help":
		fmt.Print(controlUsage)
		return 0, nil
	case args[0] == "host":
		if len(args) < 3 {
			return 2, fmt.Errorf("want lab host HOST COMMAND [ARGUMENT...]")
		}
		return 125, onHost(dir, args[1], args[2:])
	}
	text, err := lab.Request(dir, args)
	fmt.Print(text)
	if err != nil {
		return 1, err
	}
	return 0, nil
}

// onHost becomes a command on a host; it returns only if that fails.
func onHost(dir, host string, command []string) error {
	if strings.ContainsRune(host, '/') {
		return fmt.Errorf("host %.40q: there is no such host: 'lab show' lists them", host)
	}
	runtime.LockOSThread()
	if err := lab.EnterNetns(dir, host); err != nil {
		if os.IsNotExist(err) {
			return fmt.Errorf("host %.40q: there is no such host: 'lab show' lists them", host)
		}
		return fmt.Errorf("host %s: %w", host, err)
	}
	if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
		return fmt.Errorf("host %s: %w", host, err)
	}
	if err := unix.Sethostname([]byte(host)); err != nil {
		return fmt.Errorf("host %s: %w", host, err)
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	env := append(os.Environ(), "ZORILLA_CONFIG=none", "ZORILLA_STATE="+filepath.Join(dir, host), "ZORILLA_SECRET_FILE="+filepath.Join(dir, "secret"))
	if i := strings.LastIndexByte(host, '-'); i > 0 {
		env = append(env, "ZORILLA_SITE="+host[:i])
	}
	return syscall.Exec(path, command, env)
}
