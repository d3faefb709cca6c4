// Package remover removes directory trees that others have made, whatever is in them: deeper
// than a path may be long, with permissions taken away, with more files than one would wait
// for. It follows no link, leaves what is mounted somewhere in there, holds a few dozen
// descriptors at most, and needs no memory that grows with a tree. [Background] removes large
// trees slowly enough that others keep the disk.
package remover

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Pace is asked before each entry is removed, and may take its time. Its error ends a
// removal, which can be taken up again by another. Nil = at once.
type Pace func() error

const (
	// removeDepth is how deep a tree is followed. What lies deeper is moved up
	// first, so that a removal never holds more descriptors than that, whatever
	// a worker has nested.
	removeDepth = 32
	removeBatch = 1024
)

// Remove removes a directory with all in it; the files named last go last. Only the
// directory's own name is looked up, all else below descriptors. What does not exist is
// removed already.
func Remove(path string, pace Pace, last ...string) error {
	err := remove(path, pace, last)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

func remove(path string, pace Pace, last []string) error {
	dir, err := Open(unix.AT_FDCWD, path)
	if err != nil {
		return err
	}
	defer dir.Close()
	r := Remover{Top: dir, keep: last, pace: pace}
	if err := r.empty(dir, 0); err != nil {
		return err
	}
	r.keep, r.pace = nil, nil
	for _, name := range last {
		if err := r.remove(dir, name, 0); err != nil {
			return err
		}
	}
	err = unix.Rmdir(path)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) { // something came meanwhile
		if err = r.empty(dir, 0); err == nil {
			err = unix.Rmdir(path)
		}
	}
	return err
}

// Empty removes all that is in a directory, but for the names to keep.
func Empty(path string, pace Pace, keep ...string) error {
	dir, err := Open(unix.AT_FDCWD, path)
	if err != nil {
		return err
	}
	defer dir.Close()
	r := Remover{Top: dir, keep: keep, pace: pace}
	return r.empty(dir, 0)
}

// Remover empties a directory.
type Remover struct {
	Top   *os.File // by Open
	Moved int      // directories that were moved up, into Top
	keep  []string // are left at the top
	pace  Pace
}

// Remove removes an entry of the directory, with all in it. What lies deep in there may
// have been moved into the directory, as Moved tells.
func (r *Remover) Remove(name string) error { return r.remove(r.Top, name, 0) }

// empty removes all that is in a directory so far below the top.
func (r *Remover) empty(dir *os.File, depth int) error {
	for {
		more, err := r.pass(dir, depth)
		if err != nil || !more {
			return err
		}
	}
}

// pass goes through a directory once, and reports whether there may be more in it. Entries
// that are removed, or added by moving, may hide others that have not been read: if there
// are too many to be read first, only a pass that finds nothing is the last one.
func (r *Remover) pass(dir *os.File, depth int) (more bool, err error) {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	for {
		names, err := dir.Readdirnames(removeBatch)
		whole, moved := !more && len(names) < removeBatch, r.Moved
		for _, name := range names {
			if depth == 0 && slices.Contains(r.keep, name) {
				continue
			}
			if err := r.remove(dir, name, depth); err != nil {
				return true, err
			}
			more = true
		}
		if whole && (err == nil || errors.Is(err, io.EOF)) {
			return r.Moved > moved, nil
		}
		if errors.Is(err, io.EOF) {
			return more, nil
		}
		if err != nil {
			return more, err
		}
	}
}

// remove removes one entry, or moves it to the top if it is too deep.
func (r *Remover) remove(dir *os.File, name string, depth int) error {
	if r.pace != nil {
		if err := r.pace(); err != nil {
			return err
		}
	}
	fd := int(dir.Fd())
	err := unix.Unlinkat(fd, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	if unix.Unlinkat(fd, name, unix.AT_REMOVEDIR) == nil { // it was empty, and nothing is mounted there
		return nil
	}
	sub, derr := open(fd, name, true)
	if errors.Is(derr, unix.EXDEV) {
		return fmt.Errorf("%s: something is mounted there", name)
	}
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
func (r *Remover) moveUp(fd int, name string) error {
	for {
		r.Moved++
		err := unix.Renameat(fd, name, int(r.Top.Fd()), ".removed-"+strconv.Itoa(r.Moved))
		if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
	}
}

// Open opens a directory by its name below another one, not through a link, so that it can be read and
// written: its mode is changed through the descriptor, which cannot become
// something else meanwhile.
func Open(at int, name string) (*os.File, error) { return open(at, name, false) }

// open is Open; here: if it is of the same mount, else EXDEV.
func open(at int, name string, here bool) (*os.File, error) {
	const dirOnly = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	var path int
	err := error(unix.ENOSYS)
	if here {
		path, err = unix.Openat2(at, name,
			&unix.OpenHow{Flags: unix.O_PATH | dirOnly, Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH})
	}
	if !here || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // an old kernel, or a container's filter
		path, err = unix.Openat(at, name, unix.O_PATH|dirOnly, 0)
	}
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
