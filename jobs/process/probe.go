package process

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"zorilla/jobs/launch"
	"zorilla/jobs/proc"
	"zorilla/jobs/sandbox"
)

// probe tries every limit on this process, which does nothing else, and
// writes the names of those that work, one per line.
func probe(w io.Writer) error {
	checks := []struct {
		name string
		try  func() error
	}{
		{"walltime", func() error { return nil }}, // needs a clock only
		{"tree-kill", probeTree},
		{"memory", probeMemory},
		{"landlock", sandbox.TryFiles},
		{"seccomp", sandbox.TryCalls},
		{"user", sandbox.TryUser},
		{namespaces, func() error { return launch.Try(childEnv()) }},
	}
	for _, c := range checks {
		done := make(chan error, 1)
		sandbox.OnOwnThread(func() { done <- c.try() })
		if <-done != nil {
			continue
		}
		if _, err := fmt.Fprintln(w, c.name); err != nil {
			return err
		}
	}
	return nil
}

// namespaces is what Probe calls namespaces for each job.
const namespaces = "namespaces"

func probeTree() error {
	if _, err := proc.Identify(os.Getpid()); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

func probeMemory() error {
	if proc.Resident(os.Getpid()) == (proc.Memory{}) {
		return errors.New("what a process needs cannot be seen")
	}
	return nil
}
