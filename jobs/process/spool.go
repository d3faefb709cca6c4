package process

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/disk"
	"zorilla/jobs/work"
)

// DefaultSpool is how many bytes of a stream may wait for their delivery
// before the worker waits in its writes.
const DefaultSpool = 64 << 20

const (
	pipeSize  = 1 << 20   // asked for; the kernel's limit for users
	firstSize = 8 << 10   // of the buffer: most streams are short
	pumpSize  = 256 << 10 // of those that are not
	punchSize = 16 << 20  // acknowledged bytes are freed in steps of this
)

// spool moves one stream of the worker from its pipe into a file. While too
// much of the file is unacknowledged it does not read, so that the worker's
// writes block. Any goroutine may ack; only pump writes.
type spool struct {
	pipe  *os.File // reading end, not blocking
	fd    int      // of it
	path  string
	file  *os.File // made with the first byte; guarded by written > 0
	limit int64
	bound *allowance // of both streams
	room  *disk.Room // where the file is
	moved func()     // called after each step, must not block

	last chan struct{} // closed when the worker's processes are gone
	wake chan struct{} // capacity 1: acked has changed

	turn   sync.Mutex // held from reading the pipe until it is stored
	buf    []byte     // for who has the turn; so are the next ones
	hand   []byte     // what was read, and is not stored since the disk was full
	closed bool

	mu      sync.Mutex
	written int64
	acked   int64
	punched int64
}

// newSpool makes a pipe, and returns the writing end for the worker, blocking.
func newSpool(root, name string, limit int64, bound *allowance, room *disk.Room, moved func()) (*spool, *os.File, error) {
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
		pipe: os.NewFile(uintptr(p[0]), name), fd: p[0], path: filepath.Join(root, name), limit: limit, bound: bound, room: room, moved: moved,
		last: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	return s, os.NewFile(uintptr(p[1]), name), nil
}

// pump moves bytes until the end of the stream. After finish it takes what is
// in the pipe and returns even if some stranger holds the other end open.
func (s *spool) pump() error {
	for {
		room := s.left()
		if room <= 0 {
			select {
			case <-s.wake:
				continue
			case <-s.last:
				return s.drain()
			}
		}
		err := s.move(room)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			<-s.last
			return s.drain()
		case err != nil && !s.room.Comes(err):
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

// move waits for bytes, and stores what one read brings, at most room.
func (s *spool) move(room int64) error {
	var rerr error
	err := s.access(func() bool {
		var n int
		n, rerr = s.take(min(room, pumpSize))
		if n == 0 && rerr == nil {
			rerr = io.EOF
		}
		return rerr != unix.EAGAIN
	})
	if err == nil {
		err = rerr
	}
	return err
}

// access calls f with the turn whenever there may be something to read, until
// it returns true.
func (s *spool) access(f func() bool) error {
	raw, err := s.pipe.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(uintptr) bool {
		s.turn.Lock()
		defer s.turn.Unlock()
		return f()
	})
}

// take stores what one read brings, after what is in hand. The caller has the turn.
func (s *spool) take(limit int64) (int, error) {
	if err := s.lay(); err != nil {
		return 0, err
	}
	if s.buf == nil {
		s.buf = make([]byte, firstSize)
	}
	for {
		n, err := unix.Read(s.fd, s.buf[:min(limit, int64(len(s.buf)))])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		s.hand = s.buf[:s.bound.consume(n)]
		err = s.lay()
		if n == len(s.buf) && n < pumpSize {
			s.buf = make([]byte, pumpSize)
		}
		return n, err
	}
}

// drain stores all that is in the pipe.
func (s *spool) drain() error {
	if err := s.pipe.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	_, err := s.flush()
	return err
}

// flush stores all that is in the pipe now, and returns how many bytes have
// been written in all.
func (s *spool) flush() (int64, error) {
	for {
		s.turn.Lock()
		n, err := s.take(pumpSize)
		s.turn.Unlock()
		if err == unix.EAGAIN || err == nil && n == 0 {
			return s.size(), nil
		}
		if err != nil && !s.room.Comes(err) {
			return 0, err
		}
	}
}

// put appends bytes that come from elsewhere.
func (s *spool) put(p []byte) error {
	for given := false; ; {
		s.turn.Lock()
		err := s.lay()
		if err == nil && !given {
			given, s.hand = true, p
			err = s.lay()
		}
		s.turn.Unlock()
		if err == nil || !s.room.Comes(err) {
			return err
		}
	}
}

// lay stores what is in hand, as far as the disk has room. The caller has the turn.
func (s *spool) lay() error {
	if len(s.hand) == 0 {
		return nil
	}
	err := s.room.Check(s.size(), int64(len(s.hand)))
	if err == nil {
		err = s.open()
	}
	n := 0
	if err == nil {
		n, err = s.file.Write(s.hand)
	}
	if s.hand = s.hand[n:]; n > 0 {
		s.mu.Lock()
		s.written += int64(n)
		s.mu.Unlock()
		s.moved()
	}
	if err != nil {
		return fmt.Errorf("keep output: %w", err)
	}
	return nil
}

// open makes the file, if it is not there yet.
func (s *spool) open() (err error) {
	if s.file != nil {
		return nil
	}
	s.file, err = os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	return err
}

// close gives the descriptors back. Nobody moves bytes any more.
func (s *spool) close() {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.closed = true
	_ = s.pipe.Close()
	if s.file != nil {
		_ = s.file.Close()
	}
}

// left returns how much more may wait for its delivery.
func (s *spool) left() int64 {
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
		s.turn.Lock()
		defer s.turn.Unlock()
		if s.closed {
			return
		}
		// Not every file system can; then the file just stays long.
		_ = unix.Fallocate(int(s.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, upto-from)
	}
}

// tail returns the last bytes, at most that many, of those that were stored from an offset
// on; none if they cannot be read.
func (s *spool) tail(from, most int64) []byte {
	end := s.size()
	if from = max(from, end-most); from >= end {
		return nil
	}
	f, err := os.Open(s.path)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, _ := io.ReadAll(io.NewSectionReader(f, from, end-from))
	return b
}

// boundRoom bounds how long the last output of a worker whose processes are gone waits for room on
// the disk: up to its walltime, and not at all if it was ended so that it makes room, or for its
// node. It returns what ends that.
func (s *keeper) boundRoom() (done func()) {
	if c := s.life.cause; c == work.Stopped || c == work.Full || c == work.Orphaned {
		s.room.Leave()
	}
	over := make(chan struct{})
	late := (<-chan time.Time)(nil)
	if end := s.life.wallEnd(); !end.IsZero() {
		late = time.After(time.Until(end) + s.spec.terms.Grace)
	}
	go func() {
		select {
		case <-s.terminate:
			s.room.Leave()
		case <-late:
			s.room.Leave()
		case <-over:
		}
	}()
	return func() { close(over) }
}

// allowance is how much more a worker, or the task that runs, may write to both of its streams
// together.
// What is beyond that is read and not kept.
type allowance struct {
	limit int64            // 0 = none
	over  func(serial int) // called once if it writes more

	mu       sync.Mutex // guards what follows
	left     int64
	serial   int // of the task
	exceeded bool
}

// begin lets a worker, or a task, write.
func (a *allowance) begin(serial int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left, a.serial, a.exceeded = a.limit, serial, false
	if a.limit == 0 {
		a.left = math.MaxInt64
	}
}

// lift bounds nothing any more, until the next begin: what comes is the supervisor's own. It
// reports whether there was too much.
func (a *allowance) lift() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = math.MaxInt64
	return a.exceeded
}

// consume returns how many of some bytes are kept.
func (a *allowance) consume(n int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	keep := int(min(int64(n), a.left))
	a.left -= int64(keep)
	if keep < n && !a.exceeded {
		a.exceeded = true
		go a.over(a.serial) // aside: who reads must not wait for who ends the worker
	}
	return keep
}
