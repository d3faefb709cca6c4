package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
	"zorilla/vicinity"
)

// stream is the output of a job's workers here on its way to their origin, which asked
// for it since reports could not hold it. They hold none meanwhile.
type stream struct {
	x     *Executor
	job   jobs.ID
	more  chan struct{} // capacity 1: something was written, or has come
	ended chan struct{} // closed when the origin has asked again
	sent  map[jobs.RankAttempt]wire.Written
}

// lull is how long nothing is written before a stream ends; what comes then is in reports.
const lull = wire.ReportEvery

var errAskedAgain = errors.New("its origin has asked again")

// Streams are those of all jobs.
type Streams struct {
	x  *Executor
	of map[jobs.ID]*stream // as inputs
}

// Begin begins to send what a job's workers here write, from where the origin has it; what
// it began before ends. It may be called from any goroutine.
func (ss *Streams) Begin(from vicinity.ID, job jobs.ID, first []wire.Held) (peer.Sending, error) {
	x := ss.x
	s := &stream{x: x, job: job, more: make(chan struct{}, 1), ended: make(chan struct{}), sent: map[jobs.RankAttempt]wire.Written{}}
	here := false
	ok := x.loop.Call(func() {
		w := x.part.WorkFor(from, job)
		if here = w != nil && w.Spec.Array == nil; !here { // results of tasks come with their output
			return
		}
		if before := x.Streams.of[job]; before != nil {
			close(before.ended)
		}
		x.Streams.of[job] = s
		x.part.Held(time.Now(), job, first, false)
	})
	switch {
	case !ok:
		return nil, jobs.ErrStopped
	case !here:
		return nil, fmt.Errorf("%w: no worker of job %s writes here", jobs.ErrNotFound, job.Short())
	}
	return s, nil
}

func (s *stream) wake() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// Held implements peer.Sending.
func (s *stream) Held(list []wire.Held) {
	s.x.loop.Post(func() {
		if s.x.Streams.of[s.job] != s {
			return
		}
		whole := false
		for _, h := range list {
			id := participant.WorkerID{Job: s.job, RankAttempt: h.RankAttempt}
			whole = whole || s.x.Ended(id) && s.x.Written(id) == h.Have
		}
		s.x.part.Held(time.Now(), s.job, list, whole)
		s.wake()
	})
}

// source is a worker whose output is sent.
type source struct {
	jobs.RankAttempt
	proc *handle
	from wire.Written // if nothing was sent before
}

// sources lists the workers of which the origin may miss something, and reports whether it
// misses any of what they wrote.
func (s *stream) sources() (list []source, behind bool) {
	w := s.x.part.Works[s.job]
	if w == nil {
		return nil, false
	}
	for id, proc := range s.x.procs {
		if id.Job != s.job {
			continue
		}
		if has, known := w.Acked(id.RankAttempt); known {
			list = append(list, source{id.RankAttempt, proc, has})
			behind = behind || s.x.Written(id) != has
		}
	}
	return list, behind
}

var pieces = sync.Pool{New: func() any { return new([wire.PieceHeader + wire.MaxPiece]byte) }}

// Send implements peer.Sending.
func (s *stream) Send(ctx context.Context, w io.Writer, idle func() error) error {
	x := s.x
	defer x.loop.Post(func() {
		if x.Streams.of[s.job] == s {
			delete(x.Streams.of, s.job)
			x.part.Grown(time.Now(), s.job)
		}
	})
	for quiet := time.NewTimer(lull); ; quiet.Reset(lull) {
		var list []source
		var behind bool
		if !x.loop.Call(func() { list, behind = s.sources() }) {
			return jobs.ErrStopped
		}
		sent, err := s.round(w, list)
		if err == nil && !sent {
			err = idle()
		}
		if err != nil {
			return err
		}
		if sent && ctx.Err() == nil {
			select {
			case <-s.ended:
			default:
				continue
			}
		}
		select {
		case <-s.more:
		case <-quiet.C:
			if !behind {
				return nil
			}
		case <-s.ended:
			return errAskedAgain
		case <-ctx.Done():
			return ctx.Err()
		case <-x.loop.Stopped.Done():
			return jobs.ErrStopped
		}
	}
}

// round sends a piece of each stream that has one, and reports whether there was any.
func (s *stream) round(w io.Writer, list []source) (sent bool, err error) {
	buf := pieces.Get().(*[wire.PieceHeader + wire.MaxPiece]byte)
	defer pieces.Put(buf)
	for _, k := range list {
		at, ok := s.sent[k.RankAttempt]
		if !ok {
			at = k.from
		}
		var written wire.Written
		written.Stdout, written.Stderr = k.proc.Written()
		for _, st := range []struct {
			stream work.Stream
			at     *int64
			to     int64
		}{{work.Stdout, &at.Stdout, written.Stdout}, {work.Stderr, &at.Stderr, written.Stderr}} {
			if *st.at >= st.to {
				continue
			}
			n, err := k.proc.ReadOutput(st.stream, *st.at, buf[wire.PieceHeader:])
			switch {
			case errors.Is(err, process.ErrAcked):
				from := *st.at
				s.x.loop.Post(func() {
					s.x.part.Unreadable(time.Now(), participant.WorkerID{Job: s.job, RankAttempt: k.RankAttempt}, st.stream, from)
				})
				return sent, err
			case errors.Is(err, os.ErrClosed): // it was removed
				continue
			case err != nil:
				return sent, err
			case n == 0:
				continue
			}
			wire.PutPieceHeader(buf[:], k.RankAttempt, st.stream, *st.at, n)
			if _, err := w.Write(buf[:wire.PieceHeader+n]); err != nil {
				return sent, err
			}
			*st.at += int64(n)
			sent = true
		}
		s.sent[k.RankAttempt] = at
	}
	return sent, nil
}
