package output

import (
	"context"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"

	"zorilla/internal/codec"
)

// Spool is a file that grows at its end while others read it, until it is
// closed for writing. Its methods may be called from any goroutine.
type Spool struct {
	Path string
	// Room, unless it is nil, returns an error, which wraps syscall.ENOSPC, if so many bytes more
	// than it has are too many for the disk. Set it before Append.
	Room func(have, more int64) error

	mu      sync.Mutex // guards what follows; never held while waiting
	file    *os.File   // for writing; nil until the first append
	size    int64
	sum     uint32 // CRC-32C of what was appended in this life of the node
	closed  bool
	changed chan struct{}
}

// OpenSpool returns the spool of a file that may exist already.
func OpenSpool(path string) (*Spool, error) {
	s := &Spool{Path: path, changed: make(chan struct{})}
	info, err := os.Stat(path)
	switch {
	case err == nil:
		s.size = info.Size()
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	return s, nil
}

// Append adds bytes at the end, part after part. After an error the file is as it was before.
func (s *Spool) Append(parts ...[]byte) error {
	more := int64(0)
	for _, p := range parts {
		more += int64(len(p))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return os.ErrClosed
	}
	if s.Room != nil {
		if err := s.Room(s.size, more); err != nil {
			return err
		}
	}
	if s.file == nil {
		if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
			return err
		}
		f, err := os.OpenFile(s.Path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		s.file = f
	}
	end, sum := s.size, s.sum
	for _, p := range parts {
		if _, err := s.file.WriteAt(p, end); err != nil {
			return errors.Join(err, s.file.Truncate(s.size))
		}
		end, sum = end+int64(len(p)), crc32.Update(sum, codec.Castagnoli(), p)
	}
	s.size, s.sum = end, sum
	s.wakeLocked()
	return nil
}

func (s *Spool) wakeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Sync makes what was appended durable.
func (s *Spool) Sync() error {
	s.mu.Lock()
	f := s.file
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f.Sync()
}

// Digest reports what is in a spool that was begun in this life of the node.
func (s *Spool) Digest() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Digest(s.size, s.sum)
}

// Close ends writing; readers come to an end.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.wakeLocked()
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// State returns how long the spool is, whether it is complete, and a channel
// that is closed when that changes.
func (s *Spool) State() (size int64, closed bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size, s.closed, s.changed
}

// Reader reads the spool from the start. With follow it waits for more until
// the spool is closed or ctx ends; without it ends at the present size.
func (s *Spool) Reader(ctx context.Context, follow bool) *SpoolReader {
	size, _, _ := s.State()
	return &SpoolReader{ctx: ctx, s: s, follow: follow, end: size}
}

// SpoolReader follows a Spool.
type SpoolReader struct {
	ctx    context.Context
	s      *Spool
	follow bool
	file   *os.File
	Pos    int64
	end    int64 // readable so far
}

// Read reads as an io.Reader does.
func (r *SpoolReader) Read(p []byte) (int, error) {
	for r.Pos >= r.end {
		if !r.follow {
			return 0, io.EOF
		}
		size, closed, changed := r.s.State()
		if size > r.end {
			r.end = size
			continue
		}
		if closed {
			return 0, io.EOF
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
	if r.file == nil {
		f, err := os.Open(r.s.Path)
		if err != nil {
			return 0, err
		}
		r.file = f
	}
	n, err := r.file.ReadAt(p[:min(int64(len(p)), r.end-r.Pos)], r.Pos)
	r.Pos += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// Close lets go of the file.
func (r *SpoolReader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
