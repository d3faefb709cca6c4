// Package rerun runs a command of a worker again whenever it ends with the code that says that its state is whole,
// and is to be kept.
package rerun

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"zorilla/jobs"
)

// Variable has the number of the checkpoint with which a command begins.
const Variable = "ZORILLA_RESTART"

// Command is one that is run again. All fields must be set.
type Command struct {
	Args           []string // the program and its arguments
	Code           int      // with which it ends when its state is to be kept
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Keep makes a checkpoint, and returns its number.
	Keep func(ctx context.Context) (number int, err error)
}

// Run returns the code of the first run that ends with another one, 128 and its number if that was a signal. The
// processes of a worker get signals all at once, so this one takes them and goes on: after SIGTERM, SIGINT or SIGHUP
// there is no other run, and the code is 128 and the number of the signal. Errors say why the program cannot be run
// (exec.ErrNotFound and others of package exec), or are those of Keep.
func (c *Command) Run(ctx context.Context) (code int, err error) {
	signals := make(chan os.Signal, 1) // the first one that ends
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	others := make(chan os.Signal, 1)
	signal.Notify(others, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM)
	defer signal.Stop(others)
	env := os.Environ()
	for {
		code, err := c.once(ctx, env)
		if err != nil || code != c.Code {
			return code, err
		}
		number, err := c.Keep(ctx)
		if err != nil {
			return 0, err
		}
		select {
		case s := <-signals:
			return 128 + int(s.(syscall.Signal)), nil
		default:
		}
		env = append(env, Variable+"="+strconv.Itoa(number)) // the last one of a name counts
	}
}

func (c *Command) once(ctx context.Context, env []string) (code int, err error) {
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = c.Stdin, c.Stdout, c.Stderr, env
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}

// CheckCode says what is wrong with a code that is to mean that the state is to be kept.
func CheckCode(code int) error {
	if code < 1 || code >= jobs.CodeTimeout {
		return errors.New("want 1 to 123: larger ones mean how a program was ended")
	}
	return nil
}
