package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// Variable holds the lab's directory in the environment of its script.
	Variable = "ZORILLA_LAB"
	// censusVariable names the file in which a script writes down the namespace of
	// its lab's processes. Nothing else can hold the lab's other namespaces, but mounts.
	censusVariable = "ZORILLA_CENSUS"
	// programsVariable names the folder with the programs that were built.
	programsVariable = "ZORILLA_PROGRAMS"
	// foundVariable names the file in which a script leaves what it has found.
	foundVariable = "ZORILLA_FOUND"
)

// Inside reports whether this program is the script of a lab.
func Inside() bool { return os.Getenv(Variable) != "" }

// Enter is the first thing that a script does. It returns the lab's directory, in
// which there is a folder "bin" of programs, and "tmp".
func Enter() (dir string, err error) {
	dir = os.Getenv(Variable)
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o755); err != nil {
		return "", err
	}
	link, err := os.Readlink("/proc/self/ns/pid")
	if census := os.Getenv(censusVariable); census != "" && err == nil {
		err = os.WriteFile(census, []byte(link), 0o600)
	}
	return dir, err
}

// Programs is the folder in which a script finds what Build has built.
func Programs() string { return os.Getenv(programsVariable) }

// Tell is the last thing that a script does that is played by Ask.
func Tell(found any) error {
	b, err := json.Marshal(found)
	if err != nil {
		return err
	}
	return os.WriteFile(os.Getenv(foundVariable), b, 0o600)
}

// Stage is where labs of one plan are played, from outside.
type Stage struct {
	dir, plan string
	before    []string // links and mounts that the machine had before
}

// Build builds zorilla, the lab, and programs such as ./examples/async, in the root of the repository.
func Build(ctx context.Context, plan string, programs ...string) (*Stage, error) {
	before, err := surroundings()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "zorilla-lab-")
	if err != nil {
		return nil, err
	}
	s := &Stage{dir: dir, plan: plan, before: before}
	folders := map[string]string{"zorilla": "./cmd/zorilla", "lab": "./testnet/hosts"}
	for _, folder := range programs {
		folders[filepath.Base(folder)] = folder
	}
	for name, folder := range folders {
		build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(s.dir, name), folder)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return nil, errors.Join(fmt.Errorf("build %s: %w: start me in the root of the repository", folder, err), s.Close())
		}
	}
	return s, nil
}

// Close removes what was built.
func (s *Stage) Close() error { return os.RemoveAll(s.dir) }

// script is a lab with this program, and arguments, as its script.
func (s *Stage) script(ctx context.Context, args []string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.dir, "lab"),
		append([]string{"-zorilla", filepath.Join(s.dir, "zorilla"), s.plan, "--", self}, args...)...)
	cmd.Env = append(os.Environ(), censusVariable+"="+s.census(), programsVariable+"="+s.dir, foundVariable+"="+s.found())
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	// A lab ends with whoever plays in it; the caller's thread stands for that.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return cmd, nil
}

func (s *Stage) census() string { return filepath.Join(s.dir, "census") }

func (s *Stage) found() string { return filepath.Join(s.dir, "found") }

// Ask plays this program as Play does, and takes what it has found by Tell.
func (s *Stage) Ask(ctx context.Context, found any, args ...string) error {
	if err := s.Play(ctx, args...); err != nil {
		return err
	}
	return s.take(found)
}

func (s *Stage) take(found any) error {
	b, err := os.ReadFile(s.found())
	if err != nil {
		return fmt.Errorf("the script has told nothing: %w", err)
	}
	return errors.Join(json.Unmarshal(b, found), os.Remove(s.found()))
}

// Play plays this program, with arguments, as a script to its end, after which
// nothing may be left of the lab.
func (s *Stage) Play(ctx context.Context, args ...string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd, err := s.script(ctx, args)
	if err != nil {
		return err
	}
	cmd.Stdout = os.Stdout
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) { // it has told why
		err = fmt.Errorf("the script ended with %d", exit.ExitCode())
	}
	return errors.Join(err, s.deserted(ctx))
}

// Kill plays a script until it has printed a line, and kills the lab with -9.
// Something must be seen of it before, and nothing may be left after.
func (s *Stage) Kill(ctx context.Context, args ...string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd, err := s.script(ctx, args)
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return fmt.Errorf("the lab that was to be killed has ended before: %w", errors.Join(err, cmd.Wait()))
	}
	seen, err := s.leftovers()
	if err == nil && len(seen) == 0 {
		err = errors.New("nothing can be seen of a lab that runs")
	}
	err = errors.Join(err, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	return errors.Join(err, s.deserted(ctx))
}

// deserted waits until nothing is left, and returns what does not go.
func (s *Stage) deserted(ctx context.Context) error {
	_, err := Until(ctx, 10*time.Second, "nothing is left of the lab", func(context.Context) string {
		left, err := s.leftovers()
		if err != nil {
			return err.Error()
		}
		return strings.Join(left, "; ")
	})
	return err
}

// surroundings lists links and mounts that look like those of a lab: others may
// come and go.
func surroundings() (list []string, err error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, i := range interfaces {
		if strings.HasPrefix(i.Name, "site") || strings.HasPrefix(i.Name, "host") || strings.HasPrefix(i.Name, "port") {
			list = append(list, "link "+i.Name)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	for m := range strings.Lines(string(mounts)) {
		if strings.HasPrefix(m, "zorilla-lab ") || strings.HasPrefix(m, "nsfs ") {
			list = append(list, "mount "+strings.TrimSpace(m))
		}
	}
	return list, err
}

// leftovers returns processes of the lab, and links and mounts that were not there
// before.
func (s *Stage) leftovers() ([]string, error) {
	own, err := os.ReadFile(s.census())
	if err != nil {
		return nil, fmt.Errorf("the lab's script did not tell its namespace: %w", err)
	}
	left, err := surroundings()
	if err != nil {
		return nil, err
	}
	left = slices.DeleteFunc(left, func(x string) bool { return slices.Contains(s.before, x) })
	processes, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	for _, p := range processes {
		if link, err := os.Readlink(p); err == nil && link == string(own) { // an error: it has ended
			left = append(left, "process "+strings.Split(p, "/")[2])
		}
	}
	return left, err
}
