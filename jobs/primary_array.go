package jobs

import (
	"fmt"
	"time"

	"zorilla/vicinity"
)

// maxBroken is how often the worker of a rank may end without having done its
// tasks, before the job gives up: its program is not to blame for that.
const maxBroken = 3

// tasksReported takes results of a worker's tasks.
func (p *primary) tasksReported(now time.Time, w WorkerReport) {
	t := p.rec.tasks
	if t == nil || w.Tasks == nil || p.rec.ranks[w.Rank].state != WorkerRunning {
		return
	}
	rs := t.fresh(w.RankAttempt, w.Tasks, p.received[w.RankAttempt])
	if len(rs) == 0 {
		return
	}
	stopping := p.rec.failing()
	p.emit(event{Kind: evTasks, At: now, Ranks: []RankAttempt{w.RankAttempt}, Results: packResults(rs)})
	if !stopping && p.rec.failing() {
		p.stopOthers()
	}
}

// leaseTasks gives tasks to workers that report and need some.
func (p *primary) leaseTasks(now time.Time, from vicinity.ID, rep Report) {
	t := p.rec.tasks
	if t == nil || p.rec.state.Final() || p.rec.failing() {
		return
	}
	running := p.rec.count(WorkerRunning)
	for _, w := range rep.Workers {
		if w.Tasks == nil || w.State != WorkerRunning || !p.owned(from, w.RankAttempt) || p.rec.ranks[w.Rank].state != WorkerRunning {
			continue
		}
		if ranges := t.choose(w.Rank, running); len(ranges) > 0 {
			p.emit(event{Kind: evLeased, At: now, Ranks: []RankAttempt{w.RankAttempt}, Tasks: ranges})
		}
	}
}

// tasksUnfinished handles a worker of an array that has ended. It reports
// whether its end does not count: results are still to come, or it left tasks
// undone, which others do then.
func (p *primary) tasksUnfinished(now time.Time, from vicinity.ID, w WorkerReport) bool {
	t := p.rec.tasks
	if t == nil {
		return false
	}
	k, results, left := &p.rec.ranks[w.Rank], 0, 0
	if l := t.leases[w.Rank]; l != nil {
		results, left = l.results, l.left
	}
	switch {
	case w.Tasks != nil && results < w.Tasks.Ended:
		return true
	case p.rec.failing() || left == 0 && w.Exit.Code == 0:
		return false
	}
	p.search.shun(now, from)
	why := fmt.Sprintf("the worker of rank %d on %s ended with %d before its tasks were done", w.Rank, label(k.name, from), w.Exit.Code)
	if w.Exit.Detail != "" {
		why += ": " + w.Exit.Detail
	}
	if k.retries >= maxBroken {
		p.end(now, Failed, why, CodeZorilla)
	} else {
		p.retry(now, []RankAttempt{w.RankAttempt}, why)
	}
	return true
}
