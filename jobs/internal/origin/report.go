package origin

import (
	"errors"
	"os"
	"time"

	"zorilla/internal/sanitize"
	"zorilla/jobs"
	jobsdisk "zorilla/jobs/disk"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Report stores a report's output and hands the rest to the primary.
// It answers when all that follows from the report is durable. It may be called from any
// goroutine.
func (o *Jobs) Report(from vicinity.ID, rep *wire.Report) (ack wire.Ack, err error) {
	var j *job
	var owned map[jobs.RankAttempt]bool
	if !o.loop.Call(func() {
		var here bool
		if owned, here = o.core.Serve(time.Now(), from, rep); here { // also if the output cannot be stored now
			j = o.table.jobs[rep.Job]
		}
	}) {
		return ack, jobs.ErrStopped
	}
	if j == nil {
		return ack, nil
	}
	o.cfg.Learn(from, rep.Addrs)
	if err = j.store(o.loop, rep, owned); errors.Is(err, os.ErrClosed) { // the job has just ended
		err = nil
	}
	reply := make(chan wire.Ack, 1)
	o.loop.Post(func() { o.stored(j, from, rep, err, reply) })
	if err != nil {
		return ack, err
	}
	select {
	case ack = <-reply:
		j.output.Confirm(ack.Workers)
		return ack, nil
	case <-o.loop.Stopped.Done():
		return ack, jobs.ErrStopped
	}
}

// stored hands a report to the primary whose output is stored, or could not be. It runs in the loop.
func (o *Jobs) stored(j *job, from vicinity.ID, rep *wire.Report, err error, reply chan<- wire.Ack) {
	now := time.Now()
	if o.hindered(j, err); err != nil {
		o.core.Unserved(now, from, rep.Job)
		return
	}
	if j.lacksInputs(from, rep) {
		o.inputs.mend(j)
	}
	ras := make([]jobs.RankAttempt, len(rep.Workers))
	for i, w := range rep.Workers {
		ras[i] = w.RankAttempt
	}
	j.bound(now)
	have := j.output.Received(ras)
	o.core.Reported(now, from, rep, have, o.answers.expect(reply))
	o.stream(j, from, rep, have)
}

// store keeps the output of workers that still count, and makes it
// durable before the exit of one of them can be recorded.
func (j *job) store(l *loop.Loop, rep *wire.Report, owned map[jobs.RankAttempt]bool) error {
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
	return j.keepUp(l, func() {})
}

// bound ends a job of which more output came than a worker may write (--max-output). It runs in the
// loop.
func (j *job) bound(now time.Time) {
	if ra, over := j.output.Overflowed(); over && !j.Primary.Rec.State.Final() {
		j.Primary.Overflow(now, ra)
	}
}

// keepUp makes output durable when there is much that is not, and calls synced when that
// was done in the background.
func (j *job) keepUp(l *loop.Loop, synced func()) error {
	switch loose := j.output.Loosely(); {
	case loose > maxLoose:
		return j.output.Sync()
	case loose > syncLoose && j.output.Behind.CompareAndSwap(false, true):
		l.Go(func() {
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
func (o *Jobs) stream(j *job, from vicinity.ID, rep *wire.Report, have map[jobs.RankAttempt]wire.Written) {
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
	case o.streams <- struct{}{}:
	default:
		return
	}
	if j.streams == nil {
		j.streams = map[vicinity.ID]bool{}
	}
	j.streams[from] = true
	in := &inflow{out: j.output, fresh: ras, more: make(chan struct{}, 1)}
	in.keep = func(p jobs.Output) error { return o.keepPiece(j, from, p, in.notify) }
	in.notify()
	o.loop.Go(func() {
		err := o.cfg.Peers.Output(o.loop.Stopped, from, j.Primary.Rec.ID, in.held, in.take)
		<-o.streams
		if err != nil {
			o.log.Debug().Err(err).Str("job", string(rep.Job)).Str("node", from.Short()).Msg("stream of output")
		}
		o.loop.Post(func() {
			if errors.Is(err, peer.ErrOld) {
				j.streams[from] = false
			} else {
				delete(j.streams, from)
			}
		})
	})
}

var errGap = errors.New("bytes are missing before a piece of output")

// keepPiece keeps a piece of a stream, if its worker still counts, and calls synced when
// more is durable. It runs outside of the loop.
func (o *Jobs) keepPiece(j *job, from vicinity.ID, p jobs.Output, synced func()) error {
	ra, owned := jobs.RankAttempt{Rank: p.Rank, Attempt: p.Attempt}, false
	if !o.loop.Call(func() { owned = j.Primary.Rec.Owned(from, ra) }) {
		return jobs.ErrStopped
	}
	if !owned {
		return nil
	}
	err := j.output.Append([]jobs.Output{p})
	if err == nil {
		if _, over := j.output.Overflowed(); over {
			o.loop.Post(func() {
				j.bound(time.Now())
				o.core.Flush(time.Now(), j.Job)
			})
		}
		err = j.keepUp(o.loop, synced)
	}
	if err != nil && !errors.Is(err, os.ErrClosed) { // closed: the job has just ended
		o.loop.Post(func() { o.hindered(j, err) })
	}
	if err == nil && p.Offset > j.output.Held([]jobs.RankAttempt{ra})[0].Have.Of(p.Stream) {
		err = errGap
	}
	return err
}

// hindered notes whether a job's output could be stored.
func (o *Jobs) hindered(j *job, err error) {
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
		o.log.Error().Err(err).Str("job", string(j.Primary.Rec.ID)).Msg("store output")
	}
	j.Primary.Version++
	o.loop.Notify()
}
