package transfer

import (
	"fmt"
	"os"
	"sync"
)

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
