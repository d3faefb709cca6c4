package record

import (
	"fmt"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// TaskTable is the tasks of an array at its origin, by their places. It is part
// of the job's record: a pure function of its events. A task is waiting, leased
// to the current attempt of one rank, or done; only the lease decides whose
// result counts, so that a result counts once.
type TaskTable struct {
	Numbers work.TaskNumbers
	retries int

	Tasks   []Task
	waiting []process.TaskRange
	waits   int // tasks in waiting
	Leases  map[int]*TaskLease
	Tries   map[int]int // of tasks that failed and may be tried again
	Tried   []Try       // these, the last jobs.MaxTried; the elements never change
	Order   []int32     // places of tasks as they ended
	done    int
	failed  int
	filed   int // of those that are done, how many left files
	code    int // the highest
	first   int // place of the first task that failed for good
	errors  map[int]errorOutput
}

// errorOutput is what the tasks that an attempt of a rank has ended wrote to standard error. In
// the stream of the worker are their files, too.
type errorOutput struct {
	attempt int
	bytes   int64
}

// Task is a task that has ended.
type Task struct {
	From  wire.Written // where its output begins in that of its worker
	Wrote wire.Written
	Files int64 // bytes, which follow its standard error
	Took  time.Duration
	Rank  int32
	Try   int32 // attempt of the rank
	Code  uint8
	Done  bool
}

// Try is a try of a task that failed and was followed by another one.
type Try struct {
	Task
	Place  int // of the task
	Number int // from 1
	After  int // how many tasks had ended for good before
}

// TaskLease is what a rank has to do.
type TaskLease struct {
	attempt int
	Results int                 // that came
	wrote   wire.Written        // by the tasks of these, with their files
	queue   []process.TaskRange // that have not ended, in order
	Left    int                 // tasks in queue
	took    time.Duration       // a task, about; 0 = not known
	closed  bool                // the worker was told that no more come
	streak  int                 // of its last tasks, how many failed at once in a row
	good    int                 // of its tasks, how many ended with 0
}

// A task that fails sooner than atOnce has hardly begun. So many of them in a row, where others
// succeed, are the fault of their node: it would go through all tasks that are left.
const (
	atOnce  = time.Second
	longRow = 5
)

// Hole reports whether a rank is given no more tasks, since its last ones failed at once while
// another rank's succeed.
func (t *TaskTable) Hole(rank int) bool {
	l := t.Leases[rank]
	if l == nil || l.streak < longRow {
		return false
	}
	for other, o := range t.Leases {
		if other != rank && o.good > 0 && o.streak == 0 {
			return true
		}
	}
	return false
}

// newTaskTable is the table of an array of which no task was done.
func newTaskTable(spec *jobs.Spec) *TaskTable {
	t := &TaskTable{Numbers: work.NumberTasks(spec.Array.Tasks), retries: spec.Retries,
		Leases: map[int]*TaskLease{}, Tries: map[int]int{}, errors: map[int]errorOutput{}}
	t.waits = t.Numbers.Count()
	t.Tasks = make([]Task, t.waits)
	t.waiting = []process.TaskRange{{From: 0, Count: t.waits}}
	return t
}

// ahead is how much work a worker has in its queue; results come much more
// often.
const ahead = time.Second

// Choose returns which tasks a rank is to get in addition. Workers that have
// done little get little, and towards the end all get less, so that they end
// together.
func (t *TaskTable) Choose(rank, workers int) (ranges []process.TaskRange) {
	l, target := t.Leases[rank], 1
	if l != nil {
		if l.took > 0 {
			target = int(min(ahead/l.took, 4*time.Duration(l.Results)+1, jobs.MaxResults))
		}
		target = max(1, min(target, (t.waits+l.Left)/(2*max(1, workers)))) - l.Left
		if l.streak > 0 { // one at a time, until it is known whose fault that is
			target = 1 - l.Left
		}
		if l.closed || target <= 0 || t.Hole(rank) || target <= l.Left/4 && l.Left > 0 {
			return nil
		}
	}
	for _, r := range t.waiting {
		if target <= 0 || len(ranges) == jobs.MaxTaskRanges {
			break
		}
		r.Count = min(r.Count, target)
		target -= r.Count
		ranges = append(ranges, r)
	}
	return ranges
}

// lease gives waiting tasks to a rank.
func (t *TaskTable) lease(ra jobs.RankAttempt, ranges []process.TaskRange) {
	l := t.Leases[ra.Rank]
	if l == nil || l.attempt != ra.Attempt {
		t.free(ra.Rank)
		l = &TaskLease{attempt: ra.Attempt}
		t.Leases[ra.Rank] = l
	}
	for _, r := range ranges {
		if !t.remove(r) {
			continue
		}
		l.queue = append(l.queue, r)
		l.Left += r.Count
	}
}

// remove takes tasks out of those that wait.
func (t *TaskTable) remove(r process.TaskRange) bool {
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
func (t *TaskTable) wait(ranges ...process.TaskRange) {
	for _, r := range ranges {
		t.waits += r.Count
	}
	t.waiting = append(ranges[:len(ranges):len(ranges)], t.waiting...)
}

// free takes back what a rank has not done. What it has done counts, even if it
// is lost: all of that is here.
func (t *TaskTable) free(rank int) {
	if l := t.Leases[rank]; l != nil {
		delete(t.Leases, rank)
		t.wait(l.queue...)
	}
}

// judge counts a task that is done and has failed.
func (t *TaskTable) judge(place int) {
	k := &t.Tasks[place]
	if !k.Done || k.Code == 0 {
		return
	}
	if t.failed == 0 {
		t.first = place
	}
	t.failed++
	t.code = max(t.code, int(k.Code))
}

// Fresh returns those of a worker's results that are news and whose output is
// here.
func (t *TaskTable) Fresh(ra jobs.RankAttempt, w *wire.WorkerTasks, have wire.Written) []process.TaskResult {
	l := t.Leases[ra.Rank]
	if l == nil || l.attempt != ra.Attempt || w.From > l.Results {
		return nil
	}
	rs, err := wire.UnpackResults(w.Results)
	if err != nil || w.From+len(rs) <= l.Results {
		return nil
	}
	rs = rs[l.Results-w.From:]
	wrote := l.wrote
	for i, r := range rs {
		wrote.Stdout += r.Stdout
		wrote.Stderr += r.Stderr + r.Files
		if wrote.Stdout > have.Stdout || wrote.Stderr > have.Stderr || i >= l.Left {
			return rs[:i]
		}
	}
	return rs
}

// ended takes results of a rank, which come in the order of its queue.
func (t *TaskTable) ended(ra jobs.RankAttempt, rs []process.TaskResult) {
	l := t.Leases[ra.Rank]
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
		l.Left--
		l.Results++
		l.note(r)
		from := l.wrote
		l.wrote.Stdout += r.Stdout
		l.wrote.Stderr += r.Stderr + r.Files
		t.errors[ra.Rank] = errorOutput{ra.Attempt, t.Stderr(ra) + r.Stderr}
		sum += max(r.Took, time.Microsecond)
		task := Task{From: from, Wrote: wire.Written{Stdout: r.Stdout, Stderr: r.Stderr}, Files: r.Files, Took: r.Took,
			Rank: int32(ra.Rank), Try: int32(ra.Attempt), Code: uint8(r.Code), Done: true}
		if r.Code != 0 && t.Tries[r.Place] < t.retries {
			t.Tries[r.Place]++
			t.wait(process.TaskRange{From: r.Place, Count: 1})
			if t.Tried = append(t.Tried, Try{task, r.Place, t.Tries[r.Place], len(t.Order)}); len(t.Tried) > jobs.MaxTried {
				t.Tried = t.Tried[1:]
			}
			continue
		}
		t.Tasks[r.Place] = task
		if t.done++; r.Files > 0 {
			t.filed++
		}
		t.Order = append(t.Order, int32(r.Place))
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

// note takes how a task of the rank ended.
func (l *TaskLease) note(r process.TaskResult) {
	switch {
	case r.Code == 0:
		l.streak = 0
		l.good++
	case r.Took < atOnce:
		l.streak++
	default:
		l.streak = 0
	}
}

// Stderr returns how much a worker's tasks that have ended wrote to standard error.
func (t *TaskTable) Stderr(ra jobs.RankAttempt) int64 {
	if e := t.errors[ra.Rank]; e.attempt == ra.Attempt {
		return e.bytes
	}
	return 0
}

// over reports whether all tasks have ended; t may be nil.
func (t *TaskTable) over() bool { return t != nil && t.done == len(t.Tasks) }

// Status sums up.
func (t *TaskTable) Status() *jobs.ArrayStatus {
	if t == nil {
		return nil
	}
	s := &jobs.ArrayStatus{Tasks: len(t.Tasks), Done: t.done, Failed: t.failed, Filed: t.filed}
	for _, l := range t.Leases {
		if l.Left > 0 {
			s.Running++
		}
	}
	s.Left = s.Tasks - s.Done - s.Running
	return s
}

// States returns where the task at a place is, for as long as nothing changes. Of those that a
// worker has, the first runs.
func (t *TaskTable) States() func(place int) jobs.TaskState {
	running := make(map[int]bool, len(t.Leases))
	for _, l := range t.Leases {
		if len(l.queue) > 0 {
			running[l.queue[0].From] = true
		}
	}
	return func(place int) jobs.TaskState {
		switch k := &t.Tasks[place]; {
		case k.Done && k.Code == 0:
			return jobs.TaskDone
		case k.Done:
			return jobs.TaskFailed
		case running[place]:
			return jobs.TaskRunning
		}
		return jobs.TaskWaiting
	}
}

// Ack tells a worker what it is to do, and what of it is safe here; failing is set
// if the job ends because tasks failed. The worker's attempt is the current one.
func (t *TaskTable) Ack(w wire.WorkerReport, failing bool) *wire.WorkerTasksAck {
	if w.Tasks == nil {
		return nil
	}
	l := t.Leases[w.Rank]
	if l == nil || l.attempt != w.Attempt {
		return &wire.WorkerTasksAck{Before: w.Tasks.Added, Last: t.waits == 0 || failing}
	}
	a := &wire.WorkerTasksAck{Results: l.Results, Before: w.Tasks.Added, Ranges: after(l.queue, w.Tasks.Added-l.Results)}
	if l.Left == 0 && (t.waits == 0 || l.closed || t.Hole(w.Rank)) {
		l.closed, a.Last = true, true
	}
	return a
}

// after returns what follows the first n tasks of ranges.
func after(ranges []process.TaskRange, n int) (rest []process.TaskRange) {
	for _, r := range ranges {
		skip := min(max(n, 0), r.Count)
		n -= skip
		if skip < r.Count && len(rest) < jobs.MaxTaskRanges {
			rest = append(rest, process.TaskRange{From: r.From + skip, Count: r.Count - skip})
		}
	}
	return rest
}

// verdict reports how an array ends.
func (t *TaskTable) verdict() Verdict {
	if t.failed == 0 {
		return Verdict{State: jobs.Completed}
	}
	reason := fmt.Sprintf("%d of %d tasks failed, task %d with %d", t.failed, len(t.Tasks), t.Numbers.ID(t.first), t.Tasks[t.first].Code)
	if left := len(t.Tasks) - t.done; left > 0 {
		reason += fmt.Sprintf("; %d were not done", left)
	}
	return Verdict{jobs.Failed, t.code, reason}
}

// Text reports how far a running array is.
func (t *TaskTable) Text() string {
	s := t.Status()
	text := fmt.Sprintf("%d of %d tasks done", s.Done, s.Tasks)
	if s.Failed > 0 {
		text += fmt.Sprintf(", %d failed", s.Failed)
	}
	return text + fmt.Sprintf(", %d running", s.Running)
}
