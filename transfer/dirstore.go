package transfer

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"zorilla/internal/atomicfile"
)

// DirStore is a PinStore of files below one directory. Call Open before
// anything else, pin what is still needed, then StartEviction.
//
// One process at a time may use the directory. No lock is held during I/O:
// whoever writes or deletes the file of a blob holds the claim on that blob.
type DirStore struct {
	directory
	temp  string
	write func(h Hash, data []byte) error // to its place; a seam for tests of full disks
	open  func(name string) (fs.File, error)
	sync  func(name string) error // a file or a directory
	room  func(have, more int64) error
}

// directory is what a store has in its directory: where the bytes of each blob are, in a file of their
// own, in an assembled one or in one of others, and how files come, leave and are written down. It reads
// and writes no bytes of blobs but those that have their places in assembled files.
type directory struct {
	dir    string
	notes  noteDir
	claims claims

	catalog
}

var _ PinStore = (*DirStore)(nil)

// NewDirStore returns a store below dir that keeps at most limit bytes of
// blobs that nobody pins; 0 means DefaultCache. It does no I/O.
func NewDirStore(dir string, limit int64) *DirStore {
	temp := filepath.Join(dir, "tmp")
	s := &DirStore{temp: temp, directory: directory{
		dir: dir, notes: noteDir{filepath.Join(dir, "files"), temp},
		claims: claims{of: make(map[Hash]chan struct{})}, catalog: newCatalog(limit),
	}}
	s.write, s.room = s.writeFile, func(int64, int64) error { return nil }
	s.open, s.sync = func(name string) (fs.File, error) { return os.Open(name) }, atomicfile.Sync
	return s
}

// Reserve has a store keep some of the disk free: room returns an error, which wraps
// syscall.ENOSPC, if there is no room for so many more bytes of a file that has some. Call it before Open.
func Reserve(s *DirStore, room func(have, more int64) error) { s.room = room }

const algorithm = "sha256"

func (s *directory) file(h Hash) string {
	digits := hex.EncodeToString(h[:])
	return filepath.Join(s.dir, algorithm, digits[:2], digits)
}

// Open makes the directory if need be, clears what a crash left behind, and
// rebuilds the index from the files. The order of last use is that of their
// modification times. Nothing is evicted yet.
func (s *DirStore) Open() error {
	if err := os.RemoveAll(s.temp); err != nil {
		return fmt.Errorf("open blob store: %w", err)
	}
	if err := os.MkdirAll(s.temp, 0o700); err != nil {
		return fmt.Errorf("open blob store: %w", err)
	}
	found, err := scan(filepath.Join(s.dir, algorithm))
	if err != nil {
		return fmt.Errorf("open blob store: %w", err)
	}
	noted, unread, err := s.notes.read()
	if err != nil {
		return fmt.Errorf("open blob store: %w", err)
	}
	s.mu.Lock()
	for _, f := range found {
		s.index.add(f.hash, f.size)
	}
	s.mu.Unlock()
	known := make(map[string]bool)
	for _, name := range unread {
		known[name] = true
	}
	for _, o := range noted {
		if o.own == nil {
			s.mu.Lock()
			s.index.refer(o, Stamp{})
			s.mu.Unlock()
			continue
		}
		if known[o.name] = s.load(o); !known[o.name] {
			s.notes.remove(o)
		}
	}
	s.clear(known)
	return nil
}

type foundFile struct {
	hash Hash
	size int64
	used int64 // Unix nanoseconds
}

// scan lists the blobs below top, oldest first. Files that are not blobs are
// left alone.
func scan(top string) ([]foundFile, error) {
	var found []foundFile
	shelves, err := os.ReadDir(top)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, shelf := range shelves {
		if !shelf.IsDir() {
			continue
		}
		files, err := os.ReadDir(filepath.Join(top, shelf.Name()))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			h, err := ParseHash(hashPrefix + f.Name())
			if err != nil || f.Name()[:2] != shelf.Name() {
				continue
			}
			info, err := f.Info()
			if err != nil || !info.Mode().IsRegular() || info.Size() > MaxBlob {
				continue
			}
			found = append(found, foundFile{h, info.Size(), info.ModTime().UnixNano()})
		}
	}
	slices.SortStableFunc(found, func(a, b foundFile) int { return cmp.Compare(a.used, b.used) })
	return found, nil
}

// StartEviction implements PinStore.
func (s *directory) StartEviction() {
	s.mu.Lock()
	s.index.start()
	s.mu.Unlock()
	s.evict(s.index.limit)
	s.sweep()
}

// Put implements Putter.
func (s *DirStore) Put(h Hash, data []byte) error {
	if err := check(h, data); err != nil {
		return err
	}
	return s.PutVerified(h, data)
}

// PutVerified implements PinStore.
func (s *DirStore) PutVerified(h Hash, data []byte) error {
	err := s.putOnce(h, data)
	if isFull(err) && s.evict(0) > 0 { // the disk is smaller than the limit
		err = s.putOnce(h, data)
	}
	s.evict(s.index.limit)
	if isFull(err) {
		return fmt.Errorf("store blob: the disk of %s is full, free some space there: %w", s.dir, err)
	}
	if err != nil {
		return fmt.Errorf("store blob: %w", err)
	}
	return nil
}

func (s *DirStore) putOnce(h Hash, data []byte) error {
	s.claims.take(h)
	defer s.claims.release(h)
	if k := s.known(h); k.kept {
		if k.whole {
			return nil
		}
		if _, _, err := s.read(h, nil); err == nil {
			return nil
		}
		s.forget(h)
	}
	if err := s.room(0, int64(len(data))); err != nil {
		return err
	}
	if placed, err := s.fill(h, data); placed {
		return err
	}
	if err := s.write(h, data); err != nil {
		return err
	}
	var seen Stamp
	if info, err := os.Lstat(s.file(h)); err == nil {
		seen = StampOf(info)
	}
	s.mu.Lock()
	s.index.add(h, int64(len(data)))
	s.mu.Unlock()
	s.note(func(it *item) { it.seen = seen }, h)
	return nil
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// writeFile puts the file in its place at once and as a whole.
func (s *DirStore) writeFile(h Hash, data []byte) error {
	how, to := atomicfile.How{Temp: s.temp, Loose: true}, s.file(h)
	err := how.Write(to, data)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(to), 0o700); err == nil {
			err = how.Write(to, data)
		}
	}
	return err
}

// Sync implements PinStore. Blobs of an earlier life are read again before they
// count: a machine that failed may have kept their names, and not their bytes. Those in
// files of others need not be, as long as these are what they were when they were
// hashed: it is Get that compares them.
func (s *DirStore) Sync(hashes ...Hash) error {
	fresh := slices.DeleteFunc(slices.Clone(hashes), func(h Hash) bool { return s.known(h).safe })
	same := make(sameFiles)
	unread := slices.DeleteFunc(slices.Clone(fresh), func(h Hash) bool {
		p, _ := s.spot(h)
		return s.known(h).whole || same.has(p.from)
	})
	if err := inParallel(unread, ChunkSize, func(h Hash, buf []byte) error {
		_, err := s.Get(h, buf)
		return err
	}); err != nil {
		return fmt.Errorf("sync blob: %w", err)
	}
	names, shelves := make(map[string]bool), make(map[string]bool)
	for _, h := range fresh {
		name := s.file(h)
		if p, held := s.spot(h); held && p.from != nil { // whose owner cares for the file itself
			name = s.notes.path(p.from)
			if p.from.own != nil {
				names[p.name], shelves[filepath.Dir(p.name)] = true, true
			}
		}
		names[name], shelves[filepath.Dir(name)] = true, true
	}
	for _, all := range []map[string]bool{names, shelves} { // a disk makes several durable in the time of one
		if err := inParallel(slices.Collect(maps.Keys(all)), 0, func(name string, _ []byte) error { return s.sync(name) }); err != nil {
			return fmt.Errorf("sync blob: %w", err)
		}
	}
	s.note(func(it *item) { it.safe = true }, fresh...)
	return nil
}

// Unpin implements Pinner.
func (s *directory) Unpin(owner string) {
	s.mu.Lock()
	s.index.unpin(owner)
	s.mu.Unlock()
	s.evict(s.index.limit)
	s.sweep()
}

// Discard implements Pinner.
func (s *directory) Discard(owner string) {
	s.mu.Lock()
	victims := s.index.discard(owner)
	s.mu.Unlock()
	s.delete(victims)
	s.sweep()
}

// Prune implements Keeper. Before eviction starts it is not known what is needed.
func (s *directory) Prune() Pruned {
	s.mu.Lock()
	before := s.index.evictableSum
	victims := s.index.evict(0)
	p := Pruned{Blobs: len(victims), Bytes: before - s.index.evictableSum}
	s.mu.Unlock()
	s.delete(victims)
	s.sweep()
	return p
}

func (s *directory) forget(h Hash) {
	s.mu.Lock()
	s.index.remove(h)
	s.mu.Unlock()
	s.sweep()
}

// evict deletes evictable blobs until at most keep bytes of them are left, and
// returns how many it deleted. The caller holds no claim.
func (s *directory) evict(keep int64) int {
	s.mu.Lock()
	victims := s.index.evict(keep)
	s.mu.Unlock()
	s.delete(victims)
	return len(victims)
}

// delete removes the files of blobs that the index has let go. The caller holds
// no claim.
func (s *directory) delete(victims []Hash) {
	for _, h := range victims {
		s.claims.take(h)
		if !s.known(h).held { // not put again since
			os.Remove(s.file(h)) // what stays is found again at the next Open
		}
		s.claims.release(h)
	}
	s.punch()
	s.sweep()
}

// claims are those on blobs whose files are written or deleted.
type claims struct {
	mu sync.Mutex
	of map[Hash]chan struct{} // closed at release
}

// take waits until nobody else has a claim on the blob.
func (c *claims) take(h Hash) {
	for {
		c.mu.Lock()
		wait := c.of[h]
		if wait == nil {
			c.of[h] = make(chan struct{})
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		<-wait
	}
}

func (c *claims) release(h Hash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.of[h])
	delete(c.of, h)
}
