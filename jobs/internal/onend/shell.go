package onend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"zorilla/internal/sanitize"
	"zorilla/internal/units"
	"zorilla/jobs"
)

// Limit is how long a command may take.
const Limit = time.Minute

// words is how many lines are told of what a command printed that failed.
const words = 5

// Call is one command that is to be run.
type Call struct {
	Command string
	Env     []string // beside that of the node
	Input   []byte   // its standard input
}

// Runner runs a command and waits for it, for Limit at most. If ctx ends before, so does the
// command, and how it ended tells nothing.
type Runner func(ctx context.Context, c Call) jobs.OnEnd

// Shell is the Runner that has /bin/sh run the command, as the user of this process, in that
// user's home directory.
func Shell(ctx context.Context, c Call) jobs.OnEnd { return shell(ctx, Limit, c) }

func shell(ctx context.Context, limit time.Duration, c Call) jobs.OnEnd {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	said := &Tail{}
	cmd := exec.CommandContext(bounded, "/bin/sh", "-c", c.Command)
	cmd.Dir, cmd.Env = home(), append(jobs.Foreign(os.Environ()), c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.Input), said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // what it left behind may hold its output open
	err := cmd.Run()
	end := jobs.OnEnd{At: time.Now()}
	var exit *exec.ExitError
	switch {
	case errors.Is(bounded.Err(), context.DeadlineExceeded):
		end.Code, end.Text = jobs.CodeTimeout, fmt.Sprintf("it was killed after %s", units.Span(limit))
	case cmd.ProcessState == nil:
		end.Code, end.Text = 127, sanitize.OneLine(err.Error())
	case errors.As(err, &exit) && exit.ExitCode() < 0:
		end.Code, end.Text = 128+int(exit.Sys().(syscall.WaitStatus).Signal()), lastWords(said)
	default: // that it did not read all of its input, or left its output open, is its own business
		end.Code, end.Text = cmd.ProcessState.ExitCode(), lastWords(said)
	}
	if end.Code == 0 {
		end.Text = ""
	}
	return end
}

// home is where commands run: what of it is there.
func home() string {
	if dir, err := os.UserHomeDir(); err == nil && filepath.IsAbs(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return "/"
}

// lastWords returns the last lines of what a command printed, in one.
func lastWords(t *Tail) string {
	all := strings.Split(string(t.Lines()), "\n")
	return sanitize.OneLine(strings.Join(all[max(0, len(all)-words):], "; "))
}
