package jobs

import (
	"fmt"
	"time"

	"zorilla/jobs/process"
)

// taskTable is the tasks of an array at its origin, by their places. It is part
// of the job's record: a pure function of its events. A task is waiting, leased
// to the current attempt of one rank, or done; only the lease decides whose
// result counts, so that a result counts once.
type taskTable struct {
	numbers process.TaskNumbers
	retries int

	tasks   []taskRecord
	waiting []process.TaskRange
	waits   int // tasks in waiting
	leases  map[int]*taskLease
	tries   map[int]int // of tasks that failed and may be tried again
	order   []int32     // places of tasks as they ended
	done    int
	failed  int
	code    int // the highest
	first   int // place of the first task that failed for good
}

// taskRecord is a task that has ended.
type taskRecord struct {
	from  received // where its output begins in that of its worker
	wrote received
	files int64 // bytes, which follow its standard error
	took  time.Duration
	rank  int32
	try   int32 // attempt of the rank
	code  uint8
	done  bool
}

// taskLease is what a rank has to do.
type taskLease struct {
	attempt int
	results int                 // that came
	wrote   received            // by the tasks of these, with their files
	queue   []process.TaskRange // that have not ended, in order
	left    int                 // tasks in queue
	took    time.Duration       // a task, about; 0 = not known
	closed  bool                // the worker was told that no more come
}

func newTaskTable(spec *Spec) *taskTable {
	t := &taskTable{numbers: process.NumberTasks(spec.Array.Tasks), retries: spec.Retries,
		leases: map[int]*taskLease{}, tries: map[int]int{}}
	t.waits = t.numbers.Count()
	t.tasks = make([]taskRecord, t.waits)
	t.waiting = []process.TaskRange{{From: 0, Count: t.waits}}
	return t
}

// ahead is how much work a worker has in its queue; results come much more
// often.
const ahead = time.Second

// choose returns which tasks a rank is to get in addition. Workers that have
// done little get little, and towards the end all get less, so that they end
// together.
func (t *taskTable) choose(rank, workers int) (ranges []process.TaskRange) {
	l, target := t.leases[rank], 1
	if l != nil {
		if l.took > 0 {
			target = int(min(ahead/l.took, 4*time.Duration(l.results)+1, maxResults))
		}
		target = max(1, min(target, (t.waits+l.left)/(2*max(1, workers)))) - l.left
		if l.closed || target <= l.left/4 && l.left > 0 {
			return nil
		}
	}
	for _, r := range t.waiting {
		if target <= 0 || len(ranges) == maxTaskRanges {
			break
		}
		r.Count = min(r.Count, target)
		target -= r.Count
		ranges = append(ranges, r)
	}
	return ranges
}

// lease gives waiting tasks to a rank.
func (t *taskTable) lease(ra RankAttempt, ranges []process.TaskRange) {
	l := t.leases[ra.Rank]
	if l == nil || l.attempt != ra.Attempt {
		t.free(ra.Rank)
		l = &taskLease{attempt: ra.Attempt}
		t.leases[ra.Rank] = l
	}
	for _, r := range ranges {
		if !t.remove(r) {
			continue
		}
		l.queue = append(l.queue, r)
		l.left += r.Count
	}
}

// remove takes tasks out of those that wait.
func (t *taskTable) remove(r process.TaskRange) bool {
	for i, w := range t.waiting {
		if r.From < w.From || r.From+r.Count > w.From+w.Count {
			continue
		}
		var rest []process.TaskRange
		if n := r.From - w.From; n > 0 {
			rest = append(rest, process.TaskRange{From: w.From, Count: n})
		}
		if n := w.From + w.Count - r.From - r.Count; n > 0 {
			rest = append(rest, process.TaskRange{From: r.From + r.Count, Count: n})
		}
		t.waiting = append(t.waiting[:i:i], append(rest, t.waiting[i+1:]...)...)
		t.waits -= r.Count
		return true
	}
	return false
}

// wait puts tasks among those that wait, before all others.
func (t *taskTable) wait(ranges ...process.TaskRange) {
	for _, r := range ranges {
		t.waits += r.Count
	}
	t.waiting = append(ranges[:len(ranges):len(ranges)], t.waiting...)
}

// free takes back what a rank has not done. What it has done counts, even if it
// is lost: all of that is here.
func (t *taskTable) free(rank int) {
	if l := t.leases[rank]; l != nil {
		delete(t.leases, rank)
		t.wait(l.queue...)
	}
}

// judge counts a task that is done and has failed.
func (t *taskTable) judge(place int) {
	k := &t.tasks[place]
	if !k.done || k.code == 0 {
		return
	}
	if t.failed == 0 {
		t.first = place
	}
	t.failed++
	t.code = max(t.code, int(k.code))
}

// fresh returns those of a worker's results that are news and whose output is
// here.
func (t *taskTable) fresh(ra RankAttempt, w *WorkerTasks, have received) []process.TaskResult {
	l := t.leases[ra.Rank]
	if l == nil || l.attempt != ra.Attempt || w.From > l.results {
		return nil
	}
	rs, err := unpackResults(w.Results)
	if err != nil || w.From+len(rs) <= l.results {
		return nil
	}
	rs = rs[l.results-w.From:]
	wrote := l.wrote
	for i, r := range rs {
		wrote.stdout += r.Stdout
		wrote.stderr += r.Stderr + r.Files
		if wrote.stdout > have.stdout || wrote.stderr > have.stderr || i >= l.left {
			return rs[:i]
		}
	}
	return rs
}

// ended takes results of a rank, which come in the order of its queue.
func (t *taskTable) ended(ra RankAttempt, rs []process.TaskResult) {
	l := t.leases[ra.Rank]
	if l == nil || l.attempt != ra.Attempt {
		return
	}
	var sum time.Duration
	for i, r := range rs {
		if len(l.queue) == 0 || l.queue[0].From != r.Place {
			rs = rs[:i] // not what was leased
			break
		}
		if q := &l.queue[0]; q.Count == 1 {
			l.queue = l.queue[1:]
		} else {
			q.From, q.Count = q.From+1, q.Count-1
		}
		l.left--
		l.results++
		from := l.wrote
		l.wrote.stdout += r.Stdout
		l.wrote.stderr += r.Stderr + r.Files
		sum += max(r.Took, time.Microsecond)
		if r.Code != 0 && t.tries[r.Place] < t.retries {
			t.tries[r.Place]++
			t.wait(process.TaskRange{From: r.Place, Count: 1})
			continue
		}
		t.tasks[r.Place] = taskRecord{from: from, wrote: received{r.Stdout, r.Stderr}, files: r.Files, took: r.Took,
			rank: int32(ra.Rank), try: int32(ra.Attempt), code: uint8(r.Code), done: true}
		t.done++
		t.order = append(t.order, int32(r.Place))
		t.judge(r.Place)
	}
	if len(rs) == 0 {
		return
	}
	mean := sum / time.Duration(len(rs))
	if l.took > 0 {
		mean = (l.took + mean) / 2
	}
	l.took = mean
}

// over reports whether all tasks have ended; t may be nil.
func (t *taskTable) over() bool { return t != nil && t.done == len(t.tasks) }

// status sums up.
func (t *taskTable) status() *ArrayStatus {
	if t == nil {
		return nil
	}
	s := &ArrayStatus{Tasks: len(t.tasks), Done: t.done, Failed: t.failed}
	for _, l := range t.leases {
		if l.left > 0 {
			s.Running++
		}
	}
	s.Left = s.Tasks - s.Done - s.Running
	return s
}

// ack tells a worker what it is to do, and what of it is safe here; failing is set
// if the job ends because tasks failed. The worker's attempt is the current one.
func (t *taskTable) ack(w WorkerReport, failing bool) *WorkerTasksAck {
	if w.Tasks == nil {
		return nil
	}
	l := t.leases[w.Rank]
	if l == nil || l.attempt != w.Attempt {
		return &WorkerTasksAck{Before: w.Tasks.Added, Last: t.waits == 0 || failing}
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

// verdict tells how an array ends.
func (t *taskTable) verdict() verdict {
	if t.failed == 0 {
		return verdict{state: Completed}
	}
	reason := fmt.Sprintf("%d of %d tasks failed, task %d with %d", t.failed, len(t.tasks), t.numbers.ID(t.first), t.tasks[t.first].code)
	if left := len(t.tasks) - t.done; left > 0 {
		reason += fmt.Sprintf("; %d were not done", left)
	}
	return verdict{Failed, t.code, reason}
}

// text tells how far a running array is.
func (t *taskTable) text() string {
	s := t.status()
	text := fmt.Sprintf("%d of %d tasks done", s.Done, s.Tasks)
	if s.Failed > 0 {
		text += fmt.Sprintf(", %d failed", s.Failed)
	}
	return text + fmt.Sprintf(", %d running", s.Running)
}
