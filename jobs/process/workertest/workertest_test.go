package workertest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/process"
	"zorilla/jobs/process/workertest"
)

// TestMain makes the test binary a supervisor, or a program of the suite, when it
// is started as such.
func TestMain(m *testing.M) {
	process.Main()
	workertest.Main()
	os.Exit(m.Run())
}

// TestProcesses is about the workers that nodes start.
func TestProcesses(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	workertest.Run(t, workertest.Kit{
		Runner: func(grace time.Duration, spool int64) workertest.Runner {
			return process.New(process.Config{Grace: grace, Spool: spool})
		},
		Spec: func(spec *process.Spec, program string, args ...string) {
			spec.Args, spec.Expose = workertest.Command(exe, program, args...), []string{exe}
		},
		Ended: awaitSupervisor,
		Clean: func(_ workertest.Runner, root string) error { return process.CleanRoot(root, nil) },
		In:    func(t *testing.T, test func(t *testing.T)) { test(t) },
	})
}

// awaitSupervisor waits for the end of the process that was started for root.
func awaitSupervisor(t *testing.T, _ workertest.Runner, root string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err != nil || !bytes.HasSuffix(b, []byte("\x00"+root+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(path, "/")[2])
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return // it has ended meanwhile
		}
		defer unix.Close(fd)
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 30_000); n != 1 {
			t.Fatalf("process %d does not end: %v", pid, err)
		}
	}
}
