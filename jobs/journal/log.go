package journal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"zorilla/internal/atomicfile"
)

const (
	defaultLog = 1 << 20 // bytes of a log, unless one transaction needs more
	maxSealed  = 4       // logs that wait for the table before the writer does
)

// log is a file to which transactions are appended, each durable with one sync. It
// is made with all its room, and that is zero: a sync need not write its length down,
// and what was never written can be told from what is damaged.
type log struct {
	*os.File
	size, at int
	spoiled  bool // a write failed, so that nobody knows what is behind at
}

// medium is where logs are written.
type medium interface {
	// create makes a file of zeros that is durable, as is its name.
	create(path string, size int) (*os.File, error)
	write(f *os.File, b []byte, at int64) error
	sync(f *os.File) error
	remove(path string) error
	// loose reports whether nothing is synced, which is for tests that do not end
	// the machine.
	loose() bool
}

// realMedium is the disk.
type realMedium struct{}

func (realMedium) create(path string, size int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(make([]byte, size))
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = atomicfile.Sync(filepath.Dir(path))
	}
	if err != nil {
		f.Close()
		os.Remove(path)
		return nil, err
	}
	return f, nil
}

func (realMedium) write(f *os.File, b []byte, at int64) error {
	_, err := f.WriteAt(b, at)
	return err
}

// sync leaves out when the file was written, unlike os.File.Sync.
func (realMedium) sync(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

func (realMedium) remove(path string) error { return os.Remove(path) }
func (realMedium) loose() bool              { return false }

// logFile names a log. Numbers grow.
func logFile(path string, number uint64) string { return fmt.Sprintf("%s.log-%06d", path, number) }

// createLog makes a log. The caller has the spare.
func (f *File) createLog(size int) (*log, error) {
	f.files++
	file, err := f.medium.create(logFile(f.path, f.files), size)
	if err != nil {
		return nil, err
	}
	return &log{File: file, size: size}, nil
}

// write writes a transaction, and returns when it is on disk.
func (f *File) write(steps []step) error {
	size := sizeOf(steps)
	if size > math.MaxInt32 {
		return fmt.Errorf("%w: %d bytes at once", ErrInvalid, size)
	}
	if err := f.room(size); err != nil {
		return err
	}
	err := f.medium.write(f.log.File, appendTransaction(nil, f.number+1, steps), int64(f.log.at))
	if err == nil {
		err = f.medium.sync(f.log.File)
	}
	if err != nil {
		f.log.spoiled = true // what is behind at counts no more once the next log is begun
		return err
	}
	f.log.at += size
	f.number++
	f.tails.add(f.number, steps)
	return nil
}

// room sees to it that there is a log with so much room.
func (f *File) room(size int) error {
	if f.log != nil && !f.log.spoiled && f.log.at+size <= f.log.size {
		return nil
	}
	for f.tails.waiting() >= maxSealed {
		if err := <-f.freed; err != nil {
			return err
		}
	}
	next := <-f.spare
	if next != nil && next.size < size {
		err := errors.Join(next.Close(), f.medium.remove(next.Name()))
		if next = nil; err != nil {
			f.spare <- nil
			return err
		}
	}
	var err error
	if next == nil {
		next, err = f.createLog(max(size, f.logSize))
	}
	f.spare <- nil
	if err != nil {
		return err
	}
	if f.log != nil {
		f.log.Close()
	}
	f.log = next
	f.tails.begin(next.Name())
	select {
	case f.kick <- struct{}{}:
	default:
	}
	return nil
}

// compact brings logs that are full into the table, and makes the next one, until ctx
// ends.
func (f *File) compact(ctx context.Context) {
	for {
		err := f.applyLogs(1) // all but the one that is written
		select {
		case <-f.freed:
		default:
		}
		f.freed <- err
		if err == nil {
			err = f.makeSpare()
		}
		var again <-chan time.Time
		if err != nil {
			again = time.After(againAfter)
		}
		select {
		case <-f.kick:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// applyLogs brings logs into the table, the oldest first, until so many are left.
func (f *File) applyLogs(left int) error {
	for t := f.tails.oldest(left); t != nil; t = f.tails.oldest(left) {
		if err := f.applyLog(t); err != nil {
			return err
		}
	}
	return nil
}

// applyLog brings the first log into the table, and removes it.
func (f *File) applyLog(t *tail) error {
	if err := f.db.Update(func(tx *bbolt.Tx) error { return apply(tx, t) }); err != nil {
		return f.writeError(err)
	}
	// The other head of the table must know of it too: the log is what it would
	// need if the newer head was damaged.
	if err := f.db.Update(func(*bbolt.Tx) error { return nil }); err != nil {
		return f.writeError(err)
	}
	for _, path := range t.files { // one that comes back is found to be in the table
		if err := f.medium.remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	f.tails.drop()
	return nil
}

func (f *File) makeSpare() error {
	spare := <-f.spare
	var err error
	if spare == nil {
		spare, err = f.createLog(f.logSize)
	}
	f.spare <- spare
	return err
}

// closeLogs brings all logs into the table, and removes them. Those for which the
// disk has no room are left.
func (f *File) closeLogs() {
	if f.log != nil {
		f.log.Close()
	}
	if spare := <-f.spare; spare != nil {
		spare.Close()
		_ = f.medium.remove(spare.Name())
	}
	f.spare <- nil
	_ = f.applyLogs(0)
}
