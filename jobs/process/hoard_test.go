package process

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"zorilla/jobs/proc"
	"zorilla/jobs/work"
)

// hoard is a helper that fills memory in ways that are not pages of its own, and waits.
func hoard(args []string) int {
	n, _ := strconv.Atoi(args[1])
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i)
	}
	var to *os.File
	var err error
	switch args[0] {
	case "memfd":
		var fd int
		fd, err = unix.MemfdCreate("hoard", 0)
		to = os.NewFile(uintptr(fd), "memfd")
	case "shm":
		to, err = os.Create("/dev/shm/hoard")
	case "tmp":
		to, err = os.Create("/tmp/hoard")
	case "segment":
		for range n {
			id, _, errno := unix.Syscall(unix.SYS_SHMGET, unix.IPC_PRIVATE, 1<<20, 0o600)
			if errno != 0 {
				return 3
			}
			p, err := unix.SysvShmAttach(int(id), 0, 0)
			if err != nil {
				return 4
			}
			copy(p, block)
			_ = unix.SysvShmDetach(p)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case "pipe", "socket":
		return hoardOnTheWay(args[0], n, block)
	}
	if err != nil {
		return 2
	}
	for range n {
		if _, err := to.Write(block); err != nil {
			return 5
		}
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// Memory that is in files counts, and goes with the worker.
func TestHoardedMemory(t *testing.T) {
	segments := proc.SharedSegments()
	for _, how := range []string{"memfd", "shm", "tmp", "segment"} {
		eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
			s := spec("hoard", how, "200")
			s.Memory, s.Stdin = 100<<20, true
			e, _, stderr := run(t, cfg, s)
			if cfg.Basic && how != "memfd" { // it is not to be had
				if e.Cause != work.Exited || e.Code == 0 {
					t.Errorf("%s: %+v %q", how, e, stderr)
				}
				return
			}
			if e.Cause != work.Memory {
				t.Errorf("%s: %+v %q", how, e, stderr)
			}
		})
	}
	if now := proc.SharedSegments(); now != segments {
		t.Errorf("%d bytes of shared segments, %d before", now, segments)
	}
}

// hoardOnTheWay fills so many MiB of what the kernel keeps between two ends.
func hoardOnTheWay(how string, n int, block []byte) int {
	for filled := 0; filled < n<<20; {
		var ends [2]int
		var err error
		if how == "pipe" {
			err = unix.Pipe2(ends[:], unix.O_NONBLOCK)
			_, _ = unix.FcntlInt(uintptr(ends[1]), unix.F_SETPIPE_SZ, 1<<20)
		} else {
			ends, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		}
		if err != nil {
			return 6
		}
		for {
			wrote, err := unix.Write(ends[1], block)
			if err != nil {
				break
			}
			filled += wrote
		}
	}
	fmt.Println("full")
	return 0
}

// What is on its way through pipes and sockets counts where there are control groups, and
// only there: see docs/sandbox.md.
func TestMemoryOnItsWay(t *testing.T) {
	grouped := hasGroups(t)
	for how, mb := range map[string]string{"pipe": "60", "socket": "200"} { // of pipes a user has 64 at most
		eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
			s := spec("hoard", how, mb)
			s.Memory = 48 << 20
			e, out, stderr := run(t, cfg, s)
			if grouped && e.Cause != work.Memory || !grouped && (e.Cause != work.Exited || out != "full\n") {
				t.Errorf("%s: %+v %q", how, e, stderr)
			}
		})
	}
}
