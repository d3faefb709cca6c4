package jobs

import (
	"slices"
	"time"

	"zorilla/jobs/process"
)

// gatherFor is how long results of tasks are collected before they are
// reported, as long as the worker has something to do.
const gatherFor = 200 * time.Millisecond

// gather waits for more results, unless the worker needs tasks or something
// else is to be done.
func (w *work) gather(k *worker, proc process.Worker) {
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
		case <-k.stop:
			return
		case <-k.drop:
			return
		case <-k.evict:
			return
		case <-w.s.leaving:
			return
		}
	}
}

// tasking is a worker in a report, and how many results its origin has.
type tasking struct {
	worker  int
	proc    process.Worker
	results int
}

// buildTasks tells of a worker's tasks what the origin does not know; nil if it
// is no worker of an array.
func (w *work) buildTasks(a tasking) *WorkerTasks {
	feed := a.proc.Tasks()
	if feed == nil {
		return nil
	}
	t := &WorkerTasks{}
	t.Added, t.Ended = feed.Counts()
	t.From = min(a.results, t.Ended)
	rs, err := feed.Results(t.From, min(maxResults, t.Ended-t.From))
	if err != nil {
		w.s.log.Error().Err(err).Str("job", string(w.job)).Msg("read results of tasks")
		return t
	}
	t.Results = packResults(rs)
	return t
}

// incomplete reports whether there are more results than one report holds; t
// may be nil.
func (t *WorkerTasks) incomplete() bool { return t != nil && t.Ended-t.From > maxResults }

// acknowledgeTasks does what the origin says of a worker's tasks. The caller
// holds work.mu.
func (k *worker) acknowledgeTasks(a *WorkerTasksAck) {
	if a == nil || k.proc == nil || checkTaskRanges(a.Ranges) != nil || a.Results < 0 || a.Before < 0 {
		return
	}
	feed := k.proc.Tasks()
	if feed == nil {
		return
	}
	_, ended := feed.Counts()
	k.results = min(a.Results, ended)
	if len(a.Ranges) > 0 || a.Last {
		feed.Add(a.Before, a.Ranges, a.Last)
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
