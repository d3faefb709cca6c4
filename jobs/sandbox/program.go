package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// ProgramDir has the program itself, as zorilla and as zorilla-rsh, in a root, if it could be
// brought there.
const ProgramDir = "/run/zorilla"

// HasProgram reports whether a root has it that shows some paths of the machine, besides the
// system directories.
func HasProgram(shown ...string) bool {
	return !slices.ContainsFunc(topmost(shown), func(p string) bool { return within(ProgramDir, resolve(p)) })
}

const (
	programName = "zorilla"
	shellName   = "zorilla-rsh"
	running     = "/proc/self/exe"
)

// program is the file of the running program.
type program struct{ tree }

// openProgram opens it before anything covers its path. It has no tree if another file
// lies there meanwhile, or none, as after an upgrade.
func openProgram() program {
	path, err := os.Readlink(running)
	if err != nil {
		return program{}
	}
	there, err := os.Stat(path)
	self, err2 := os.Stat(running)
	if err != nil || err2 != nil || !os.SameFile(there, self) {
		return program{}
	}
	t, err := openTree(unix.AT_FDCWD, path, path)
	if err != nil {
		return program{}
	}
	if t.lock() != nil {
		_ = unix.Close(t.fd)
		return program{}
	}
	return program{t}
}

func (p *program) close() {
	if p.path != "" {
		_ = unix.Close(p.fd)
	}
}

// bring puts the program into a directory, which it makes. Where that fails there is none,
// which whoever wants it says.
func (p *program) bring(dir string) {
	if os.MkdirAll(dir, 0o755) != nil {
		return
	}
	if p.path == "" || p.attach(filepath.Join(dir, programName)) != nil {
		_ = copyProgram(dir)
		return
	}
	_ = os.Symlink(programName, filepath.Join(dir, shellName))
}

// copyProgram fills a directory in memory with a copy, since a file without a name cannot be
// shown at another place.
func copyProgram(dir string) (err error) {
	from, err := os.Open(running)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	size := fmt.Sprintf("mode=755,size=%d", info.Size()+1<<20)
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, size); err != nil {
		return err
	}
	to, err := os.OpenFile(filepath.Join(dir, programName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close(), os.Symlink(programName, filepath.Join(dir, shellName))); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, dir, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}
