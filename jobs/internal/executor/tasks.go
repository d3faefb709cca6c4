package executor

import (
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
)

// gatherFor is how long results of tasks are collected before they are
// reported, as long as the worker has something to do.
const gatherFor = 200 * time.Millisecond

// collect waits for more results, unless the worker needs tasks or something
// else is to be done.
func (x *Executor) collect(proc *handle) {
	feed := proc.Tasks()
	if feed == nil {
		return
	}
	timer := time.NewTimer(gatherFor)
	defer timer.Stop()
	for {
		changed := proc.Changed()
		if added, ended := feed.Counts(); added == ended {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-proc.Done():
			return
		case <-proc.steer:
			return
		case <-x.loop.Leaving.Done():
			return
		}
	}
}

// buildTasks reports of a worker's tasks what the origin does not know, which knows so
// many; nil if it is no worker of an array.
func (r *handle) buildTasks(known int) (*wire.WorkerTasks, error) {
	feed := r.Tasks()
	if feed == nil {
		return nil, nil
	}
	t := &wire.WorkerTasks{}
	t.Added, t.Ended = feed.Counts()
	t.From = min(known, t.Ended)
	rs, err := feed.Results(t.From, min(jobs.MaxResults, t.Ended-t.From))
	if err == nil {
		t.Results = wire.PackResults(rs)
	}
	return t, err
}

// acknowledged does what the origin says.
func (r *handle) acknowledged(e participant.DoAck) {
	r.Ack(e.Safe.Stdout, e.Safe.Stderr)
	r.Heard()
	if feed := r.Tasks(); feed != nil && e.Tasks != nil && (len(e.Tasks.Ranges) > 0 || e.Tasks.Last) {
		feed.Add(e.Tasks.Before, e.Tasks.Ranges, e.Tasks.Last)
	}
}
