package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"zorilla/jobs"
)

// exitUsage and exitFailure are the exit codes that are not a job's.
const (
	exitUsage   = 2
	exitFailure = jobs.CodeZorilla
)

// exitCode is an error that has been told already.
type exitCode int

// Error implements error.
func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// signalled is the exit code of a process that a signal ended.
func signalled(sig os.Signal) exitCode {
	code := 128
	if s, ok := sig.(syscall.Signal); ok {
		code += int(s)
	}
	return exitCode(code)
}

// codedError is an error with an exit code of its own.
type codedError struct {
	error
	code int
}

// usageError is a mistake in the command line.
type usageError struct {
	command string // whose help tells more
	text    string
}

// Error implements error.
func (e *usageError) Error() string { return e.text }

func usage(c *cli.Context, format string, args ...any) error {
	return &usageError{c.Command.HelpName, fmt.Sprintf(format, args...)}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// fatalSignals would end the process at once.
var fatalSignals = []os.Signal{os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP}

// catchPipe lets a write to a closed standard output fail, which would end the
// process silently otherwise. Further signals may be asked for on the channel.
func catchPipe() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGPIPE)
	return signals, func() { signal.Stop(signals) }
}
