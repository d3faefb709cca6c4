package transfer

import (
	"fmt"
	"os"
	"sync"
)

// MemStore is a PinStore in memory.
type MemStore struct {
	mu    sync.Mutex // guards what follows
	index index
	blobs map[Hash][]byte
}

// NewMemStore returns a store that keeps at most limit bytes of blobs that
// nobody pins; 0 means DefaultCache.
func NewMemStore(limit int64) *MemStore {
	s := &MemStore{index: newIndex(limit), blobs: make(map[Hash][]byte)}
	s.index.evicting = true
	return s
}

// Put implements Putter.
func (s *MemStore) Put(h Hash, data []byte) error {
	if err := check(h, data); err != nil {
		return err
	}
	return s.putHashed(h, data)
}

func (s *MemStore) putHashed(h Hash, data []byte) error {
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

func (s *MemStore) verified() {}

// Has implements Store.
func (s *MemStore) Has(h Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.use(h)
}

// Pin implements Pinner.
func (s *MemStore) Pin(owner string, hashes ...Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.pin(owner, hashes)
}

// Pinned implements Pinner.
func (s *MemStore) Pinned(owner string) []Hash {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.pinned(owner)
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

// StartEviction implements PinStore. A MemStore, which nothing was in before,
// evicts from the start.
func (s *MemStore) StartEviction() {}

// Discard implements Pinner.
func (s *MemStore) Discard(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.index.discard(owner) {
		delete(s.blobs, h)
	}
}

// Usage tells how much the store holds.
func (s *MemStore) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.usage()
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
	return h.putHashed(hash, data)
}

func (h *Heap) putHashed(hash Hash, data []byte) error {
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
		return nil, fmt.Errorf("blob %s: %w", hash, ErrNotFound)
	}
	if cap(buf) < place.size {
		buf = make([]byte, place.size)
	}
	buf = buf[:place.size]
	if _, err := h.file.ReadAt(buf, place.at); err != nil {
		return nil, fmt.Errorf("keep chunks: %w", bare(err))
	}
	return buf, nil
}
