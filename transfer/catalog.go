package transfer

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
)

// catalog is what a store knows of its blobs, behind a lock.
type catalog struct {
	mu    sync.Mutex // guards what follows
	index index
	// changed has why blobs were lost that were read from files outside.
	changed map[Hash]error
	onLost  func(owners []string) // nil = nobody wants to know
}

func newCatalog(limit int64) catalog {
	return catalog{index: newIndex(limit), changed: make(map[Hash]error)}
}

// Has implements Store. It does no I/O: a file that was damaged or removed
// from outside is noticed by Get.
func (s *catalog) Has(h Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.use(h)
}

// Pin implements Pinner.
func (s *catalog) Pin(owner string, hashes ...Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.pin(owner, hashes)
}

// Pinned implements Pinner.
func (s *catalog) Pinned(owner string) []Hash {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.pinned(owner)
}

// Holds implements Referrer.
func (s *catalog) Holds(h Hash) (held, own bool) {
	k := s.known(h)
	return k.held, k.kept
}

// Lost implements Referrer.
func (s *catalog) Lost(h Hash) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed[h]
}

// OnLost implements Referrer.
func (s *catalog) OnLost(f func(owners []string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onLost = f
}

// Contents implements Keeper.
func (s *catalog) Contents() Contents {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Contents{Usage: s.index.usage(), Limit: s.index.limit, Needs: []Need{}}
	for owner, hashes := range s.index.owners {
		n := Need{Owner: owner}
		for h := range hashes {
			if it := s.index.items[h]; it != nil {
				n.Blobs++
				n.Bytes += it.size
			}
		}
		if n.Blobs > 0 {
			c.Needs = append(c.Needs, n)
		}
	}
	slices.SortFunc(c.Needs, func(a, b Need) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Owner, b.Owner))
	})
	return c
}

// Usage returns how much the store holds.
func (s *catalog) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.usage()
}

// knowledge is what this life of a store knows of a blob.
type knowledge struct {
	held  bool
	kept  bool // in a file of the store, for everybody who needs it
	whole bool // it was compared with its hash
	safe  bool
}

func (s *catalog) known(h Hash) (k knowledge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.index.items[h]
	if it == nil {
		return k
	}
	k = knowledge{held: true, kept: it.kept(), whole: it.seen != Stamp{}, safe: it.safe}
	if !it.own {
		r := it.best()
		k.whole = r.seen != Stamp{} || r.sure()
	}
	return k
}

// note changes what is known of those of the blobs that are held.
func (s *catalog) note(f func(*item), hashes ...Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range hashes {
		if it := s.index.items[h]; it != nil {
			f(it)
		}
	}
}

var _ PinStore = (*MemStore)(nil)

// MemStore is a PinStore in memory.
type MemStore struct {
	catalog
	blobs map[Hash][]byte // guarded by mu
}

// NewMemStore returns a store that keeps at most limit bytes of blobs that
// nobody pins; 0 means DefaultCache.
func NewMemStore(limit int64) *MemStore {
	s := &MemStore{catalog: newCatalog(limit), blobs: make(map[Hash][]byte)}
	s.index.evicting = true
	return s
}

// Put implements Putter.
func (s *MemStore) Put(h Hash, data []byte) error {
	if err := check(h, data); err != nil {
		return err
	}
	return s.PutVerified(h, data)
}

// PutVerified implements PinStore.
func (s *MemStore) PutVerified(h Hash, data []byte) error {
	own := append([]byte(nil), data...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.add(h, int64(len(own)))
	s.blobs[h] = own
	s.evictLocked()
	return nil
}

// Get implements Getter.
func (s *MemStore) Get(h Hash, buf []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.index.use(h) {
		return nil, notFound(h)
	}
	data := s.blobs[h]
	buf = sized(buf, len(data))
	copy(buf, data)
	return buf, nil
}

// Unpin implements Pinner.
func (s *MemStore) Unpin(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.unpin(owner)
	s.evictLocked()
}

// Sync implements PinStore. Nothing of a MemStore survives its process, but what
// is not held is not safe.
func (s *MemStore) Sync(hashes ...Hash) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range hashes {
		if s.index.items[h] == nil {
			return fmt.Errorf("sync blob: %w", notFound(h))
		}
	}
	return nil
}

// StartEviction implements PinStore. A MemStore begins empty, so it evicts from
// the start.
func (s *MemStore) StartEviction() {}

// Discard implements Pinner.
func (s *MemStore) Discard(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.index.discard(owner) {
		delete(s.blobs, h)
	}
}

// Read implements PinStore.
func (s *MemStore) Read(h Hash, buf []byte, f func(p []byte, size int) error) ([]byte, error) {
	data, err := s.Get(h, buf)
	if err != nil {
		return buf, err
	}
	return data, f(data, len(data))
}

// Refer implements Referrer: nothing is read from files.
func (s *MemStore) Refer(File, Reference) error { return ErrElsewhere }

// Keep implements Referrer.
func (s *MemStore) Keep(h Hash, _ bool) bool { return s.Has(h) }

// Expect implements WholeFiles.
func (s *MemStore) Expect(*Manifest, bool) (done func()) { return func() {} }

// Give implements WholeFiles.
func (s *MemStore) Give(*Entry, *os.Root, string, fs.FileMode) bool { return false }

// Stay implements WholeFiles.
func (s *MemStore) Stay(*Entry) (done func()) { return func() {} }

// TakeBack implements WholeFiles.
func (s *MemStore) TakeBack(string, func(*os.File) error) {}

// Locate implements WholeFiles.
func (s *MemStore) Locate(Hash) File { return File{} }

// CopyTo implements WholeFiles.
func (s *MemStore) CopyTo(Hash, int, *os.File, int64) bool { return false }

// Verify implements Keeper. Nothing damages what is in memory.
func (s *MemStore) Verify(context.Context) (Checked, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Checked{Blobs: len(s.blobs), Damaged: []Hash{}}
	for _, data := range s.blobs {
		c.Bytes += int64(len(data))
	}
	return c, nil
}

// Prune implements Keeper.
func (s *MemStore) Prune() Pruned {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := Pruned{Bytes: s.index.evictableSum}
	for _, h := range s.index.evict(0) {
		delete(s.blobs, h)
		p.Blobs++
	}
	p.Bytes -= s.index.evictableSum
	return p
}

func (s *MemStore) evictLocked() {
	for _, h := range s.index.evict(s.index.limit) {
		delete(s.blobs, h)
	}
}

// Heap keeps chunks for a while in a file without a name, which is gone when the
// Heap is closed or its process ends.
type Heap struct {
	file *os.File

	mu   sync.Mutex
	at   map[Hash]heapPlace
	size int64
}

type heapPlace struct {
	at   int64
	size int
}

// NewHeap makes the file in a directory; "" = where temporary files are.
func NewHeap(dir string) (*Heap, error) {
	f, err := os.CreateTemp(dir, ".zorilla-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return &Heap{file: f, at: map[Hash]heapPlace{}}, nil
}

// Close lets go of the chunks.
func (h *Heap) Close() error { return h.file.Close() }

// Empty forgets all chunks, and gives back their room.
func (h *Heap) Empty() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.at)
	h.size = 0
	if err := h.file.Truncate(0); err != nil {
		return fmt.Errorf("let go of chunks: %w", bare(err))
	}
	return nil
}

// Put implements Putter.
func (h *Heap) Put(hash Hash, data []byte) error {
	if err := check(hash, data); err != nil {
		return err
	}
	return h.PutVerified(hash, data)
}

// PutVerified implements verifiedPutter.
func (h *Heap) PutVerified(hash Hash, data []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, have := h.at[hash]; have {
		return nil
	}
	if _, err := h.file.WriteAt(data, h.size); err != nil {
		return fmt.Errorf("keep chunks: %w", bare(err))
	}
	h.at[hash] = heapPlace{h.size, len(data)}
	h.size += int64(len(data))
	return nil
}

// Get implements Getter.
func (h *Heap) Get(hash Hash, buf []byte) ([]byte, error) {
	h.mu.Lock()
	place, have := h.at[hash]
	h.mu.Unlock()
	if !have {
		return nil, notFound(hash)
	}
	buf = sized(buf, place.size)
	if _, err := h.file.ReadAt(buf, place.at); err != nil {
		return nil, fmt.Errorf("keep chunks: %w", bare(err))
	}
	return buf, nil
}
