// Package output keeps what workers write, at the origin of their job: a file of
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
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/work"
)

// File keeps what a job's workers wrote, in the order of its arrival at
// the origin, in one file of frames. Bytes that arrive twice are stored once.
// Its methods may be called from any goroutine.
type File struct {
	Job   jobs.ID
	Spool *Spool
	Limit int64 // bytes of each attempt of a rank that are kept; 0 = all. Set it before Append

	Behind  atomic.Bool // it is being synced in the background
	syncing sync.Mutex  // held while the file is synced; who waits for it profits

	mu    sync.Mutex // guards what follows, and makes "look, then append" one step
	have  map[jobs.RankAttempt]wire.Written
	safe  map[jobs.RankAttempt]wire.Written // of these, what is durable
	fresh map[jobs.RankAttempt]wire.Written // what is not: as have
	loose int64                             // bytes that are not durable
	upTo  int64                             // the file is durable up to there
	mark  int64                             // and says so up to there
	lost  []hole                            // what the disk lost, as far as it was noticed
	over  *jobs.RankAttempt                 // of which more came than the limit
	timed int64                             // the last time in the file that this life of the node wrote
	blind int64                             // bytes of the file that tell nothing
}

// Open opens the file of a job and finds out what is in it. What does
// not stand there as it was written is lost. The file of a job that goes on is cut
// there if it was not durable yet: whoever wrote that still has it.
func Open(path string, job jobs.ID, goesOn bool) (*File, error) {
	w := &File{Job: job, have: map[jobs.RankAttempt]wire.Written{}, fresh: map[jobs.RankAttempt]wire.Written{}}
	err := w.scan(path, goesOn)
	if err != nil {
		return nil, fmt.Errorf("output of a job: %w", err)
	}
	w.safe = maps.Clone(w.have)
	w.Spool, err = OpenSpool(path)
	return w, err
}

// scan finds out what is in the file.
func (w *File) scan(path string, goesOn bool) error {
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
		durable, err = w.durable(f)
		w.mark = durable
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	r := NewFrames(w.Job, f, 0)
	for err == nil && r.Pos < durable {
		var fr Frame
		var skipped int64
		fr, skipped, err = r.Next()
		if w.blind += skipped; err != nil {
			break
		}
		w.count(&fr)
		var whole bool
		if whole, err = r.skip(&fr); err == nil && !whole {
			w.lost = append(w.lost, hole{fr.Key(), fr.Offset, fr.Offset + int64(fr.N)})
		}
	}
	if err != nil && err != io.EOF {
		return err
	}
	if !goesOn {
		return nil
	}
	if w.upTo, err = w.scanLoose(r, info.Size()); err != nil {
		return err
	}
	return errors.Join(f.Truncate(w.upTo), f.Sync())
}

// durable returns up to where the file says that it was durable.
func (w *File) durable(f *os.File) (upTo int64, err error) {
	for r := NewFrames(w.Job, f, 0); err == nil; {
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
func (w *File) scanLoose(r *Frames, size int64) (valid int64, err error) {
	var data []byte
	for valid = r.Pos; valid < size; valid = r.Pos {
		f, skipped, err := r.Next()
		if err == io.EOF || skipped > 0 {
			return valid, nil
		}
		if err != nil {
			return 0, err
		}
		var whole bool
		if data, whole, err = r.Data(&f, data); err != nil || !whole || !f.Note() && f.Offset != w.next(f.Key()) {
			return valid, err
		}
		w.count(&f)
	}
	return valid, nil
}

// next returns the offset at which a stream goes on.
func (w *File) next(key StreamOf) int64 { return w.have[key.RankAttempt].Of(key.Stream) }

// count notes a frame, and what is missing before it.
func (w *File) count(f *Frame) {
	if f.Note() {
		return
	}
	if at := w.next(f.Key()); f.Offset > at {
		w.lost = append(w.lost, hole{f.Key(), at, f.Offset})
	}
	got := w.have[f.ra()]
	if f.Stream == work.Stderr {
		got.Stderr = f.Offset + int64(f.N)
	} else {
		got.Stdout = f.Offset + int64(f.N)
	}
	w.have[f.ra()] = got
}

// Append stores what is new of the pieces. Pieces that would leave a gap are
// left out.
func (w *File) Append(pieces []jobs.Output) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	place, _, _ := w.Spool.State()
	f := frames{job: w.Job, place: place}
	marked := w.upTo > w.mark
	if marked {
		f.add(jobs.Output{Stream: StreamMark, Offset: w.upTo})
	}
	now := time.Now().UnixMilli()
	if later := now - w.timed; later >= timeEvery || later < 0 {
		f.add(jobs.Output{Stream: StreamTime, Offset: now})
	} else {
		now = w.timed
	}
	var added []Frame
	next := map[jobs.RankAttempt]wire.Written{}
	for _, o := range pieces {
		ra := jobs.RankAttempt{Rank: o.Rank, Attempt: o.Attempt}
		got, ok := next[ra]
		if !ok {
			got = w.have[ra]
		}
		at := &got.Stdout
		if o.Stream == work.Stderr {
			at = &got.Stderr
		}
		if o.Offset > *at || o.Offset+int64(len(o.Data)) <= *at {
			continue
		}
		o.Data = o.Data[*at-o.Offset:]
		o.Offset = *at
		if room := w.Limit - got.Stdout - got.Stderr; w.Limit > 0 && int64(len(o.Data)) > room {
			w.over = &ra
			if o.Data = o.Data[:max(room, 0)]; len(o.Data) == 0 {
				continue
			}
		}
		*at += int64(len(o.Data))
		next[ra] = got
		for data := range slices.Chunk(o.Data, maxPiece) {
			o.Data = data
			f.add(o)
			added = append(added, Frame{Output: o, N: len(o.Data)})
			o.Offset += int64(len(data))
		}
	}
	if len(added) == 0 {
		return nil
	}
	if err := w.Spool.Append(f.all()...); err != nil {
		return fmt.Errorf("store output: %w", err)
	}
	for i := range added {
		w.count(&added[i])
		w.fresh[added[i].ra()] = w.have[added[i].ra()]
	}
	if w.timed = now; marked {
		w.mark = w.upTo
	}
	w.loose += f.place - place
	return nil
}

// Overflowed returns an attempt of a rank of which more came than the limit, if there is one.
func (w *File) Overflowed() (ra jobs.RankAttempt, yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over == nil {
		return ra, false
	}
	return *w.over, true
}

// Sync makes durable what has been appended so far. Callers that come while it
// runs share the next one.
func (w *File) Sync() error {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	w.mu.Lock()
	fresh, loose := w.fresh, w.loose
	upTo, _, _ := w.Spool.State()
	w.fresh, w.loose = map[jobs.RankAttempt]wire.Written{}, 0
	w.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	err := w.Spool.Sync()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		maps.Copy(w.safe, fresh)
		w.upTo = max(w.upTo, upTo)
		return nil
	}
	for ra, got := range fresh {
		if _, newer := w.fresh[ra]; !newer {
			w.fresh[ra] = got
		}
	}
	w.loose += loose
	return fmt.Errorf("sync output: %w", err)
}

// Loosely returns how many bytes are not durable.
func (w *File) Loosely() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.loose
}

// Confirm tells in an acknowledgement what may be freed: what is durable.
func (w *File) Confirm(acks []wire.WorkerAck) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range acks {
		a := &acks[i]
		safe := w.safe[a.RankAttempt]
		a.AheadOut, a.AheadErr = max(0, a.Stdout-safe.Stdout), max(0, a.Stderr-safe.Stderr)
		a.Stdout, a.Stderr = a.Stdout-a.AheadOut, a.Stderr-a.AheadErr
	}
}

func (w *File) all() map[jobs.RankAttempt]wire.Written {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.have)
}

// Received returns how many bytes of each worker are there.
func (w *File) Received(ras []jobs.RankAttempt) map[jobs.RankAttempt]wire.Written {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := make(map[jobs.RankAttempt]wire.Written, len(ras))
	for _, ra := range ras {
		m[ra] = w.have[ra]
	}
	return m
}

// Held reports what of each worker is there, and durable.
func (w *File) Held(ras []jobs.RankAttempt) []wire.Held {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]wire.Held, len(ras))
	for i, ra := range ras {
		list[i] = wire.Held{RankAttempt: ra, Have: w.have[ra], Safe: w.safe[ra]}
	}
	return list
}

// Read calls f with each piece that is wanted and whole, in order, and notes what
// is not. With follow it goes on until the file is closed. F must not keep what it is given.
func (w *File) Read(ctx context.Context, follow bool, want func(jobs.RankAttempt) bool, f func(jobs.Output) error) error {
	w.mu.Lock()
	src, had := w.Spool.Reader(ctx, follow), maps.Clone(w.have)
	w.mu.Unlock()
	defer src.Close()
	told := map[StreamOf]int64{}
	r := NewFrames(w.Job, src, 0)
	defer r.release()
	for {
		fr, whole, err := r.piece(want)
		if err == io.EOF {
			if follow {
				had = w.all()
			}
			w.missing(had, told, want)
			return nil
		}
		if err != nil {
			return err
		}
		key := fr.Key()
		w.note(hole{key, told[key], fr.Offset})
		if told[key] = fr.Offset + int64(fr.N); !whole {
			w.note(hole{key, fr.Offset, told[key]})
			continue
		}
		if err := f(fr.Output); err != nil {
			return err
		}
	}
}

// StreamOf names a stream of one attempt of a rank.
type StreamOf struct {
	jobs.RankAttempt
	Stream work.Stream
}
