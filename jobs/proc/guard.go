package proc

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Guard keeps other processes of the user from tracing this one, from its memory, its
// environment and its descriptors, and the kernel from leaving a core dump of it. It
// does nothing where users see only the processes in /proc that they may trace
// (hidepid): who looks after this process has to see it.
//
// Its files in /proc belong to root then: who is an ordinary user forks children with
// user namespaces, and writes to its own /proc/self, within Unguarded only.
func Guard() error {
	if os.Geteuid() != 0 {
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil || hidden(mounts) {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid others to trace this process: %w", err)
	}
	return nil
}

// hidden reports whether what is mounted at /proc hides the processes of others.
func hidden(mountinfo []byte) bool {
	hides := false
	for line := range bytes.Lines(mountinfo) {
		f := strings.Fields(string(line))
		if len(f) < 7 || f[4] != "/proc" { // the last one is on top
			continue
		}
		hides = false
		for option := range strings.SplitSeq(f[len(f)-1], ",") {
			how, ok := strings.CutPrefix(option, "hidepid=")
			hides = hides || ok && how != "0" && how != "off"
		}
	}
	return hides
}

// Unguarded runs f while this process is as open as it was before Guard, if that was
// called and an ordinary user has to. One call at a time.
func Unguarded(f func()) {
	if is, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err == nil && is == 0 && os.Geteuid() != 0 {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
		defer func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }()
	}
	f()
}
