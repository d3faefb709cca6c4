package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// Seeing calls f so that it sees in /proc what the processes of a user hold, also if root
// may not trace whom it likes, as in most containers: the calling thread, which is locked
// to its goroutine, is effectively that user meanwhile. The user can do nothing to it,
// since it still has the rest of root.
func Seeing(uid, gid int, f func()) {
	if os.Geteuid() != 0 || uid <= 0 || tracesAll() {
		f()
		return
	}
	group := os.Getegid()
	// Not those of package syscall, which are for all threads.
	set := func(call uintptr, id int) bool {
		keep := ^uintptr(0)
		_, _, errno := unix.RawSyscall(call, keep, uintptr(id), keep)
		return errno == 0
	}
	if set(unix.SYS_SETRESGID, gid) {
		defer set(unix.SYS_SETRESGID, group)
	}
	if set(unix.SYS_SETRESUID, uid) {
		defer set(unix.SYS_SETRESUID, 0)
	}
	f()
}

// tracesAll reports whether this process may trace those of all users.
func tracesAll() bool {
	var caps [2]unix.CapUserData
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capget(&head, &caps[0]) == nil && caps[0].Effective&(1<<unix.CAP_SYS_PTRACE) != 0
}
