package jobs

import (
	"context"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// spool is a file that grows at its end while others read it, until it is
// closed for writing. Its methods may be called from any goroutine.
type spool struct {
	path string

	mu      sync.Mutex // guards what follows; never held while waiting
	file    *os.File   // for writing; nil until the first append
	size    int64
	sum     uint32 // CRC-32C of what was appended in this life of the node
	closed  bool
	changed chan struct{}
}

// openSpool returns the spool of a file that may exist already.
func openSpool(path string) (*spool, error) {
	s := &spool{path: path, changed: make(chan struct{})}
	info, err := os.Stat(path)
	switch {
	case err == nil:
		s.size = info.Size()
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	return s, nil
}

// append adds bytes at the end. After an error the file is as it was before.
func (s *spool) append(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return os.ErrClosed
	}
	if s.file == nil {
		if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
			return err
		}
		f, err := os.OpenFile(s.path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		s.file = f
	}
	if _, err := s.file.WriteAt(p, s.size); err != nil {
		return errors.Join(err, s.file.Truncate(s.size))
	}
	s.size += int64(len(p))
	s.sum = crc32.Update(s.sum, castagnoli, p)
	s.wakeLocked()
	return nil
}

func (s *spool) wakeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// sync makes what was appended durable.
func (s *spool) sync() error {
	s.mu.Lock()
	f := s.file
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f.Sync()
}

// digest tells what is in a spool that was begun in this life of the node.
func (s *spool) digest() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return digest(s.size, s.sum)
}

// close ends writing; readers come to an end.
func (s *spool) close() error {
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

// state returns how long the spool is, whether it is complete, and a channel
// that is closed when that changes.
func (s *spool) state() (size int64, closed bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size, s.closed, s.changed
}

// reader reads the spool from the start. With follow it waits for more until
// the spool is closed or ctx ends; without it ends at the present size.
func (s *spool) reader(ctx context.Context, follow bool) *spoolReader {
	size, _, _ := s.state()
	return &spoolReader{ctx: ctx, s: s, follow: follow, end: size}
}

type spoolReader struct {
	ctx    context.Context
	s      *spool
	follow bool
	file   *os.File
	pos    int64
	end    int64 // readable so far
}

// Read reads as an io.Reader does.
func (r *spoolReader) Read(p []byte) (int, error) {
	for r.pos >= r.end {
		if !r.follow {
			return 0, io.EOF
		}
		size, closed, changed := r.s.state()
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
		f, err := os.Open(r.s.path)
		if err != nil {
			return 0, err
		}
		r.file = f
	}
	n, err := r.file.ReadAt(p[:min(int64(len(p)), r.end-r.pos)], r.pos)
	r.pos += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// Close lets go of the file.
func (r *spoolReader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
