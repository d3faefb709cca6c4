package jobs

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"zorilla/jobs/process"
)

// outputLog keeps what a job's workers wrote, in the order of its arrival at
// the origin, in one file: frames of a header (rank, attempt, stream, length,
// offset, big-endian) and the bytes. Bytes that arrive twice are stored once.
// Its methods may be called from any goroutine.
type outputLog struct {
	spool *spool

	mu   sync.Mutex // guards have, and makes "look, then append" one step
	have map[RankAttempt]received
}

const outputHeader = 4 + 4 + 1 + 4 + 8

// openOutputLog opens the log of a job and finds out what is in it. A frame
// that was cut short by a crash is removed.
func openOutputLog(path string) (*outputLog, error) {
	l := &outputLog{have: map[RankAttempt]received{}}
	valid, err := l.scan(path)
	if err != nil {
		return nil, fmt.Errorf("output of a job: %w", err)
	}
	if valid >= 0 {
		if err := os.Truncate(path, valid); err != nil {
			return nil, fmt.Errorf("output of a job: %w", err)
		}
	}
	l.spool, err = openSpool(path)
	return l, err
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
	}
	return nil
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
		return o, 0, errors.New("output log is damaged")
	}
	return o, n, nil
}
