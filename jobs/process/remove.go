package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// removeDepth is how deep a tree is followed. What lies deeper is moved up
	// first, so that a removal never holds more descriptors than that, whatever
	// a worker has nested.
	removeDepth = 32
	removeBatch = 1024
)

// removeTree removes a directory with all in it; the files named last go last.
// It follows no link, and needs no path longer than a name: only the directory's
// own name is looked up, all else below descriptors. A worker may have taken
// permissions away. What does not exist is removed already.
func removeTree(path string, last ...string) error {
	err := emptyTree(path, last)
	if err == nil {
		err = emptyTree(path, nil)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err == nil {
		err = unix.Rmdir(path)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// emptyTree removes all that is in a directory, but for the names to keep.
func emptyTree(path string, keep []string) error {
	dir, err := openDir(unix.AT_FDCWD, path)
	if err != nil {
		return err
	}
	defer dir.Close()
	r := remover{top: dir, keep: keep}
	return r.empty(dir, 0)
}

// remover empties a directory.
type remover struct {
	top   *os.File
	keep  []string // are left at the top
	moved int      // directories that were moved up
}

// empty removes all that is in a directory so far below the top.
func (r *remover) empty(dir *os.File, depth int) error {
	for {
		found, err := r.pass(dir, depth)
		if err != nil || !found {
			return err
		}
	}
}

// pass goes through a directory once. Entries that are removed, or added by
// moving, may hide others: only a pass that finds nothing is the last one.
func (r *remover) pass(dir *os.File, depth int) (found bool, err error) {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	for {
		names, err := dir.Readdirnames(removeBatch)
		for _, name := range names {
			if depth == 0 && slices.Contains(r.keep, name) {
				continue
			}
			if err := r.remove(dir, name, depth); err != nil {
				return true, err
			}
			found = true
		}
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return found, err
		}
	}
}

// remove removes one entry, or moves it to the top if it is too deep.
func (r *remover) remove(dir *os.File, name string, depth int) error {
	fd := int(dir.Fd())
	err := unix.Unlinkat(fd, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	sub, derr := openDir(fd, name)
	if errors.Is(derr, unix.ENOTDIR) || errors.Is(derr, unix.ELOOP) { // EPERM was meant
		return err
	}
	if derr != nil {
		return derr
	}
	defer sub.Close()
	if depth >= removeDepth {
		return r.moveUp(fd, name)
	}
	if err := r.empty(sub, depth+1); err != nil {
		return err
	}
	return unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
}

// moveUp puts a directory into the top one, under a name that is free there.
func (r *remover) moveUp(fd int, name string) error {
	for {
		r.moved++
		err := unix.Renameat(fd, name, int(r.top.Fd()), ".removed-"+strconv.Itoa(r.moved))
		if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
	}
}

// openDir opens a directory, not through a link, so that it can be read and
// written: its mode is changed through the descriptor, which cannot become
// something else meanwhile.
func openDir(at int, name string) (*os.File, error) {
	const dirOnly = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	path, err := unix.Openat(at, name, unix.O_PATH|dirOnly, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(path)
	var st unix.Stat_t
	if err := unix.Fstat(path, &st); err != nil {
		return nil, err
	}
	if st.Mode&0o700 != 0o700 {
		_ = unix.Chmod("/proc/self/fd/"+strconv.Itoa(path), 0o700) // if it matters, what follows says so
	}
	fd, err := unix.Openat(path, ".", unix.O_RDONLY|dirOnly, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
