package jobs

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"
	"sync/atomic"

	"zorilla/jobs/process"
)

// outputLog keeps what a job's workers wrote, in the order of its arrival at
// the origin, in one file: frames of a header (rank, attempt, stream, length,
// offset, big-endian) and the bytes. Bytes that arrive twice are stored once.
// Its methods may be called from any goroutine.
type outputLog struct {
	spool   *spool
	damaged bool // something in the middle of the file could not be read when it was opened

	behind  atomic.Bool // it is being synced in the background
	syncing sync.Mutex  // held while the file is synced; who waits for it profits

	mu    sync.Mutex // guards what follows, and makes "look, then append" one step
	have  map[RankAttempt]received
	safe  map[RankAttempt]received // of these, what is durable
	fresh map[RankAttempt]received // what is not: as have
	loose int64                    // bytes that are not durable
}

const outputHeader = 4 + 4 + 1 + 4 + 8

// openOutputLog opens the log of a job and finds out what is in it. A frame
// that was cut short by a crash is removed.
func openOutputLog(path string) (*outputLog, error) {
	l := &outputLog{have: map[RankAttempt]received{}, fresh: map[RankAttempt]received{}}
	valid, err := l.scan(path)
	if err == nil && valid >= 0 {
		err = cut(path, valid)
	}
	if err != nil {
		return nil, fmt.Errorf("output of a job: %w", err)
	}
	l.safe = maps.Clone(l.have)
	l.spool, err = openSpool(path)
	return l, err
}

// cut shortens a file, and makes what is left durable.
func cut(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Sync(), f.Close())
}

// scan reads all headers and returns where the last whole frame ends, or -1
// if there is no file.
func (l *outputLog) scan(path string) (int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	r := bufio.NewReaderSize(f, 1<<16)
	for pos := int64(0); ; {
		o, n, err := readOutputHeader(r)
		if err == nil && o.Offset != l.next(o) {
			err = errDamaged
		}
		if errors.Is(err, errDamaged) {
			l.damaged = o.Attempt != 0 || o.Stream != 0 // a machine that failed may leave zeros at the end
			return pos, nil
		}
		if err != nil || pos+outputHeader+int64(n) > info.Size() {
			return pos, nil
		}
		l.count(o, n)
		pos += outputHeader + int64(n)
		if n <= r.Buffered() {
			r.Discard(n)
			continue
		}
		if _, err := f.Seek(pos, io.SeekStart); err != nil { // much output is not read
			return 0, err
		}
		r.Reset(f)
	}
}

// next returns the offset at which the stream of o goes on.
func (l *outputLog) next(o Output) int64 {
	got := l.have[RankAttempt{o.Rank, o.Attempt}]
	if o.Stream == process.Stderr {
		return got.stderr
	}
	return got.stdout
}

func (l *outputLog) count(o Output, n int) {
	ra := RankAttempt{o.Rank, o.Attempt}
	got := l.have[ra]
	if o.Stream == process.Stderr {
		got.stderr = o.Offset + int64(n)
	} else {
		got.stdout = o.Offset + int64(n)
	}
	l.have[ra] = got
}

// append stores what is new of the pieces. Pieces that would leave a gap are
// left out.
func (l *outputLog) append(pieces []Output) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var buf []byte
	type fresh struct {
		o Output
		n int
	}
	var added []fresh
	next := map[RankAttempt]received{}
	for _, o := range pieces {
		ra := RankAttempt{o.Rank, o.Attempt}
		got, ok := next[ra]
		if !ok {
			got = l.have[ra]
		}
		at := &got.stdout
		if o.Stream == process.Stderr {
			at = &got.stderr
		}
		if o.Offset > *at || o.Offset+int64(len(o.Data)) <= *at {
			continue
		}
		o.Data = o.Data[*at-o.Offset:]
		o.Offset = *at
		*at += int64(len(o.Data))
		next[ra] = got
		buf = appendOutputHeader(buf, o)
		buf = append(buf, o.Data...)
		added = append(added, fresh{o, len(o.Data)})
	}
	if len(added) == 0 {
		return nil
	}
	if err := l.spool.append(buf); err != nil {
		return fmt.Errorf("store output: %w", err)
	}
	for _, a := range added {
		l.count(a.o, a.n)
		ra := RankAttempt{a.o.Rank, a.o.Attempt}
		l.fresh[ra] = l.have[ra]
	}
	l.loose += int64(len(buf))
	return nil
}

// sync makes durable what has been appended so far. Callers that come while it
// runs share the next one.
func (l *outputLog) sync() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	fresh, loose := l.fresh, l.loose
	l.fresh, l.loose = map[RankAttempt]received{}, 0
	l.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	err := l.spool.sync()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		maps.Copy(l.safe, fresh)
		return nil
	}
	for ra, got := range fresh {
		if _, newer := l.fresh[ra]; !newer {
			l.fresh[ra] = got
		}
	}
	l.loose += loose
	return fmt.Errorf("sync output: %w", err)
}

// loosely returns how many bytes are not durable.
func (l *outputLog) loosely() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.loose
}

// confirm tells in an acknowledgement what may be freed: what is durable.
func (l *outputLog) confirm(acks []WorkerAck) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range acks {
		a := &acks[i]
		safe := l.safe[a.RankAttempt]
		a.AheadOut, a.AheadErr = max(0, a.Stdout-safe.stdout), max(0, a.Stderr-safe.stderr)
		a.Stdout, a.Stderr = a.Stdout-a.AheadOut, a.Stderr-a.AheadErr
	}
}

// received returns how many bytes of each worker are there.
func (l *outputLog) received(ras []RankAttempt) map[RankAttempt]received {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := make(map[RankAttempt]received, len(ras))
	for _, ra := range ras {
		m[ra] = l.have[ra]
	}
	return m
}

// read calls f with each piece that is wanted, in order. With follow it goes on
// until the log is closed.
func (l *outputLog) read(ctx context.Context, follow bool, want func(RankAttempt) bool, f func(Output) error) error {
	src := l.spool.reader(ctx, follow)
	defer src.Close()
	r := bufio.NewReaderSize(src, 1<<16)
	for {
		o, n, err := readOutputHeader(r)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !want(RankAttempt{o.Rank, o.Attempt}) {
			if _, err := r.Discard(n); err != nil {
				return err
			}
			continue
		}
		o.Data = make([]byte, n)
		if _, err := io.ReadFull(r, o.Data); err != nil {
			return err
		}
		if err := f(o); err != nil {
			return err
		}
	}
}

func appendOutputHeader(b []byte, o Output) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(o.Rank))
	b = binary.BigEndian.AppendUint32(b, uint32(o.Attempt))
	b = append(b, byte(o.Stream))
	b = binary.BigEndian.AppendUint32(b, uint32(len(o.Data)))
	return binary.BigEndian.AppendUint64(b, uint64(o.Offset))
}

func readOutputHeader(r io.Reader) (Output, int, error) {
	var h [outputHeader]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return Output{}, 0, err
	}
	o := Output{
		Rank: int(binary.BigEndian.Uint32(h[0:])), Attempt: int(binary.BigEndian.Uint32(h[4:])),
		Stream: process.Stream(h[8]), Offset: int64(binary.BigEndian.Uint64(h[13:])),
	}
	n := int(binary.BigEndian.Uint32(h[9:]))
	if n > maxBody || (o.Stream != process.Stdout && o.Stream != process.Stderr) {
		return o, 0, errDamaged
	}
	return o, n, nil
}

var errDamaged = errors.New("output log is damaged")
