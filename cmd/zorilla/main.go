package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/jobs"
	"zorilla/jobs/process"
	"zorilla/node/api"
)

func main() {
	process.Main()
	os.Exit(run(context.Background(), ownArgs(), os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole command line but for the process around it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	sh := &shell{stdin: stdin, stdout: stdout, stderr: stderr, node: runNode}
	return sh.run(ctx, args)
}

// exitUsage and exitFailure are the exit codes that are not a job's.
const (
	exitUsage   = 2
	exitFailure = jobs.CodeZorilla
)

// shell is what commands work with.
type shell struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	node           startNode
	kept           *os.File // lines of the standard input, see lines
}

func (sh *shell) run(ctx context.Context, args []string) int {
	app := sh.app()
	err := app.RunContext(ctx, optionsFirst(app, args))
	if err == nil {
		return 0
	}
	if code := exitCode(0); errors.As(err, &code) {
		return int(code)
	}
	sh.say("%s", firstLine(err.Error()))
	if u := (*usageError)(nil); errors.As(err, &u) {
		fmt.Fprintf(sh.stderr, "try '%s --help'\n", u.command)
		return exitUsage
	}
	if errors.Is(err, jobs.ErrInvalid) || errors.Is(err, api.ErrInvalid) {
		return exitUsage
	}
	if code := (*codedError)(nil); errors.As(err, &code) {
		return code.code
	}
	return exitFailure
}

// say writes one message to standard error.
func (sh *shell) say(format string, args ...any) {
	fmt.Fprintf(sh.stderr, "zorilla: %s\n", clean(fmt.Sprintf(format, args...)))
}

// exitCode is an error that has been told already.
type exitCode int

// Error implements error.
func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

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
