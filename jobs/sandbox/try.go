package sandbox

import (
	"errors"

	"golang.org/x/sys/unix"
)

var errNoEffect = errors.New("accepted, but without effect")

// nobody is the user that TryUser tries to become.
const nobody = 65534

// TryFiles reports, by trying it on the calling thread, whether Landlock closes
// files here.
func TryFiles() error {
	v := LandlockVersion()
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
		return errNoEffect
	}
	return nil
}

// TryCalls reports, by trying it on the calling thread, whether seccomp denies
// system calls here.
func TryCalls() error {
	if !hasSeccomp() {
		return unix.ENOSYS
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil { // else filters are root's
		return err
	}
	if _, err := denyCalls(denials{others: true, sockets: true}); err != nil {
		return err
	}
	if _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false); err != unix.EPERM {
		return errNoEffect
	}
	return nil
}

// TryUser makes the calling thread, and no other, another user: by the system calls
// proper, not their wrappers, which change all threads.
func TryUser() error {
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
