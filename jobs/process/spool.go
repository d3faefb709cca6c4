package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultSpool is how many bytes of a stream may wait for their delivery
// before the worker waits in its writes.
const DefaultSpool = 64 << 20

const (
	pipeSize  = 1 << 20 // asked for; the kernel's limit for users
	pumpSize  = 256 << 10
	punchSize = 16 << 20 // acknowledged bytes are freed in steps of this
)

// spool moves one stream of the worker from its pipe into a file. While too
// much of the file is unacknowledged it does not read, so that the worker's
// writes block. Any goroutine may ack; only pump writes.
type spool struct {
	pipe  *os.File // reading end, not blocking
	path  string
	file  *os.File // made with the first byte; guarded by written > 0
	limit int64
	moved func() // called after each step, must not block

	last chan struct{} // closed when the worker's processes are gone
	wake chan struct{} // capacity 1: acked has changed

	mu      sync.Mutex
	written int64
	acked   int64
	punched int64
}

// newSpool makes a pipe, and returns the writing end for the worker, blocking.
func newSpool(root, name string, limit int64, moved func()) (*spool, *os.File, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	if err := unix.SetNonblock(p[0], true); err != nil {
		return nil, nil, err
	}
	// A larger pipe means fewer switches between worker and supervisor; a
	// user over the kernel's quota keeps the ordinary size.
	_, _ = unix.FcntlInt(uintptr(p[0]), unix.F_SETPIPE_SZ, pipeSize)
	s := &spool{
		pipe: os.NewFile(uintptr(p[0]), name), path: filepath.Join(root, name), limit: limit, moved: moved,
		last: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	return s, os.NewFile(uintptr(p[1]), name), nil
}

// pump moves bytes until the end of the stream. After finish it takes what is
// in the pipe and returns even if some stranger holds the other end open.
func (s *spool) pump() error {
	buf := make([]byte, pumpSize)
	for {
		room := s.room()
		if room <= 0 {
			select {
			case <-s.wake:
				continue
			case <-s.last:
				return s.drain(buf)
			}
		}
		n, err := s.pipe.Read(buf[:min(room, int64(len(buf)))])
		if err := s.store(buf[:n]); err != nil {
			return err
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			<-s.last
			return s.drain(buf)
		case err != nil:
			return err
		}
	}
}

// finish says that nobody writes any more: pump shall come to its end. The
// deadline must be set first, because drain takes it back after last.
func (s *spool) finish() {
	_ = s.pipe.SetReadDeadline(time.Unix(1, 0))
	close(s.last)
}

func (s *spool) drain(buf []byte) error {
	if err := s.pipe.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	raw, err := s.pipe.SyscallConn()
	if err != nil {
		return err
	}
	for {
		var n int
		var rerr error
		if err := raw.Read(func(fd uintptr) bool {
			n, rerr = unix.Read(int(fd), buf)
			return true
		}); err != nil {
			return err
		}
		if rerr == unix.EINTR {
			continue
		}
		if rerr != nil || n <= 0 {
			return nil
		}
		if err := s.store(buf[:n]); err != nil {
			return err
		}
	}
}

func (s *spool) store(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if s.file == nil {
		var err error
		if s.file, err = os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600); err != nil {
			return fmt.Errorf("keep output: %w", err)
		}
	}
	if _, err := s.file.Write(p); err != nil {
		return fmt.Errorf("keep output: %w", err)
	}
	s.mu.Lock()
	s.written += int64(len(p))
	s.mu.Unlock()
	s.moved()
	return nil
}

func (s *spool) room() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit - (s.written - s.acked)
}

func (s *spool) size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written
}

// confirmed returns the latest ack.
func (s *spool) confirmed() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked
}

// ack says that the bytes below the offset have been delivered, and gives
// their room on the disk back from time to time.
func (s *spool) ack(offset int64) {
	s.mu.Lock()
	s.acked = min(max(s.acked, offset), s.written)
	from, upto := s.punched, s.acked/punchSize*punchSize
	s.punched = max(s.punched, upto)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	if upto > from {
		// Not every file system can; then the file just stays long.
		_ = unix.Fallocate(int(s.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, upto-from)
	}
}
