package transfer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// File is a file that chunks are read from where it is.
type File struct {
	Path   string   `json:"path"`   // absolute, without symbolic links
	Stamp  Stamp    `json:"stamp"`  // when its chunks were hashed
	Chunks HashList `json:"chunks"` // all of ChunkSize but the last
}

// ErrElsewhere: a file is not what it was when it was hashed, or cannot be read
// here. Put its chunks instead.
var ErrElsewhere = errors.New("the file cannot be read here")

// Check reports why f can be no file of this machine, if so.
func (f *File) Check() error {
	switch {
	case !filepath.IsAbs(f.Path) || filepath.Clean(f.Path) != f.Path || len(f.Path) > MaxPath:
		return fmt.Errorf("%.100q is no absolute path", f.Path)
	case f.Stamp.Size <= 0 || f.Stamp.Size > maxFile || len(f.Chunks) != chunkCount(f.Stamp.Size):
		return fmt.Errorf("%.100q: %d chunks for %d bytes", f.Path, len(f.Chunks), f.Stamp.Size)
	}
	return nil
}

// openOutside opens a file that is somebody else's, if it is a regular one: nothing
// happens to a device or a pipe.
func openOutside(name string) (fs.File, error) {
	info, err := os.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("is %s", kind(info.Mode()))
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// openRegular opens a file, through symbolic links, but only if it is a
// regular one; a named pipe does not make it wait.
func openRegular(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("is %s, want a file or a directory", kind(info.Mode()))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// kind names what is not a regular file.
func kind(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&os.ModeSymlink != 0:
		return "a symbolic link"
	case m&os.ModeNamedPipe != 0:
		return "a named pipe"
	case m&os.ModeSocket != 0:
		return "a socket"
	case m&os.ModeDevice != 0:
		return "a device"
	}
	return "not a regular file"
}

// piece is how much is written at a time. The kernel takes memory of this size for what is
// written, and that it has at hand: large blocks are what a virtual machine gives back to its
// host, and getting them again takes ten times as long as writing does.
const piece = 32 << 10

// writeAt writes to a file.
func writeAt(f *os.File, data []byte, at int64) error {
	for len(data) > 0 {
		n, err := f.WriteAt(data[:min(piece, len(data))], at)
		if err != nil {
			return err
		}
		data, at = data[n:], at+int64(n)
	}
	return nil
}

// Owner is the user and group that files belong to.
type Owner struct{ UID, GID int }

// own makes what is in a directory the owner's, if there is one.
func (o *Owner) own(dir *os.Root, name string) error {
	if o == nil {
		return nil
	}
	return o.failed(bare(dir.Lchown(name, o.UID, o.GID)))
}

func (o *Owner) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("give it to user %d: %w", o.UID, err)
}

// making says how makeFile makes a file.
type making struct {
	mode  fs.FileMode
	chmod bool   // the process's umask and access lists have no say
	owner *Owner // nil = this process's
}

// makeFile makes a small file of a name that nothing in a directory has, or nothing. It is done by
// calls of the system alone: package os would also try to poll each file, and give it a finalizer.
func makeFile(dir *os.File, name string, content []byte, how making) error {
	defer runtime.KeepAlive(dir)
	at := int(dir.Fd())
	var fd int
	err := unbroken(func() (err error) {
		fd, err = unix.Openat(at, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(how.mode.Perm()))
		return err
	})
	if err != nil {
		return err
	}
	for len(content) > 0 && err == nil {
		err = unbroken(func() error {
			n, err := unix.Write(fd, content)
			if n == 0 && err == nil {
				err = io.ErrShortWrite
			}
			content = content[max(n, 0):]
			return err
		})
	}
	if err == nil && how.owner != nil {
		err = how.owner.failed(unbroken(func() error { return unix.Fchown(fd, how.owner.UID, how.owner.GID) }))
	}
	if err == nil && how.chmod {
		err = unbroken(func() error { return unix.Fchmod(fd, uint32(how.mode.Perm())) })
	}
	if err = cmp.Or(err, unix.Close(fd)); err != nil {
		_ = unix.Unlinkat(at, name, 0) // the first error says more
	}
	return err
}

// readSmall reads all of a file by calls of the system alone, as makeFile makes one. It reports
// false if something is not as it was found, or changes meanwhile: then it is to be read as other files are.
func (s *source) readSmall(buf []byte) bool {
	var before, after unix.Stat_t
	if s.path == "" {
		return false
	}
	fd, err := unix.Open(s.path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if unix.Fstat(fd, &before) != nil || before.Mode&unix.S_IFMT != unix.S_IFREG || before.Size != int64(len(buf)) {
		return false
	}
	for at := 0; at < len(buf); {
		n, err := unix.Pread(fd, buf[at:], int64(at))
		if n <= 0 || err != nil {
			return false
		}
		at += n
	}
	if unix.Fstat(fd, &after) != nil || after.Size != before.Size || after.Mtim != before.Mtim {
		return false
	}
	s.entry.Size = before.Size
	s.entry.setMode(fs.FileMode(before.Mode))
	return true
}

// unbroken repeats a call of the system that a signal has interrupted.
func unbroken(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// copyRange has the file system copy a part of a file, which need not take room for it. It
// reports false, and may have copied some of it, where that cannot be done.
func copyRange(from *os.File, begin int64, to *os.File, at int64, size int) bool {
	for size > 0 {
		n, err := unix.CopyFileRange(int(from.Fd()), &begin, int(to.Fd()), &at, size, 0)
		if err != nil || n == 0 {
			return false
		}
		size -= n
	}
	return true
}

// copier is a Getter that may let the file system do the work.
type copier interface {
	// CopyTo copies a blob of size bytes, which were compared with the hash, to a place in a file. It
	// reports false, and may have written something, if that cannot be done.
	CopyTo(h Hash, size int, to *os.File, at int64) bool
}

// openSub opens, and makes if need be, a directory in a directory: the owner's, if there is one.
func openSub(parent *os.Root, name string, mode fs.FileMode, owner *Owner) (*os.Root, error) {
	seen, err := parent.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := parent.Mkdir(name, mode); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := cmp.Or(parent.Chmod(name, mode), owner.own(parent, name)); err != nil {
			return nil, err
		}
		seen, err = parent.Lstat(name)
	}
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		what := "a file"
		if !seen.Mode().IsRegular() {
			what = kind(seen.Mode())
		}
		return nil, fmt.Errorf("is %s where a directory is needed, remove it", what)
	}
	sub, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := sub.Stat(".")
	if err == nil && !os.SameFile(opened, seen) {
		err = errors.New("was replaced by another directory")
	}
	if err != nil {
		sub.Close()
		return nil, err
	}
	return sub, nil
}

// Stamp tells two states of a file apart: every write to a file changes its stamp, and
// no two files of a machine have the same. The zero value is the stamp of none.
type Stamp struct {
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
	Size    int64  `json:"size"`    // bytes
	Written int64  `json:"written"` // Unix nanoseconds
	Changed int64  `json:"changed"` // the same, of its name, mode or owner too
}

// StampOf returns the stamp of a file of this machine.
func StampOf(info fs.FileInfo) Stamp {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Stamp{}
	}
	return Stamp{
		Device: uint64(st.Dev), Inode: st.Ino, Size: info.Size(),
		Written: info.ModTime().UnixNano(), Changed: st.Ctim.Nano(),
	}
}

// The modes that most files have.
const (
	plainMode = 0o644
	execMode  = 0o755
)

// setMode takes a file's permissions over. Whoever could read it can do so when it has
// arrived, too, and who may run it is, among others, its owner.
func (e *Entry) setMode(mode fs.FileMode) {
	mode = mode.Perm() | 0o400
	usual := fs.FileMode(plainMode)
	if e.Exec = mode&0o111 != 0; e.Exec {
		mode, usual = mode|0o100, execMode
	}
	if e.Mode = uint32(mode); mode == usual {
		e.Mode = 0
	}
}

// mode returns a file's permissions.
func (e *Entry) mode() fs.FileMode {
	switch {
	case e.Mode != 0:
		return fs.FileMode(e.Mode)
	case e.Exec:
		return execMode
	}
	return plainMode
}

// FileMode returns what an entry is and its permissions.
func (e *Entry) FileMode() fs.FileMode {
	if e.Dir {
		return fs.ModeDir | execMode
	}
	return e.mode()
}

// Umask returns what this process does not allow others for files that it makes: of its
// umask that part.
func Umask() fs.FileMode {
	const usual, others = 0o022, 0o077
	if mask, ok := processUmask(); ok {
		return mask & others
	}
	return usual
}

// processUmask reads what the kernel takes from the modes of files that this process makes,
// without a change of it.
func processUmask() (fs.FileMode, bool) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "Umask:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(text), 8, 32)
			return fs.FileMode(mask) & fs.ModePerm, err == nil
		}
	}
	return 0, false
}

// masked returns what of its mode a small file in dir gets after it is made: all, but what the
// process's umask leaves it at once in a directory of the node's, where no access list has a say.
func (how How) masked(dir string) fs.FileMode {
	if how.Fresh {
		_, err := unix.Getxattr(dir, "system.posix_acl_default", nil)
		if mask, ok := processUmask(); ok && err != nil {
			return mask
		}
	}
	return fs.ModePerm
}

// bare takes the operation and the temporary file's name off an error.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}
