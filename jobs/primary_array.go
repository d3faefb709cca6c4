package jobs

import (
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// maxBroken is how often the worker of a rank may end without having done its
// tasks, before the job gives up: its program is not to blame for that.
const maxBroken = 3

// closing reports whether the job looks for nobody any more and ends with those
// that run.
func (p *primary) closing() bool { return p.failing() || p.rec.tasks.over() }

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
	stopping := p.failing()
	p.emit(event{Kind: evTasks, At: now, Ranks: []RankAttempt{w.RankAttempt}, Results: packResults(rs)})
	if !stopping && p.failing() {
		p.stopOthers()
	}
}

// leaseTasks gives tasks to workers that report and need some.
func (p *primary) leaseTasks(now time.Time, from vicinity.ID, rep Report) {
	t := p.rec.tasks
	if t == nil || p.rec.state.Final() || p.failing() {
		return
	}
	running := p.count(WorkerRunning)
	for _, w := range rep.Workers {
		if w.Tasks == nil || w.State != WorkerRunning || !p.owned(from, w.RankAttempt) || p.rec.ranks[w.Rank].state != WorkerRunning {
			continue
		}
		if ranges := t.choose(w.Rank, running); len(ranges) > 0 {
			p.emit(event{Kind: evLeased, At: now, Ranks: []RankAttempt{w.RankAttempt}, Tasks: ranges})
		}
	}
}

// tasksAck tells a worker what it is to do, and what of it is safe here.
func (p *primary) tasksAck(w WorkerReport) *WorkerTasksAck {
	t := p.rec.tasks
	if t == nil || w.Tasks == nil || !p.rec.owns(w.RankAttempt) {
		return nil
	}
	l := t.leases[w.Rank]
	if l == nil || l.attempt != w.Attempt {
		return &WorkerTasksAck{Before: w.Tasks.Added, Last: t.waits == 0 || p.failing()}
	}
	a := &WorkerTasksAck{Results: l.results, Before: w.Tasks.Added, Ranges: after(l.queue, w.Tasks.Added-l.results)}
	if l.left == 0 && (t.waits == 0 || l.closed) {
		l.closed, a.Last = true, true
	}
	return a
}

// after returns what follows the first n tasks of ranges.
func after(ranges []process.TaskRange, n int) (rest []process.TaskRange) {
	for _, r := range ranges {
		skip := min(max(n, 0), r.Count)
		n -= skip
		if skip < r.Count && len(rest) < maxTaskRanges {
			rest = append(rest, process.TaskRange{From: r.From + skip, Count: r.Count - skip})
		}
	}
	return rest
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
	case p.failing() || left == 0 && w.Exit.Code == 0:
		return false
	}
	p.avoid[from] = now.Add(avoidFor)
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

// finishArray ends an array by how its tasks ended.
func (p *primary) finishArray(now time.Time) {
	t := p.rec.tasks
	if t.failed == 0 {
		p.end(now, Completed, "", 0)
		return
	}
	reason := fmt.Sprintf("%d of %d tasks failed, task %d with %d", t.failed, len(t.tasks), t.numbers.ID(t.first), t.tasks[t.first].code)
	if left := len(t.tasks) - t.done; left > 0 {
		reason += fmt.Sprintf("; %d were not done", left)
	}
	p.end(now, Failed, reason, t.code)
}

// arrayReason tells how far a running array is.
func (p *primary) arrayReason() string {
	s := p.rec.tasks.status()
	text := fmt.Sprintf("%d of %d tasks done", s.Done, s.Tasks)
	if s.Failed > 0 {
		text += fmt.Sprintf(", %d failed", s.Failed)
	}
	return text + fmt.Sprintf(", %d running", s.Running)
}

// taskPage lists tasks.
func (p *primary) taskPage(q TaskQuery) TaskPage {
	page := TaskPage{Tasks: []TaskStatus{}}
	t := p.rec.tasks
	if t == nil {
		return page
	}
	page.Picture = t.picture(q.Cells)
	limit := q.Limit
	if limit <= 0 || limit > maxTaskPage {
		limit = maxTaskPage
	}
	for place := max(0, q.From); place < len(t.tasks); place++ {
		k := &t.tasks[place]
		if q.Failed && (!k.done || k.code == 0) {
			continue
		}
		if len(page.Tasks) == limit {
			page.Next = place
			break
		}
		st := TaskStatus{ID: t.numbers.ID(place), Code: -1, Rank: -1, Tries: t.tries[place]}
		if k.done {
			st.Done, st.Code, st.Rank, st.Took = true, int(k.code), int(k.rank), codec.Duration(k.took)
			st.Stdout, st.Stderr, st.Tries = k.wrote.stdout, k.wrote.stderr, st.Tries+1
			st.Files = k.files
			if r := &p.rec.ranks[k.rank]; r.attempt == int(k.try) {
				st.Node = r.node
			}
		}
		page.Tasks = append(page.Tasks, st)
	}
	return page
}
