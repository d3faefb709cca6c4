package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// openDirs bounds the descriptors of a walk. What lies deeper is gone through
	// with one more, and left by "..".
	openDirs = 64
	// readSize is how much of a directory is read at once.
	readSize = 8 << 10
	// maxDepth and maxLinked bound the memory of a walk: levels, and files with
	// several names, which count for each of them beyond that.
	maxDepth  = 1 << 20
	maxLinked = 1 << 20
	// lookAtClock is after how many entries a walk looks how late it is.
	lookAtClock = 128
	// block is the unit of st_blocks, whatever the file system has.
	block = 512
)

// inode is a file, whatever its name is.
type inode struct{ dev, ino uint64 }

// level is a directory on the way from the top of a tree to where a walk is.
type level struct {
	inode
	fd   int    // -1 = closed, to be opened again by ".." of the next level
	at   int64  // behind the entry that was taken last
	rest []byte // entries that were read and not taken
	buf  []byte
	shut uint32 // the mode that it is to have again; 0 = the one that it has
}

// walk counts trees.
type walk struct {
	most   int64 // is enough
	sum    int64
	dev    uint64 // of the tree
	path   []level
	linked map[inode]bool
	spare  []byte    // for the levels that have no buffer
	until  time.Time // it takes no longer; zero = as long as it takes
	steps  int
}

// Used returns how many bytes the trees of directories take. It stops, with what it has
// by then, when that is more than most. Directories that do not exist take nothing; a
// tree that is nested so deeply that nobody can count it takes math.MaxInt64.
func Used(most int64, dirs ...string) int64 {
	return count(&walk{most: most}, dirs)
}

// UsedWithin is Used for who cannot wait: what it has not seen by then, it does not count.
func UsedWithin(limit time.Duration, dirs ...string) int64 {
	return count(&walk{most: math.MaxInt64, until: time.Now().Add(limit)}, dirs)
}

func count(w *walk, dirs []string) int64 {
	w.linked = map[inode]bool{}
	for _, dir := range dirs {
		if fd, err := openDir(unix.AT_FDCWD, dir); err == nil {
			w.dev = 0
			w.enter(fd, 0)
			w.run()
		}
	}
	return w.sum
}

// run goes through a tree whose top was entered.
func (w *walk) run() {
	for len(w.path) > 0 {
		if w.steps++; w.steps%lookAtClock == 0 && !w.until.IsZero() && time.Now().After(w.until) {
			w.most = -1 // is reached
		}
		l := &w.path[len(w.path)-1]
		name, kind, ok := w.next(l)
		switch {
		case w.sum > w.most: // closes them all
			w.leave()
		case !ok:
			w.leave()
		case kind == unix.DT_DIR:
			w.descend(l, name)
		default:
			w.count(l, name)
		}
	}
}

// next takes an entry of a directory.
func (w *walk) next(l *level) (name string, kind byte, ok bool) {
	for {
		if len(l.rest) == 0 {
			if l.fd < 0 || w.sum > w.most {
				return "", 0, false
			}
			n, err := unix.ReadDirent(l.fd, l.buf)
			if err != nil || n <= 0 { // the end, or removed meanwhile
				return "", 0, false
			}
			l.rest = l.buf[:n]
		}
		const head = 19 // of struct linux_dirent64: inode, next, length, kind
		size := int(binary.NativeEndian.Uint16(l.rest[16:]))
		entry := l.rest[:size]
		l.rest, l.at = l.rest[size:], int64(binary.NativeEndian.Uint64(entry[8:]))
		b, _, _ := bytes.Cut(entry[head:], []byte{0})
		if name = string(b); name != "." && name != ".." {
			return name, entry[18], true
		}
	}
}

// count counts what is not known to be a directory.
func (w *walk) count(l *level, name string) {
	var st unix.Stat_t
	switch err := unix.Fstatat(l.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case err != nil: // gone
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		w.descend(l, name)
	case uint64(st.Dev) == w.dev && w.isNew(&st):
		w.add(st.Blocks)
	}
}

// isNew reports whether a file was not counted under another name.
func (w *walk) isNew(st *unix.Stat_t) bool {
	if st.Nlink < 2 || len(w.linked) >= maxLinked {
		return true
	}
	id := inode{uint64(st.Dev), st.Ino}
	if w.linked[id] {
		return false
	}
	w.linked[id] = true
	return true
}

func (w *walk) add(blocks int64) {
	if n := max(blocks, 0) * block; w.sum <= math.MaxInt64-n {
		w.sum += n
	}
}

// descend goes down into a directory.
func (w *walk) descend(l *level, name string) {
	if len(w.path) >= maxDepth {
		w.sum = math.MaxInt64
		return
	}
	fd, err := openDir(l.fd, name)
	var shut uint32
	if errors.Is(err, unix.EACCES) {
		fd, shut, err = openShut(l.fd, name)
	}
	if err == nil {
		w.enter(fd, shut)
	}
}

// enter makes an open directory the one where the walk is.
func (w *walk) enter(fd int, shut uint32) {
	l := level{fd: fd, shut: shut}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || w.dev != 0 && uint64(st.Dev) != w.dev {
		l.close()
		return
	}
	l.inode = inode{uint64(st.Dev), st.Ino}
	if w.dev = l.dev; shut == 0 && st.Mode&0o500 != 0o500 && unix.Geteuid() != 0 {
		l.unshut(st.Mode & 0o7777)
	}
	if w.add(st.Blocks); len(w.path) < openDirs {
		l.buf = make([]byte, readSize)
	} else {
		if len(w.path) > openDirs {
			above := &w.path[len(w.path)-1]
			_ = unix.Close(above.fd)
			above.fd, above.rest, above.buf = -1, nil, nil
		} else if w.spare == nil {
			w.spare = make([]byte, readSize)
		}
		l.buf = w.spare
	}
	w.path = append(w.path, l)
}

// leave goes back up. A directory that was moved meanwhile has another one above it:
// then the walk goes on where it has still one open.
func (w *walk) leave() {
	last := len(w.path) - 1
	l := w.path[last]
	w.path = w.path[:last]
	defer l.close()
	if last == 0 || w.path[last-1].fd >= 0 {
		return
	}
	above := &w.path[last-1]
	if fd, err := openDir(l.fd, ".."); err == nil {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && above.inode == (inode{uint64(st.Dev), st.Ino}) {
			if _, err := unix.Seek(fd, above.at, unix.SEEK_SET); err == nil {
				above.fd, above.buf = fd, w.spare
				return
			}
		}
		_ = unix.Close(fd)
	}
	for len(w.path) > 0 && w.path[len(w.path)-1].fd < 0 {
		w.path = w.path[:len(w.path)-1]
	}
}

// unshut lets the owner read a directory for as long as the walk is there.
func (l *level) unshut(mode uint32) {
	if unix.Fchmod(l.fd, mode|0o500) == nil {
		l.shut = mode | shutMark
	}
}

// shutMark tells the mode 0 from none.
const shutMark = 1 << 31

func (l *level) close() {
	if l.fd < 0 {
		return
	}
	if l.shut != 0 {
		_ = unix.Fchmod(l.fd, l.shut&^shutMark)
	}
	_ = unix.Close(l.fd)
}

const dirOnly = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// openDir opens a directory, not through a link.
func openDir(at int, name string) (int, error) {
	return unix.Openat(at, name, unix.O_RDONLY|dirOnly, 0)
}

// openShut opens a directory that its owner, who is this user, cannot read, and tells
// which mode it had. It is changed through a descriptor, which cannot become something
// else meanwhile.
func openShut(at int, name string) (fd int, shut uint32, err error) {
	path, err := unix.Openat(at, name, unix.O_PATH|dirOnly, 0)
	if err != nil {
		return -1, 0, err
	}
	defer unix.Close(path)
	var st unix.Stat_t
	if err := unix.Fstat(path, &st); err != nil {
		return -1, 0, err
	}
	mode, itself := st.Mode&0o7777, "/proc/self/fd/"+strconv.Itoa(path)
	if err := unix.Chmod(itself, mode|0o500); err != nil {
		return -1, 0, err
	}
	if fd, err = openDir(path, "."); err != nil {
		_ = unix.Chmod(itself, mode)
	}
	return fd, mode | shutMark, err
}
