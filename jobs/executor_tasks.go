package jobs

import (
	"slices"
	"time"
)

// gatherFor is how long results of tasks are collected before they are
// reported, as long as the worker has something to do.
const gatherFor = 200 * time.Millisecond

// collect waits for more results, unless the worker needs tasks or something
// else is to be done.
func (x *executor) collect(proc *handle) {
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
		case <-x.s.leaving:
			return
		}
	}
}

// buildTasks tells of a worker's tasks what the origin does not know, which knows so
// many; nil if it is no worker of an array.
func (r *handle) buildTasks(known int) (*WorkerTasks, error) {
	feed := r.Tasks()
	if feed == nil {
		return nil, nil
	}
	t := &WorkerTasks{}
	t.Added, t.Ended = feed.Counts()
	t.From = min(known, t.Ended)
	rs, err := feed.Results(t.From, min(maxResults, t.Ended-t.From))
	if err == nil {
		t.Results = packResults(rs)
	}
	return t, err
}

// incomplete reports whether there are more results than one report holds; t
// may be nil.
func (t *WorkerTasks) incomplete() bool { return t != nil && t.Ended-t.From > maxResults }

// acknowledged does what the origin says.
func (r *handle) acknowledged(e doAck) {
	r.Ack(e.safe.stdout, e.safe.stderr)
	r.Heard()
	if feed := r.Tasks(); feed != nil && e.tasks != nil && (len(e.tasks.Ranges) > 0 || e.tasks.Last) {
		feed.Add(e.tasks.Before, e.tasks.Ranges, e.tasks.Last)
	}
}

// tookResults reports whether the origin took results out of a report, so that
// more can follow at once.
func (a *Ack) tookResults(rep Report) bool {
	return slices.ContainsFunc(rep.Workers, func(w WorkerReport) bool {
		return w.Tasks != nil && slices.ContainsFunc(a.Workers, func(k WorkerAck) bool {
			return k.RankAttempt == w.RankAttempt && k.Tasks != nil && k.Tasks.Results > w.Tasks.From
		})
	})
}
