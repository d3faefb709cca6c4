package transfer

import (
	"cmp"
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const assembled = "assembled"

// home is where a file is that no worker has.
func (s *directory) home(name string) string {
	at := filepath.Join(s.dir, assembled, name)
	if abs, err := filepath.Abs(at); err == nil {
		return abs
	}
	return at // which Check refuses
}

// Expect implements WholeFiles.
func (s *directory) Expect(m *Manifest, writeBack bool) (done func()) {
	var all []*backing
	for i := range m.Entries {
		if e := &m.Entries[i]; e.bundle == nil && len(e.Chunks) > 1 {
			if c := s.expected(e); c != nil {
				if writeBack {
					c.own.writeBack.Store(true)
				}
				all = append(all, c)
			}
		}
	}
	return func() {
		for _, c := range all {
			s.endFetch(c)
		}
		s.sweep()
	}
}

// expected returns the file of an entry that chunks are missing of.
func (s *directory) expected(e *Entry) *backing {
	key := keyOf(e.Size, e.Chunks)
	s.recheck(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &s.index
	missing := func(h Hash) bool { return x.items[h] == nil || !x.items[h].lasts() }
	c := x.whole[key]
	switch {
	case c != nil && c.own.giving:
		return nil
	case c == nil && !slices.ContainsFunc(e.Chunks, missing):
		return nil
	case c == nil:
		name := rand.Text()
		c = &backing{name: name, own: &assembly{key: key, right: make([]bool, len(e.Chunks))}}
		c.File = File{Path: s.home(name), Stamp: Stamp{Size: e.Size}, Chunks: e.Chunks}
		if c.Check() != nil || repeats(e.Size, e.Chunks) {
			return nil
		}
		x.list(c)
	}
	x.expect(c)
	return c
}

// recheck looks whether somebody else has written to a file of the store.
func (s *directory) recheck(key Hash) {
	s.mu.Lock()
	c := s.index.whole[key]
	if c == nil || !c.own.made || c.own.busy() {
		s.mu.Unlock()
		return
	}
	path, sealed := c.Path, c.own.sealed
	s.mu.Unlock()
	if info, err := os.Lstat(path); err == nil && StampOf(info) == sealed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.own.busy() && c.own.sealed == sealed {
		s.index.doubt(c)
	}
}

// fill writes a blob to its places. It reports false if it has none.
func (s *directory) fill(h Hash, data []byte) (bool, error) {
	s.mu.Lock()
	var places []chunkPlace
	for _, p := range s.index.expected[h] {
		if len(data) == chunkLen(p.of.Stamp.Size, p.i) { // else the manifest was wrong
			places = append(places, p)
			p.of.own.writing++
		}
	}
	s.mu.Unlock()
	var failed error
	for _, p := range places {
		failed = cmp.Or(failed, s.put(p, data))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range places {
		if p.of.own.writing--; failed == nil {
			s.index.filled(h, p)
		}
		s.index.leave(p.of) // whose fetch may have ended
	}
	return len(places) > 0, failed
}

// put writes a chunk to a file that is not given away now.
func (s *directory) put(p chunkPlace, data []byte) error {
	if err := s.make(p.of); err != nil {
		return err
	}
	f, err := os.OpenFile(p.of.Path, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	p.of.own.writes.Lock() // the kernel has others wait by turning in circles
	err = writeAt(f, data, int64(p.i)*ChunkSize)
	p.of.own.writes.Unlock()
	if p.of.own.writeBack.Load() { // it is Sync that has to know whether it was written
		_ = unix.SyncFileRange(int(f.Fd()), int64(p.i)*ChunkSize, int64(len(data)), unix.SYNC_FILE_RANGE_WRITE)
	}
	return cmp.Or(err, f.Close())
}

// make makes the file, if it is not there.
func (s *directory) make(c *backing) error {
	a := c.own
	a.moves.Lock()
	defer a.moves.Unlock()
	if a.made {
		if a.noted {
			a.noted = false
			return s.notes.write(c, false)
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(c.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := cmp.Or(f.Truncate(c.Stamp.Size), f.Close(), s.notes.write(c, false)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a.made = true
	for i := range a.right {
		a.right[i] = a.right[i] || c.isHole(i)
	}
	return nil
}

// endFetch is for the end of a fetch.
func (s *directory) endFetch(c *backing) {
	c.own.moves.Lock()
	defer c.own.moves.Unlock()
	info, err := os.Lstat(c.Path)
	s.mu.Lock()
	last := s.index.expectNoMore(c)
	whole := last && c.own.made && c.complete()
	if last {
		if err == nil {
			s.index.seal(c, StampOf(info))
		}
		if whole {
			c.own.doubted = false
		}
		s.index.leave(c)
	}
	s.mu.Unlock()
	if whole { // without this the next life compares all with its hash first
		c.own.noted = s.notes.write(c, true) == nil
	}
}

// load notes what an earlier life has written down of an assembled file, if that is there.
func (s *directory) load(c *backing) (known bool) {
	if filepath.Base(c.Path) == c.name {
		c.Path = s.home(c.name) // wherever the store was then
	} else {
		c.own.away = true
	}
	f, err := openOutside(c.Path)
	if err != nil {
		return !c.own.away && mayPass(err) // it may be there the next time
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() != c.Stamp.Size {
		return false
	}
	c.own.made = true
	there := func(int) bool { return true }
	if file, ok := f.(*os.File); ok && !c.own.away {
		data := int64(0)
		there = func(i int) bool {
			begin := int64(i) * ChunkSize
			if data < begin+ChunkSize {
				data = nextData(file, begin, info.Size())
			}
			return data < begin+int64(chunkLen(info.Size(), i))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.found(c, there)
	return true
}

// clear removes files that nothing is known of.
func (s *directory) clear(known map[string]bool) {
	names, _ := os.ReadDir(filepath.Join(s.dir, assembled)) // none is well
	for _, n := range names {
		if !known[n.Name()] {
			os.RemoveAll(s.home(n.Name()))
		}
	}
}

// punch gives back the room of blobs that were evicted from files that have others. The
// caller holds no claim.
func (s *directory) punch() {
	s.mu.Lock()
	holes := s.index.holes
	s.index.holes = nil
	s.mu.Unlock()
	for _, o := range holes {
		s.claims.take(o.hash)
		s.punchOne(o)
		s.claims.release(o.hash)
	}
}

// punchHole gives back the room of a part of a file.
func punchHole(f *os.File, at, length int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, length)
}

func (s *directory) punchOne(o hole) {
	c := o.from
	c.own.moves.Lock()
	defer c.own.moves.Unlock()
	s.mu.Lock()
	path, sealed := c.Path, c.own.sealed
	idle := c.users > 0 && !c.own.away && !c.own.giving && !c.own.right[o.chunk()]
	if it := s.index.items[o.hash]; it != nil && it.in(c) != nil {
		idle = false
	}
	s.mu.Unlock()
	if !idle {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil || punchHole(f, o.at, o.length) != nil {
		return // it takes room until the others have gone, too
	}
	after, err := f.Stat()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && c.own.filling == 0 && c.own.sealed == sealed && StampOf(before) == sealed {
		s.index.seal(c, StampOf(after))
	}
}
