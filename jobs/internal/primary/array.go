package primary

import (
	"fmt"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// maxBroken is how often the worker of a rank may end without having done its
// tasks, before the job gives up: its program is not to blame for that.
const maxBroken = 3

// tasksReported takes results of a worker's tasks.
func (p *Primary) tasksReported(now time.Time, w wire.WorkerReport) {
	t := p.Rec.Tasks
	if t == nil || w.Tasks == nil || p.Rec.Ranks[w.Rank].State != jobs.WorkerRunning {
		return
	}
	rs := t.Fresh(w.RankAttempt, w.Tasks, p.Received[w.RankAttempt])
	if len(rs) == 0 {
		return
	}
	stopping := p.Rec.Failing()
	p.emit(record.Event{Kind: record.TasksEnded, At: now, Ranks: []jobs.RankAttempt{w.RankAttempt}, Results: wire.PackResults(rs)})
	if !stopping && p.Rec.Failing() {
		p.stopOthers()
	}
}

// leaseTasks gives tasks to workers that report and need some.
func (p *Primary) leaseTasks(now time.Time, from vicinity.ID, rep wire.Report) {
	t := p.Rec.Tasks
	if t == nil || p.Rec.State.Final() || p.Rec.Failing() {
		return
	}
	running := p.Rec.Count(jobs.WorkerRunning)
	for _, w := range rep.Workers {
		if w.Tasks == nil || w.State != jobs.WorkerRunning || !p.Rec.Owned(from, w.RankAttempt) || p.Rec.Ranks[w.Rank].State != jobs.WorkerRunning {
			continue
		}
		if t.Hole(w.Rank) {
			p.Search.Avoid(now, from)
			p.Warn(now, fmt.Sprintf("%s: its last tasks failed at once, one after the other, while those of other nodes did not: it gets no more",
				jobs.Label(p.Rec.Ranks[w.Rank].Name, from)))
		}
		if ranges := t.Choose(w.Rank, running); len(ranges) > 0 {
			p.emit(record.Event{Kind: record.Leased, At: now, Ranks: []jobs.RankAttempt{w.RankAttempt}, Tasks: ranges})
		}
	}
}

// tasksUnfinished handles a worker of an array that has ended. It reports
// whether its end does not count: results are still to come, or it left tasks
// undone, which others do then.
func (p *Primary) tasksUnfinished(now time.Time, from vicinity.ID, w wire.WorkerReport) bool {
	t := p.Rec.Tasks
	if t == nil {
		return false
	}
	k, results, left := &p.Rec.Ranks[w.Rank], 0, 0
	if l := t.Leases[w.Rank]; l != nil {
		results, left = l.Results, l.Left
	}
	switch {
	case w.Tasks != nil && results < w.Tasks.Ended:
		return true
	case p.Rec.Failing() || left == 0 && w.Exit.Code == 0:
		return false
	}
	p.Search.Demote(now, from)
	why := fmt.Sprintf("the worker of rank %d on %s ended with %d before its tasks were done", w.Rank, jobs.Label(k.Name, from), w.Exit.Code)
	if w.Exit.Detail != "" {
		why += ": " + w.Exit.Detail
	}
	if k.Retries >= maxBroken {
		p.End(now, jobs.Failed, why, jobs.CodeZorilla)
	} else {
		p.retry(now, []jobs.RankAttempt{w.RankAttempt}, why)
	}
	return true
}
