package sandbox

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// bring puts a tree at a path where processes may have made links by now. One that a
// thread of this process could follow out of its root, by /proc, is refused: all others
// lead to what they see themselves.
func (t *tree) bring(at string) error {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	names := strings.Split(strings.Trim(at, "/"), "/")
	for i, name := range names {
		if err != nil {
			break
		}
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
		if i < len(names)-1 || t.dir {
			_ = unix.Mkdirat(fd, name, 0o755) // else it is there, or what follows tells why not
			how.Flags |= unix.O_DIRECTORY
		} else {
			how.Flags = unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC
			how.Mode = 0o644
		}
		above := fd
		fd, err = unix.Openat2(above, name, &how)
		_ = unix.Close(above)
	}
	if err != nil {
		return &os.PathError{Op: "make", Path: at, Err: err}
	}
	defer unix.Close(fd)
	if err := unix.MoveMount(t.fd, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "move mount", Path: at, Err: err}
	}
	return nil
}
