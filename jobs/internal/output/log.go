// Package output keeps what workers write, at the origin of their job: a log of
// frames, each with its own checksum, in which every byte has its rank, attempt,
// stream and offset, so that receiving it twice is harmless and damage is found
// where it is.
//
// A Spool is a file that one writes and many follow while it grows.
package output

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"
	"sync/atomic"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
)

// Log keeps what a job's workers wrote, in the order of its arrival at
// the origin, in one file of frames. Bytes that arrive twice are stored once.
// Its methods may be called from any goroutine.
type Log struct {
	Job   jobs.ID
	Spool *Spool

	Behind  atomic.Bool // it is being synced in the background
	syncing sync.Mutex  // held while the file is synced; who waits for it profits

	mu    sync.Mutex // guards what follows, and makes "look, then append" one step
	have  map[jobs.RankAttempt]wire.Received
	safe  map[jobs.RankAttempt]wire.Received // of these, what is durable
	fresh map[jobs.RankAttempt]wire.Received // what is not: as have
	loose int64                              // bytes that are not durable
	upTo  int64                              // the file is durable up to there
	mark  int64                              // and says so up to there
	lost  []hole                             // what the disk lost, as far as it was noticed
	blind int64                              // bytes of the file that tell nothing
}

// Open opens the log of a job and finds out what is in it. What does
// not stand there as it was written is lost. The file of a job that goes on is cut
// there if it was not durable yet: whoever wrote that still has it.
func Open(path string, job jobs.ID, goesOn bool) (*Log, error) {
	l := &Log{Job: job, have: map[jobs.RankAttempt]wire.Received{}, fresh: map[jobs.RankAttempt]wire.Received{}}
	err := l.scan(path, goesOn)
	if err != nil {
		return nil, fmt.Errorf("output of a job: %w", err)
	}
	l.safe = maps.Clone(l.have)
	l.Spool, err = OpenSpool(path)
	return l, err
}

// scan finds out what is in the file.
func (l *Log) scan(path string, goesOn bool) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	durable := info.Size()
	if goesOn {
		durable, err = l.durable(f)
		l.mark = durable
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	r := NewFrames(l.Job, f, 0)
	for err == nil && r.Pos < durable {
		var fr Frame
		var skipped int64
		fr, skipped, err = r.Next()
		if l.blind += skipped; err != nil {
			break
		}
		l.count(&fr)
		var whole bool
		if whole, err = r.skip(&fr); err == nil && !whole {
			l.lost = append(l.lost, hole{fr.Key(), fr.Offset, fr.Offset + int64(fr.N)})
		}
	}
	if err != nil && err != io.EOF {
		return err
	}
	if !goesOn {
		return nil
	}
	if l.upTo, err = l.scanLoose(r, info.Size()); err != nil {
		return err
	}
	return errors.Join(f.Truncate(l.upTo), f.Sync())
}

// durable returns up to where the file says that it was durable.
func (l *Log) durable(f *os.File) (upTo int64, err error) {
	for r := NewFrames(l.Job, f, 0); err == nil; {
		var fr Frame
		if fr, _, err = r.Next(); err == nil {
			if fr.Stream == StreamMark {
				upTo = max(upTo, fr.Offset)
			}
			_, err = r.skip(&fr)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return upTo, err
}

// scanLoose reads what may not have been durable, and returns where the last
// frame of it ends that is whole.
func (l *Log) scanLoose(r *Frames, size int64) (valid int64, err error) {
	for valid = r.Pos; valid < size; valid = r.Pos {
		f, skipped, err := r.Next()
		if err == io.EOF || skipped > 0 {
			return valid, nil
		}
		if err != nil {
			return 0, err
		}
		if _, whole, err := r.Data(&f); err != nil || !whole || f.Stream != StreamMark && f.Offset != l.next(f.Key()) {
			return valid, err
		}
		l.count(&f)
	}
	return valid, nil
}

// next returns the offset at which a stream goes on.
func (l *Log) next(key StreamOf) int64 { return l.have[key.RankAttempt].Of(key.Stream) }

// count notes a frame, and what is missing before it.
func (l *Log) count(f *Frame) {
	if f.Stream == StreamMark {
		return
	}
	if at := l.next(f.Key()); f.Offset > at {
		l.lost = append(l.lost, hole{f.Key(), at, f.Offset})
	}
	got := l.have[f.ra()]
	if f.Stream == process.Stderr {
		got.Stderr = f.Offset + int64(f.N)
	} else {
		got.Stdout = f.Offset + int64(f.N)
	}
	l.have[f.ra()] = got
}

// Append stores what is new of the pieces. Pieces that would leave a gap are
// left out.
func (l *Log) Append(pieces []jobs.Output) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	place, _, _ := l.Spool.State()
	var buf []byte
	if l.upTo > l.mark {
		buf = appendFrame(buf, l.Job, place, jobs.Output{Stream: StreamMark, Offset: l.upTo})
	}
	mark := len(buf)
	var added []Frame
	next := map[jobs.RankAttempt]wire.Received{}
	for _, o := range pieces {
		ra := jobs.RankAttempt{Rank: o.Rank, Attempt: o.Attempt}
		got, ok := next[ra]
		if !ok {
			got = l.have[ra]
		}
		at := &got.Stdout
		if o.Stream == process.Stderr {
			at = &got.Stderr
		}
		if o.Offset > *at || o.Offset+int64(len(o.Data)) <= *at {
			continue
		}
		o.Data = o.Data[*at-o.Offset:]
		o.Offset = *at
		*at += int64(len(o.Data))
		next[ra] = got
		buf = appendFrame(buf, l.Job, place+int64(len(buf)), o)
		added = append(added, Frame{Output: o, N: len(o.Data)})
	}
	if len(added) == 0 {
		return nil
	}
	if err := l.Spool.Append(buf); err != nil {
		return fmt.Errorf("store output: %w", err)
	}
	for i := range added {
		l.count(&added[i])
		l.fresh[added[i].ra()] = l.have[added[i].ra()]
	}
	if mark > 0 {
		l.mark = l.upTo
	}
	l.loose += int64(len(buf))
	return nil
}

// Sync makes durable what has been appended so far. Callers that come while it
// runs share the next one.
func (l *Log) Sync() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	fresh, loose := l.fresh, l.loose
	upTo, _, _ := l.Spool.State()
	l.fresh, l.loose = map[jobs.RankAttempt]wire.Received{}, 0
	l.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	err := l.Spool.Sync()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		maps.Copy(l.safe, fresh)
		l.upTo = max(l.upTo, upTo)
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

// Loosely returns how many bytes are not durable.
func (l *Log) Loosely() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.loose
}

// Confirm tells in an acknowledgement what may be freed: what is durable.
func (l *Log) Confirm(acks []wire.WorkerAck) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range acks {
		a := &acks[i]
		safe := l.safe[a.RankAttempt]
		a.AheadOut, a.AheadErr = max(0, a.Stdout-safe.Stdout), max(0, a.Stderr-safe.Stderr)
		a.Stdout, a.Stderr = a.Stdout-a.AheadOut, a.Stderr-a.AheadErr
	}
}

func (l *Log) all() map[jobs.RankAttempt]wire.Received {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.have)
}

// Received returns how many bytes of each worker are there.
func (l *Log) Received(ras []jobs.RankAttempt) map[jobs.RankAttempt]wire.Received {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := make(map[jobs.RankAttempt]wire.Received, len(ras))
	for _, ra := range ras {
		m[ra] = l.have[ra]
	}
	return m
}

// Read calls f with each piece that is wanted and whole, in order, and notes what
// is not. With follow it goes on until the log is closed.
func (l *Log) Read(ctx context.Context, follow bool, want func(jobs.RankAttempt) bool, f func(jobs.Output) error) error {
	l.mu.Lock()
	src, had := l.Spool.Reader(ctx, follow), maps.Clone(l.have)
	l.mu.Unlock()
	defer src.Close()
	told := map[StreamOf]int64{}
	for r := NewFrames(l.Job, src, 0); ; {
		fr, _, err := r.Next()
		if err == io.EOF {
			if follow {
				had = l.all()
			}
			l.missing(had, told, want)
			return nil
		}
		if err != nil {
			return err
		}
		if fr.Stream == StreamMark || !want(fr.ra()) {
			if _, err := r.skip(&fr); err != nil {
				return err
			}
			continue
		}
		data, whole, err := r.Data(&fr)
		if err != nil {
			return err
		}
		key := fr.Key()
		l.note(hole{key, told[key], fr.Offset})
		if told[key] = fr.Offset + int64(fr.N); !whole {
			l.note(hole{key, fr.Offset, told[key]})
			continue
		}
		fr.Output.Data = data
		if err := f(fr.Output); err != nil {
			return err
		}
	}
}

// StreamOf names a stream of one attempt of a rank.
type StreamOf struct {
	jobs.RankAttempt
	Stream process.Stream
}
