package main

import (
	"fmt"
	"strings"

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
