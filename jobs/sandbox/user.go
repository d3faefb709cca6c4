package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// AsUser calls f so that it comes by files as a user does, with no group but gid: what root
// finds out for somebody is to be no more than that one could. The goroutine keeps its
// thread meanwhile. Nothing changes for a process that is not root's, and for uid 0 or less.
// The error says that f was not called.
func AsUser(uid, gid int, f func()) error {
	if uid <= 0 || os.Geteuid() != 0 {
		f()
		return nil
	}
	groups, err := unix.Getgroups()
	if err != nil {
		return fmt.Errorf("look at files as user %d: %w", uid, err)
	}
	runtime.LockOSThread()
	dropped := len(groups) == 0 || setGroups(nil)
	defer func() {
		_ = unix.Setfsuid(os.Geteuid())
		_ = unix.Setfsgid(os.Getegid())
		if fsuid, _ := unix.SetfsuidRetUid(-1); fsuid != os.Geteuid() || len(groups) > 0 && !setGroups(groups) {
			return // the thread ends with its goroutine
		}
		runtime.UnlockOSThread()
	}()
	_, _ = unix.SetfsgidRetGid(gid) // these return what was before, and no errors
	_, _ = unix.SetfsuidRetUid(uid)
	fsgid, _ := unix.SetfsgidRetGid(-1)
	if fsuid, _ := unix.SetfsuidRetUid(-1); !dropped || fsuid != uid || fsgid != gid {
		return fmt.Errorf("look at files as user %d: not permitted", uid)
	}
	f()
	return nil
}

// setGroups sets the other groups of the calling thread, not of the process, as the
// function of package syscall would.
func setGroups(groups []int) bool {
	list := make([]uint32, max(1, len(groups)))
	for i, g := range groups {
		list[i] = uint32(g)
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&list[0])), 0)
	return errno == 0
}
