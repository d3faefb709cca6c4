package testnet

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// A Bubble executes f in a testing/synctest bubble of its own, where time is
// virtual, and returns its error once every goroutine that f started has ended.
// Bubbles do not nest; one Bubble may be used again and again. Whatever f
// leaves blocked for ever ends the process with a panic, or fails the test.
type Bubble func(f func() error) error

// InTest returns the Bubble of a test.
func InTest(t *testing.T) Bubble {
	return func(f func() error) (err error) {
		synctest.Test(t, func(*testing.T) { err = f() })
		return err
	}
}

// Main is the main function of a command that works in virtual time: it calls
// run, and ends the process with code 0, or with 1 and the error on standard
// error. The command must have parsed its flags before.
//
// Bubbles can only be had of a test, so the command becomes one test.
func Main(run func(Bubble) error) {
	body := func(t *testing.T) {
		if err := run(InTest(t)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "main", F: body}}, nil, nil)
}

// RealTime is a clock that also a bubble cannot stop: the time since some
// moment before the process started.
func RealTime() time.Duration { return kernelTime(unix.CLOCK_MONOTONIC) }

// CPUTime is what the process has used of all processors so far.
func CPUTime() time.Duration { return kernelTime(unix.CLOCK_PROCESS_CPUTIME_ID) }

func kernelTime(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0 // only an unknown clock fails
	}
	return time.Duration(t.Nano())
}
