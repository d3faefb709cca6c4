// Package sandbox confines threads, and the programs that they start, with what
// the kernel has for everybody: Landlock for files and signals, seccomp for
// system calls. It is Landlock by hand, since what a library restricts is the
// whole process, and a supervisor has to stay free.
package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// LandlockVersion returns the kernel's Landlock version, 0 for none.
func LandlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// Confine restricts the calling thread, and what it will start, for good. The
// caller has locked its goroutine to the thread. Without Landlock in the
// kernel files stay as open as the user's permissions make them.
func Confine(a Access) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	v, rules := LandlockVersion(), a.rules()
	if v > 0 {
		if err := restrictFiles(rules, v); err != nil {
			return err
		}
	}
	if hasSeccomp() {
		listener, err := denyCalls(a.denials(v))
		if err == nil && listener >= 0 {
			err = a.Judge(listener, changeable(rules))
		}
		return err
	}
	return nil
}

// DropCapabilities takes root's powers from the calling thread and from what it
// will start; of root only the ownership of files remains. It is for nodes
// that run as root without a user for their workers: some powers reach past
// Landlock, such as reading the memory maps and environments of others.
func DropCapabilities() error {
	const noRoot = 1<<0 | 1<<1 // SECBIT_NOROOT and its lock: an exec by user 0 gives nothing back
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0); err != nil {
		return fmt.Errorf("drop capabilities: %w (give the workers a user of their own: --run-as)", err)
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// restrictFiles applies the rules to the calling thread alone. Rights that the
// kernel's version does not know are left out, but for moves between
// directories: before version 2 they are denied everywhere.
func restrictFiles(rules []rule, version int) error {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: 1<<13 - 1}
	if version >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if version >= 9 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	set := int(r)
	defer unix.Close(set)
	for _, rule := range rules {
		if err := addRule(set, rule, attr.Handled_access_fs); err != nil {
			return fmt.Errorf("landlock: %s: %w", rule.path, err)
		}
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, r, 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}

func addRule(set int, r rule, handled uint64) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}
	if r.direct {
		how.Resolve = unix.RESOLVE_NO_SYMLINKS
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, r.path, &how)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ELOOP) {
		return nil // nothing there to be opened
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	rights := r.rights & handled
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	if rights == 0 {
		return nil
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// OnOwnThread runs f on a thread that is used for nothing else and lives as
// long as the process: what f restricts stays on that thread, and a child
// that is bound to the life of its parent's thread does not die with it. It
// is never the main thread, whose restrictions the kernel shows as those of
// the whole process.
func OnOwnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			OnOwnThread(f)
		} else {
			f()
		}
		select {}
	}()
}
