package jobs

import (
	"context"
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
// the origin, in one file of frames. Bytes that arrive twice are stored once.
// Its methods may be called from any goroutine.
type outputLog struct {
	job   ID
	spool *spool

	behind  atomic.Bool // it is being synced in the background
	syncing sync.Mutex  // held while the file is synced; who waits for it profits

	mu    sync.Mutex // guards what follows, and makes "look, then append" one step
	have  map[RankAttempt]received
	safe  map[RankAttempt]received // of these, what is durable
	fresh map[RankAttempt]received // what is not: as have
	loose int64                    // bytes that are not durable
	upTo  int64                    // the file is durable up to there
	mark  int64                    // and says so up to there
	lost  []hole                   // what the disk lost, as far as it was noticed
	blind int64                    // bytes of the file that tell nothing
}

// openOutputLog opens the log of a job and finds out what is in it. What does
// not stand there as it was written is lost. The file of a job that goes on is cut
// there if it was not durable yet: whoever wrote that still has it.
func openOutputLog(path string, job ID, goesOn bool) (*outputLog, error) {
	l := &outputLog{job: job, have: map[RankAttempt]received{}, fresh: map[RankAttempt]received{}}
	err := l.scan(path, goesOn)
	if err != nil {
		return nil, fmt.Errorf("output of a job: %w", err)
	}
	l.safe = maps.Clone(l.have)
	l.spool, err = openSpool(path)
	return l, err
}

// scan finds out what is in the file.
func (l *outputLog) scan(path string, goesOn bool) error {
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
	r := newFrames(l.job, f, 0)
	for err == nil && r.pos < durable {
		var fr frame
		var skipped int64
		fr, skipped, err = r.next()
		if l.blind += skipped; err != nil {
			break
		}
		l.count(&fr)
		var whole bool
		if whole, err = r.skip(&fr); err == nil && !whole {
			l.lost = append(l.lost, hole{fr.key(), fr.Offset, fr.Offset + int64(fr.n)})
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
func (l *outputLog) durable(f *os.File) (upTo int64, err error) {
	for r := newFrames(l.job, f, 0); err == nil; {
		var fr frame
		if fr, _, err = r.next(); err == nil {
			if fr.Stream == streamMark {
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
func (l *outputLog) scanLoose(r *frames, size int64) (valid int64, err error) {
	for valid = r.pos; valid < size; valid = r.pos {
		f, skipped, err := r.next()
		if err == io.EOF || skipped > 0 {
			return valid, nil
		}
		if err != nil {
			return 0, err
		}
		if _, whole, err := r.data(&f); err != nil || !whole || f.Stream != streamMark && f.Offset != l.next(f.key()) {
			return valid, err
		}
		l.count(&f)
	}
	return valid, nil
}

// next returns the offset at which a stream goes on.
func (l *outputLog) next(key streamOf) int64 { return l.have[key.RankAttempt].of(key.stream) }

func (r received) of(st process.Stream) int64 {
	if st == process.Stderr {
		return r.stderr
	}
	return r.stdout
}

// count notes a frame, and what is missing before it.
func (l *outputLog) count(f *frame) {
	if f.Stream == streamMark {
		return
	}
	if at := l.next(f.key()); f.Offset > at {
		l.lost = append(l.lost, hole{f.key(), at, f.Offset})
	}
	got := l.have[f.ra()]
	if f.Stream == process.Stderr {
		got.stderr = f.Offset + int64(f.n)
	} else {
		got.stdout = f.Offset + int64(f.n)
	}
	l.have[f.ra()] = got
}

// append stores what is new of the pieces. Pieces that would leave a gap are
// left out.
func (l *outputLog) append(pieces []Output) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	place, _, _ := l.spool.state()
	var buf []byte
	if l.upTo > l.mark {
		buf = appendFrame(buf, l.job, place, Output{Stream: streamMark, Offset: l.upTo})
	}
	mark := len(buf)
	var added []frame
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
		buf = appendFrame(buf, l.job, place+int64(len(buf)), o)
		added = append(added, frame{Output: o, n: len(o.Data)})
	}
	if len(added) == 0 {
		return nil
	}
	if err := l.spool.append(buf); err != nil {
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

// sync makes durable what has been appended so far. Callers that come while it
// runs share the next one.
func (l *outputLog) sync() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	fresh, loose := l.fresh, l.loose
	upTo, _, _ := l.spool.state()
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

func (l *outputLog) all() map[RankAttempt]received {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.have)
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

// read calls f with each piece that is wanted and whole, in order, and notes what
// is not. With follow it goes on until the log is closed.
func (l *outputLog) read(ctx context.Context, follow bool, want func(RankAttempt) bool, f func(Output) error) error {
	l.mu.Lock()
	src, had := l.spool.reader(ctx, follow), maps.Clone(l.have)
	l.mu.Unlock()
	defer src.Close()
	told := map[streamOf]int64{}
	for r := newFrames(l.job, src, 0); ; {
		fr, _, err := r.next()
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
		if fr.Stream == streamMark || !want(fr.ra()) {
			if _, err := r.skip(&fr); err != nil {
				return err
			}
			continue
		}
		data, whole, err := r.data(&fr)
		if err != nil {
			return err
		}
		key := fr.key()
		l.note(hole{key, told[key], fr.Offset})
		if told[key] = fr.Offset + int64(fr.n); !whole {
			l.note(hole{key, fr.Offset, told[key]})
			continue
		}
		fr.Output.Data = data
		if err := f(fr.Output); err != nil {
			return err
		}
	}
}
