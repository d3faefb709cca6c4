// Package crew runs the ranks of a malleable job as plain processes of this machine, for the
// tests of programs: with the environment and the files that Zorilla gives them.
package crew

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"zorilla/internal/built"
)

// Crew is a job.
type Crew struct {
	t     *testing.T
	dir   string
	size  int
	epoch int
	args  []string
	door  *door // nil = nodes take no checkpoints
}

// New builds the program of the package in the current directory, and has it run with these
// arguments by so many ranks.
func New(t *testing.T, size int, args ...string) *Crew {
	t.Helper()
	c := &Crew{t: t, dir: t.TempDir(), size: size}
	program := filepath.Join(c.dir, "program")
	if err := built.Program(program, "."); err != nil {
		t.Fatal(err)
	}
	c.args = append([]string{program}, args...)
	c.change()
	return c
}

// change begins another epoch.
func (c *Crew) change() {
	c.epoch++
	for name, text := range map[string]string{"hosts": fmt.Sprintf("127.0.0.1 slots=%d\n", c.size), "epoch": fmt.Sprintln(c.epoch)} {
		if err := os.WriteFile(filepath.Join(c.dir, name+".new"), []byte(text), 0o600); err != nil {
			c.t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(c.dir, name+".new"), filepath.Join(c.dir, name)); err != nil {
			c.t.Fatal(err)
		}
	}
}

// Rank is one of its processes.
type Rank struct {
	t    *testing.T
	cmd  *exec.Cmd
	mu   sync.Mutex
	cond *sync.Cond
	said string
	done bool
	err  error
}

// Start starts an attempt of a rank, in a directory of its own; with the rank's newest
// checkpoint in it, if there is one.
func (c *Crew) Start(rank, attempt int) *Rank {
	c.t.Helper()
	r := &Rank{t: c.t, cmd: exec.Command(c.args[0], c.args[1:]...)}
	r.cond = sync.NewCond(&r.mu)
	r.cmd.Dir = filepath.Join(c.dir, fmt.Sprintf("%d-%d", rank, attempt))
	if err := os.Mkdir(r.cmd.Dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	r.cmd.Env = []string{
		"ZORILLA_JOB_ID=" + c.dir, fmt.Sprint("ZORILLA_RANK=", rank), fmt.Sprint("ZORILLA_ATTEMPT=", attempt),
		fmt.Sprint("ZORILLA_MAX=", c.size), fmt.Sprint("ZORILLA_SIZE=", c.size), "ZORILLA_SLOTS=1",
		"ZORILLA_HOSTFILE=" + c.dir + "/hosts", "ZORILLA_EPOCH_FILE=" + c.dir + "/epoch",
	}
	if c.door != nil {
		r.cmd.Env = append(r.cmd.Env, c.door.open(c.t, rank, r.cmd.Dir)...)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	r.cmd.Stderr = r.cmd.Stdout
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // with the test, however that ends
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the process ends with the thread that started it
		err := r.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			r.mu.Lock()
			r.said += lines.Text() + "\n"
			r.mu.Unlock()
			r.cond.Broadcast()
		}
		err = r.cmd.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.done, r.err = true, err
		r.cond.Broadcast()
	}()
	if err := <-started; err != nil {
		c.t.Fatal(err)
	}
	if attempt > 1 {
		c.change()
	}
	c.t.Cleanup(r.Kill)
	return r
}

// Dir is its work directory.
func (r *Rank) Dir() string { return r.cmd.Dir }

// Says waits until the rank has said something, and returns all that it has said. A rank
// that ends without is an error.
func (r *Rank) Says(text string) string {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !strings.Contains(r.said, text) {
		if r.done {
			r.t.Fatalf("it ended (%v) and did not say %q, but:\n%s", r.err, text, r.said)
		}
		r.cond.Wait()
	}
	return r.said
}

// Kill ends the rank by SIGKILL, and returns when it is gone.
func (r *Rank) Kill() {
	_ = r.cmd.Process.Kill()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.done {
		r.cond.Wait()
	}
}

// Ends waits until the rank has ended well, and returns all that it has said.
func (r *Rank) Ends() string {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.done {
		r.cond.Wait()
	}
	if r.err != nil {
		r.t.Errorf("it ended with %v:\n%s", r.err, r.said)
	}
	return r.said
}
