package origin

import (
	"errors"
	"os"
	"time"

	"zorilla/jobs"
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
			j = o.table.get(rep.Job)
		}
	}) {
		return ack, jobs.ErrStopped
	}
	if j == nil {
		return ack, nil
	}
	o.cfg.Learn(from, rep.Addrs)
	if err = o.intake.store(j, rep, owned); errors.Is(err, os.ErrClosed) { // the job has just ended
		err = nil
	}
	reply := make(chan wire.Ack, 1)
	trouble := err // the loop may come to it when this has returned something else
	o.loop.Post(func() { o.stored(j, from, rep, trouble, reply) })
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
	if o.intake.hindered(j, err); err != nil {
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
	o.intake.stream(j, from, rep, have)
}
