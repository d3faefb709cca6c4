package transfer

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Give implements WholeFiles.
func (s *DirStore) Give(e *Entry, to *os.Root, at string, mode fs.FileMode) bool {
	key := keyOf(e.Size, e.Chunks)
	s.recheck(key)
	s.mu.Lock()
	c := s.index.whole[key]
	if c == nil || !c.own.made || c.own.busy() || c.own.copied > 0 || s.index.shared(c) {
		s.mu.Unlock()
		return false
	}
	c.own.giving = true
	s.mu.Unlock()
	given := sameDevice(to, c.Path) && s.finish(c, s.Get) == nil && s.move(c, to, at, mode) == nil
	s.mu.Lock()
	c.own.giving = false
	s.index.leave(c)
	s.mu.Unlock()
	s.sweep()
	return given
}

// Stay implements WholeFiles.
func (s *directory) Stay(e *Entry) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.index.whole[keyOf(e.Size, e.Chunks)]
	if c == nil {
		return func() {}
	}
	c.own.copied++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.own.copied--
	}
}

// finish makes sure that all chunks of a file are right; those that are not come from get.
func (s *directory) finish(c *backing, get func(h Hash, buf []byte) ([]byte, error)) error {
	var left []int
	s.mu.Lock()
	for i, ok := range c.own.right {
		if !ok {
			left = append(left, i)
		}
	}
	s.mu.Unlock()
	var mu sync.Mutex
	var first error // all that are missing are to be known, not only one
	failed := inParallel(left, ChunkSize, func(i int, buf []byte) error {
		if c.isHole(i) {
			return s.empty(c, i)
		}
		data, err := get(c.Chunks[i], buf)
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			first = cmp.Or(first, err)
			return nil
		}
		s.mu.Lock()
		here := c.own.right[i]
		s.mu.Unlock()
		if here { // that is where it was read
			return nil
		}
		if len(data) != chunkLen(c.Stamp.Size, i) {
			return ErrManifest
		}
		if err := s.put(chunkPlace{c, i}, data); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.index.filled(c.Chunks[i], chunkPlace{c, i})
		return nil
	})
	return cmp.Or(failed, first)
}

// empty makes sure that there is nothing where a file has a hole: who had it may have written
// there.
func (s *directory) empty(c *backing, i int) error {
	f, err := os.OpenFile(c.Path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if punchHole(f, int64(i)*ChunkSize, ChunkSize) != nil { // not every file system does it
		if _, err := f.WriteAt(make([]byte, ChunkSize), int64(i)*ChunkSize); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.own.right[i] = true
	return nil
}

// sameDevice reports whether a file can be moved to a directory.
func sameDevice(dir *os.Root, name string) bool {
	to, err1 := dir.Stat(".")
	from, err2 := os.Lstat(name)
	return err1 == nil && err2 == nil && StampOf(to).Device == StampOf(from).Device
}

// move gives a file to a worker.
func (s *directory) move(c *backing, to *os.Root, at string, mode fs.FileMode) error {
	dir, err := to.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	a := c.own
	a.moves.Lock()
	defer a.moves.Unlock()
	home := c.Path
	if err := os.Chmod(home, mode); err != nil {
		return err
	}
	if err := unix.Renameat(unix.AT_FDCWD, home, int(dir.Fd()), path.Base(at)); err != nil {
		err = cmp.Or(os.Chmod(home, 0o600), err)
		if info, there := os.Lstat(home); there == nil {
			s.mu.Lock()
			s.index.seal(c, StampOf(info)) // of which only the time of its mode is another
			s.mu.Unlock()
		}
		return err
	}
	var now Stamp
	if info, err := to.Lstat(path.Base(at)); err == nil {
		now = StampOf(info)
	}
	s.mu.Lock()
	s.index.moved(c, at, true, now)
	s.mu.Unlock()
	_ = s.notes.write(c, true) // without it the next life does not know that the worker has it
	return nil
}

// TakeBack implements WholeFiles.
func (s *directory) TakeBack(dir string, undo func(*os.File) error) {
	var all []*backing
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	s.mu.Lock()
	for c := range s.index.away {
		if strings.HasPrefix(c.Path, dir+"/") {
			all = append(all, c)
		}
	}
	s.mu.Unlock()
	for _, c := range all {
		s.takeOne(dir, c, undo)
	}
	s.sweep()
}

func (s *directory) takeOne(dir string, c *backing, undo func(*os.File) error) {
	a, home := c.own, s.home(c.name)
	a.moves.Lock()
	defer a.moves.Unlock()
	s.mu.Lock()
	wanted, given := c.users > 0 && s.index.whole[a.key] == nil, a.sealed
	s.mu.Unlock()
	back := wanted && bring(dir, strings.TrimPrefix(c.Path, dir+"/"), home, given, c.weight(), undo) == nil
	s.mu.Lock()
	if !back || s.index.whole[a.key] != nil {
		s.index.drop(c)
		s.mu.Unlock()
		if back {
			os.Remove(home)
		}
		return
	}
	s.index.moved(c, home, false, Stamp{})
	s.index.found(c, func(int) bool { return true }) // also what was evicted meanwhile
	s.mu.Unlock()
	if s.notes.write(c, true) != nil { // the next life would look for it elsewhere
		s.mu.Lock()
		defer s.mu.Unlock()
		s.index.drop(c)
	}
}

// bring moves a file of a directory into the store, if it is the one that was given. Its
// owner can have made anything of it.
func bring(dir, name, home string, given Stamp, weight int64, undo func(*os.File) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	below, err := root.OpenRoot(path.Dir(name))
	if err != nil {
		return err
	}
	defer below.Close()
	info, err := below.Lstat(path.Base(name))
	if err != nil {
		return err
	}
	if !given.same(info) || roomOf(info) > weight+weight/16+ChunkSize { // it may have got more than shows
		return ErrChangedSince
	}
	from, err := below.Open(".")
	if err != nil {
		return err
	}
	defer from.Close()
	if err := os.MkdirAll(filepath.Dir(home), 0o700); err != nil {
		return err
	}
	if err := unix.Renameat(int(from.Fd()), path.Base(name), unix.AT_FDCWD, home); err != nil {
		return err
	}
	if err := claimFile(home, given, undo); err != nil {
		return cmp.Or(os.RemoveAll(home), err)
	}
	return nil
}

// same reports whether a file is that of a stamp, and was not written to by what leaves
// traces, and has one name only. Its name, mode and owner may have changed.
func (s Stamp) same(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	now := StampOf(info)
	now.Changed = s.Changed
	return ok && info.Mode().IsRegular() && st.Nlink == 1 && now == s
}

// roomOf is how many bytes a file takes on its disk.
func roomOf(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return 0
}

// claimFile makes a file the node's alone.
func claimFile(name string, given Stamp, undo func(*os.File) error) error {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !given.same(info) {
		return ErrChangedSince
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		if err := f.Chown(os.Geteuid(), os.Getegid()); err != nil {
			return fmt.Errorf("take %s back: %w", name, bare(err))
		}
	}
	// Who has it open, or in memory, could write to it when it is somebody else's.
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err == unix.EAGAIN {
		return fmt.Errorf("%s is still written to", name)
	} else if err == nil {
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	}
	if undo != nil {
		if err := undo(f); err != nil {
			return err
		}
	}
	return f.Chmod(0o600)
}

// moved reports whether a blob is elsewhere than where it was looked for, since a worker has
// got its file, or has given it back.
func (s *directory) moved(h Hash, p spot) bool {
	if p.from.own == nil {
		return false
	}
	p.from.own.moves.Lock() // until it is where it will be
	defer p.from.own.moves.Unlock()
	now, held := s.spot(h)
	return held && (now.from != p.from || now.move != p.move)
}

// spoiled is lost for an assembled file.
func (s *directory) spoiled(h Hash, c *backing) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.index.items[h]; it != nil {
		s.index.unrefer(it, func(r *ref) bool { return r.from == c })
	}
	switch _, left := s.index.items[h]; {
	case left:
		return nil
	case c.own.away:
		return fmt.Errorf("%w (a worker here has changed it)", notFound(h))
	}
	return fmt.Errorf("%w (its file was damaged)", notFound(h))
}
