package origin

import (
	"errors"
	"os"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Report stores a report's output and hands the rest to the primary.
// It answers when all that follows from the report is durable. It may be called from any
// goroutine.
func (o *Jobs) Report(from vicinity.ID, rep *wire.Report) (ack wire.Ack, err error) {
	var j *job
	var owned map[jobs.RankAttempt]bool
	ok := o.loop.Call(func() {
		var here bool
		if owned, here = o.core.Serve(time.Now(), from, rep); here { // also if the output cannot be stored now
			j = o.jobs[rep.Job]
		}
	})
	if !ok {
		return ack, jobs.ErrStopped
	}
	if j == nil {
		return ack, nil
	}
	defer o.loop.Post(func() { o.core.Served(time.Now(), from, rep.Job) })
	o.cfg.Learn(from, rep.Addrs)
	if err := j.store(o.loop, rep, owned); err != nil && !errors.Is(err, os.ErrClosed) { // closed: the job has just ended
		o.loop.Post(func() { o.hindered(j, err) })
		return ack, err
	}
	ras := make([]jobs.RankAttempt, len(rep.Workers))
	for i, w := range rep.Workers {
		ras[i] = w.RankAttempt
	}
	reply := make(chan wire.Ack, 1)
	o.loop.Post(func() {
		o.hindered(j, nil)
		if j.lacksInputs(from, rep) {
			o.mendInputs(j)
		}
		o.core.Reported(time.Now(), from, rep, j.output.Received(ras), o.answers.expect(reply))
	})
	select {
	case ack = <-reply:
		j.output.Confirm(ack.Workers)
		return ack, nil
	case <-o.loop.Stopped.Done():
		return ack, jobs.ErrStopped
	}
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
	switch loose := j.output.Loosely(); {
	case loose > maxLoose:
		return j.output.Sync()
	case loose > syncLoose && j.output.Behind.CompareAndSwap(false, true):
		l.Go(func() {
			defer j.output.Behind.Store(false)
			_ = j.output.Sync() // if it goes on to fail, a report will
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
