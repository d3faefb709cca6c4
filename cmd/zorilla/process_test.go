package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs"
	"zorilla/node/api"
)

// zorilla is the command as a process of its own.
func zorilla(t *testing.T, state string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(stop)
	program, err := exec.LookPath("zorilla") // put there by TestMain
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "ZORILLA_CONFIG=none", "ZORILLA_STATE="+state, "TMPDIR="+t.TempDir())
	cmd.Stderr = os.Stderr
	return cmd
}

// start starts the command and returns its two outputs.
func start(t *testing.T, cmd *exec.Cmd) (stdout, stderr *bufio.Reader) {
	t.Helper()
	cmd.Stderr = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(out), bufio.NewReader(errs)
}

// expect reads lines until one contains the text.
func expect(t *testing.T, r *bufio.Reader, text string) string {
	t.Helper()
	var before strings.Builder
	for {
		line, err := r.ReadString('\n')
		if strings.Contains(line, text) {
			return line
		}
		before.WriteString(line)
		if err != nil {
			t.Fatalf("no line with %q but %q, %v", text, &before, err)
		}
	}
}

func ends(t *testing.T, cmd *exec.Cmd, code int) {
	t.Helper()
	err := cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("%v ended with %d (%v), want %d", cmd.Args, got, err, code)
	}
}

func startNodeHere(t *testing.T) (state string, f *fakeNode, stop func()) {
	t.Helper()
	state = t.TempDir()
	f = newFakeNode(state)
	stop, err := serve(f, state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return state, f, stop
}

func TestInterruptsOfARealProcess(t *testing.T) {
	state, f, _ := startNodeHere(t)
	cmd := zorilla(t, state, "run", "sh", "-c", "echo up; exec sleep 1000")
	stdout, stderr := start(t, cmd)
	expect(t, stdout, "up")
	for _, answer := range []string{"Ctrl-C again", "cancelling"} {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		expect(t, stderr, answer)
	}
	ends(t, cmd, 130)
	if st, err := f.Job(t.Context(), "last"); err != nil || st.State != jobs.Cancelled {
		t.Errorf("job is %s, %v", st.State, err)
	}
}

// A terminal that is closed does not matter to what nohup started.
func TestNohup(t *testing.T) {
	state, f, _ := startNodeHere(t)
	cmd := zorilla(t, state, "run", "sh", "-c", "echo up; exec sleep 1000")
	cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	stdout, stderr := start(t, cmd)
	expect(t, stdout, "up")
	for _, sig := range []os.Signal{syscall.SIGHUP, os.Interrupt} {
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, stderr, "Ctrl-C again")
	if err := f.Cancel(t.Context(), "last", false); err != nil {
		t.Fatal(err)
	}
	ends(t, cmd, 130)
}

func TestDetach(t *testing.T) {
	state, f, _ := startNodeHere(t)
	cmd := zorilla(t, state, "run", "sh", "-c", "echo up; exec sleep 1000")
	stdout, stderr := start(t, cmd)
	expect(t, stdout, "up")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	expect(t, stderr, "detached from job")
	ends(t, cmd, 143)
	if st, err := f.Job(t.Context(), "last"); err != nil || st.State != jobs.Running {
		t.Errorf("job is %s, %v", st.State, err)
	}
	if err := f.Cancel(t.Context(), "last", false); err != nil {
		t.Fatal(err)
	}
}

func TestTheNodeGoesAway(t *testing.T) {
	state, f, stop := startNodeHere(t)
	cmd := zorilla(t, state, "run", "sh", "-c", "echo up; exec sleep 1000")
	stdout, stderr := start(t, cmd)
	expect(t, stdout, "up")
	stop()
	line := expect(t, stderr, "lost sight of job")
	if !strings.Contains(line, "for its node to come back") {
		t.Errorf("it does not say that it waits: %q", line)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if line := expect(t, stderr, "'zorilla attach "); !strings.Contains(line, "comes back") {
		t.Errorf("no way back in %q", line)
	}
	ends(t, cmd, 143)
	if err := f.Cancel(t.Context(), "last", false); err != nil {
		t.Fatal(err)
	}
}

// A process in the background of a terminal that reads from it is stopped
// by the system, unless it takes care.
func TestRunInTheBackgroundOfATerminal(t *testing.T) {
	state, _, _ := startNodeHere(t)
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	if err := unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()

	cmd := zorilla(t, state, "run", "sh", "-c", "echo up")
	cmd.Args = append([]string{"sh", "-m", "-c", `"$@" & wait $!`, "sh"}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
	cmd.Path = "/bin/sh"
	cmd.Stdin = tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	stdout, _ := start(t, cmd)
	expect(t, stdout, "up")
	ends(t, cmd, 0)
}

func TestDevNetworkStops(t *testing.T) {
	for name, stop := range map[string]syscall.Signal{"interrupted": syscall.SIGINT, "terminated": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			cmd := zorilla(t, "", "dev", "-n", "2")
			stdout, _ := start(t, cmd)
			line := expect(t, stdout, "export ZORILLA_STATE=")
			_, state, _ := strings.Cut(strings.TrimSpace(line), "=")
			expect(t, stdout, "page   http://127.0.0.1:")
			var gone []<-chan struct{}
			for _, s := range []string{state, filepath.Join(filepath.Dir(state), "2")} {
				c, err := api.Dial(socketOf(s))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				gone = append(gone, c.Changes()) // also closed when the node is gone
			}
			if err := cmd.Process.Signal(stop); err != nil {
				t.Fatal(err)
			}
			for _, g := range gone {
				<-g
			}
			if _, err := io.Copy(io.Discard, stdout); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // checked by what it leaves
			if _, err := os.Stat(filepath.Dir(state)); stop != syscall.SIGKILL && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("its state is left: %v", err)
			}
			if code := cmd.ProcessState.ExitCode(); stop != syscall.SIGKILL && code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}
