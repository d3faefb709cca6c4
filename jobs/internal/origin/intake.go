package origin

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/sanitize"
	"zorilla/jobs"
	jobsdisk "zorilla/jobs/disk"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/output"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// intake stores the output of jobs as it comes, in reports and in streams.
type intake struct {
	log   zerolog.Logger
	loop  *loop.Loop
	core  *core.Core
	peers *peer.Client

	places chan struct{} // for streams at the same time
}

// store keeps the output of workers that still count, and makes it
// durable before the exit of one of them can be recorded.
func (in *intake) store(j *job, rep *wire.Report, owned map[jobs.RankAttempt]bool) error {
	var keep []jobs.Output
	for _, o := range rep.Output {
		if owned[jobs.RankAttempt{Rank: o.Rank, Attempt: o.Attempt}] && len(o.Data) > 0 {
			keep = append(keep, o)
		}
	}
	if len(keep) > 0 {
		if err := j.output.Append(keep); err != nil {
			return err
		}
	}
	for _, w := range rep.Workers {
		if (w.State == jobs.WorkerEnded || w.Tasks != nil && len(w.Tasks.Results) > 0) && owned[w.RankAttempt] {
			return j.output.Sync()
		}
	}
	return in.keepUp(j, func() {})
}

// keepUp makes output durable when there is much that is not, and calls synced when that
// was done in the background.
func (in *intake) keepUp(j *job, synced func()) error {
	switch loose := j.output.Loosely(); {
	case loose > maxLoose:
		return j.output.Sync()
	case loose > syncLoose && j.output.Behind.CompareAndSwap(false, true):
		in.loop.Go(func() {
			_ = j.output.Sync() // if it goes on to fail, a report will
			j.output.Behind.Store(false)
			synced()
		})
	}
	return nil
}

// A job's output is synced when so many bytes of it are not durable, in the
// background; reports wait for that only if there are many more. Participants
// keep these bytes for so long, for which they have process.DefaultSpool.
const (
	syncLoose = 8 << 20
	maxLoose  = 32 << 20
)

// maxStreams bounds the memory that streams of output take: each has a window of 4 MiB.
// Other nodes send theirs in reports.
const maxStreams = 16

// stream asks a node for a stream of output if its workers write more than its report
// could hold. It runs in the loop.
func (in *intake) stream(j *job, from vicinity.ID, rep *wire.Report, have map[jobs.RankAttempt]wire.Written) {
	if _, asked := j.streams[from]; asked || len(rep.Output) == 0 || j.Primary.Rec.Tasks != nil || j.Primary.Rec.State.Final() {
		return
	}
	var ras []jobs.RankAttempt
	behind := false
	for _, w := range rep.Workers {
		if j.Primary.Rec.Owned(from, w.RankAttempt) {
			ras = append(ras, w.RankAttempt)
			has := have[w.RankAttempt]
			behind = behind || w.Stdout > has.Stdout || w.Stderr > has.Stderr
		}
	}
	if !behind {
		return
	}
	select {
	case in.places <- struct{}{}:
	default:
		return
	}
	if j.streams == nil {
		j.streams = map[vicinity.ID]bool{}
	}
	j.streams[from] = true
	flow := &inflow{out: j.output, fresh: ras, more: make(chan struct{}, 1)}
	flow.keep = func(p jobs.Output) error { return in.piece(j, from, p, flow.notify) }
	flow.notify()
	in.loop.Go(func() {
		err := in.peers.Output(in.loop.Stopped, from, j.Primary.Rec.ID, flow.held, flow.take)
		<-in.places
		if err != nil {
			in.log.Debug().Err(err).Str("job", string(rep.Job)).Str("node", from.Short()).Msg("stream of output")
		}
		in.loop.Post(func() {
			if errors.Is(err, peer.ErrOld) {
				j.streams[from] = false
			} else {
				delete(j.streams, from)
			}
		})
	})
}

var errGap = errors.New("bytes are missing before a piece of output")

// piece keeps a piece of a stream, if its worker still counts, and calls synced when
// more is durable. It runs outside of the loop.
func (in *intake) piece(j *job, from vicinity.ID, p jobs.Output, synced func()) error {
	ra, owned := jobs.RankAttempt{Rank: p.Rank, Attempt: p.Attempt}, false
	if !in.loop.Call(func() { owned = j.Primary.Rec.Owned(from, ra) }) {
		return jobs.ErrStopped
	}
	if !owned {
		return nil
	}
	err := j.output.Append([]jobs.Output{p})
	if err == nil {
		if _, over := j.output.Overflowed(); over {
			in.loop.Post(func() {
				j.bound(time.Now())
				in.core.Flush(time.Now(), j.Job)
			})
		}
		err = in.keepUp(j, synced)
	}
	if err != nil && !errors.Is(err, os.ErrClosed) { // closed: the job has just ended
		in.loop.Post(func() { in.hindered(j, err) })
	}
	if err == nil && p.Offset > j.output.Held([]jobs.RankAttempt{ra})[0].Have.Of(p.Stream) {
		err = errGap
	}
	return err
}

// hindered notes whether a job's output could be stored.
func (in *intake) hindered(j *job, err error) {
	text := ""
	switch {
	case jobsdisk.IsFull(err):
		text = diskFull + ": output waits at its nodes"
	case err != nil:
		text = sanitize.OneLine("its origin cannot store output, which waits at its nodes: " + err.Error())
	}
	if text == j.trouble {
		return
	}
	if j.trouble = text; text != "" {
		in.log.Error().Err(err).Str("job", string(j.Primary.Rec.ID)).Msg("store output")
	}
	j.Primary.Version++
	in.loop.Notify()
}

// heldEvery is the least time between two messages of what has come.
const heldEvery = 5 * time.Millisecond

// inflow is a stream of output as it comes in.
type inflow struct {
	out  *output.File
	keep func(jobs.Output) error // if its worker still counts
	more chan struct{}           // capacity 1: there is something to tell

	mu    sync.Mutex         // guards what follows
	fresh []jobs.RankAttempt // of which there is more than was told
	all   []jobs.RankAttempt // that were told of
}

// notify wakes the goroutine that sends to the node what is here.
func (in *inflow) notify() {
	select {
	case in.more <- struct{}{}:
	default:
	}
}

// held waits until there is something to tell, not too often.
func (in *inflow) held(ctx context.Context) ([]wire.Held, error) {
	select {
	case <-in.more:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	in.mu.Lock()
	first := in.all == nil
	in.mu.Unlock()
	if !first {
		select {
		case <-time.After(heldEvery):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	in.mu.Lock()
	ras := in.fresh
	in.fresh = nil
	for _, ra := range ras {
		if !slices.Contains(in.all, ra) {
			in.all = append(in.all, ra)
		}
	}
	if ras == nil { // more of it is durable
		ras = slices.Clone(in.all)
	}
	in.mu.Unlock()
	return in.out.Held(ras), nil
}

// take keeps a piece.
func (in *inflow) take(p jobs.Output) error {
	if err := in.keep(p); err != nil {
		return err
	}
	ra := jobs.RankAttempt{Rank: p.Rank, Attempt: p.Attempt}
	in.mu.Lock()
	if !slices.Contains(in.fresh, ra) {
		in.fresh = append(in.fresh, ra)
	}
	in.mu.Unlock()
	in.notify()
	return nil
}
