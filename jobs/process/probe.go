package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// nobody is the user that the probe tries to become.
const nobody = 65534

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
		{"landlock", probeLandlock},
		{"seccomp", probeSeccomp},
		{"user", probeUser},
	}
	for _, c := range checks {
		done := make(chan error, 1)
		onOwnThread(func() { done <- c.try() })
		if <-done != nil {
			continue
		}
		if _, err := fmt.Fprintln(w, c.name); err != nil {
			return err
		}
	}
	return nil
}

var errNotEnforced = errors.New("accepted, but without effect")

func probeTree() error {
	if _, err := identify(os.Getpid()); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

func probeMemory() error {
	if resident(os.Getpid()) == 0 {
		return errNotEnforced
	}
	return nil
}

func probeLandlock() error {
	v := landlockVersion()
	if v == 0 {
		return unix.ENOSYS
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := restrictFiles(nil, v); err != nil {
		return err
	}
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
		return errNotEnforced
	}
	return nil
}

func probeSeccomp() error {
	if !seccomp.Supported() {
		return unix.ENOSYS
	}
	if err := denyCalls(); err != nil {
		return err
	}
	if _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false); err != unix.EPERM {
		return errNotEnforced
	}
	return nil
}

// probeUser becomes another user on its own thread alone: the system calls
// proper, not their wrappers, which change all threads.
func probeUser() error {
	runtime.LockOSThread()
	for _, c := range [][3]uintptr{{unix.SYS_SETGROUPS, 0, 0}, {unix.SYS_SETRESGID, nobody, nobody}, {unix.SYS_SETRESUID, nobody, nobody}} {
		var third uintptr
		if c[0] != unix.SYS_SETGROUPS {
			third = nobody
		}
		if _, _, errno := unix.RawSyscall(c[0], c[1], c[2], third); errno != 0 {
			return errno
		}
	}
	return nil
}
