package process

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"time"

	"zorilla/jobs/work"
)

// TaskSpec makes a worker run many commands, one after the other, instead of
// one: the tasks of an array. Each has Spec.Args for its command, variables
// ZORILLA_TASK_ID and ZORILLA_TASK_COUNT, and Spec.Walltime and Memory for
// itself alone; what it leaves behind is killed before the next one begins.
type TaskSpec struct {
	IDs []work.TaskIDs `json:"ids"`
	// Lines names a file in Root/work with a line for each task ID, from 1; ""
	// = none. It is taken out of the work directory. A task finds its line in
	// ZORILLA_TASK_LINE and in its arguments: in place of {}, or at their end.
	Lines string `json:"lines,omitempty"`
	// Outputs are patterns of files, as of transfer.Collect, that are taken
	// along when a task has ended.
	Outputs []string `json:"outputs,omitempty"`
	// Left is for tasks without Outputs: up to what of the files that they leave is taken along;
	// nil = nobody looks for any.
	Left *LeftLimit `json:"left,omitempty"`
}

// LeftLimit bounds files that nobody has asked for.
type LeftLimit struct {
	Files int   `json:"files"` // of a task
	Bytes int64 `json:"bytes"` // of a task
	All   int64 `json:"all"`   // bytes of all tasks of the worker
}

// takesFiles reports whether files may come with results.
func (t *TaskSpec) takesFiles() bool { return len(t.Outputs) > 0 || t.Left != nil }

// TaskDir is the directory in Root that tasks begin in.
const TaskDir = "task"

// TaskRange is some tasks that follow each other, by their places.
type TaskRange struct {
	From  int `json:"f"`
	Count int `json:"n"`
}

// TaskResult is how a task ended.
type TaskResult struct {
	Place          int
	Code           int   // 0..255, as in Exit
	Stdout, Stderr int64 // bytes that it wrote; they follow those of the task before
	Files          int64 // bytes of a transfer.Pack of its files, which follow its standard error in that stream
	Took           time.Duration
}

// TaskFeed is how a worker gets its tasks. Its methods may be called from any
// goroutine.
type TaskFeed interface {
	// Add appends tasks to those that the worker runs, of which it has had
	// so many before; what it has already is passed over, so that saying it
	// again is harmless. After the last ones the worker ends by itself.
	Add(before int, ranges []TaskRange, last bool)
	// Counts returns how many tasks the worker has got and how many of these
	// have ended.
	Counts() (added, ended int)
	// Results returns how tasks ended, at most limit, in that order, from the
	// one at the place from on.
	Results(from, limit int) ([]TaskResult, error)
}

// TaskQueue keeps what TaskFeed.Add brought and no task has been begun of. Its
// owner, one goroutine or a mutex, guards it.
type TaskQueue struct {
	count  int // of all tasks that there are
	added  int
	last   bool
	ranges []TaskRange
}

// NewTaskQueue returns an empty queue for tasks at places from 0 to count-1.
func NewTaskQueue(count int) *TaskQueue { return &TaskQueue{count: count} }

// Add is TaskFeed.Add. It passes over ranges that no honest node sends, and those
// before which some are missing: they come again.
func (q *TaskQueue) Add(before int, ranges []TaskRange, last bool) {
	if before < 0 || checkRanges(ranges) != nil {
		return
	}
	for _, r := range ranges {
		if before > q.added {
			break
		}
		known := min(q.added-before, r.Count)
		before += r.Count
		if r.From += known; r.Count > known && r.From+r.Count-known <= q.count {
			q.ranges = append(q.ranges, TaskRange{r.From, r.Count - known})
			q.added += r.Count - known
		}
	}
	q.last = q.last || last && before == q.added
}

// Added returns how many tasks came in all.
func (q *TaskQueue) Added() int { return q.added }

// Next takes the task to begin next; with !ok there is none, and over says that
// none comes any more.
func (q *TaskQueue) Next() (place int, ok, over bool) {
	if len(q.ranges) == 0 {
		return 0, false, q.last
	}
	r := &q.ranges[0]
	place = r.From
	if r.From, r.Count = r.From+1, r.Count-1; r.Count == 0 {
		q.ranges = q.ranges[1:]
	}
	return place, true, false
}

const (
	maxTaskRuns = 100_000
	maxTasks    = 1 << 24
)

// check refuses what no supervisor could use.
func (t *TaskSpec) check() error {
	if len(t.IDs) == 0 || len(t.IDs) > maxTaskRuns {
		return fmt.Errorf("%w: %d runs of tasks", ErrSpec, len(t.IDs))
	}
	total := 0
	for _, r := range t.IDs {
		if r.Step < 1 || r.First < 0 || r.Last < r.First {
			return fmt.Errorf("%w: tasks %d-%d:%d", ErrSpec, r.First, r.Last, r.Step)
		}
		if total += r.Count(); total > maxTasks {
			return fmt.Errorf("%w: more than %d tasks", ErrSpec, maxTasks)
		}
	}
	if t.Lines != "" && (filepath.Base(t.Lines) != t.Lines || !filepath.IsLocal(t.Lines)) {
		return fmt.Errorf("%w: lines in %q: want a file of the work directory", ErrSpec, t.Lines)
	}
	return nil
}

// appendResult writes a result as it stands in Root/tasks.
func (t *TaskSpec) appendResult(b []byte, r TaskResult) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(r.Place))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Code))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Stdout))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Stderr))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Took))
	if t.takesFiles() {
		b = binary.BigEndian.AppendUint64(b, uint64(r.Files))
	}
	return b
}

// resultSize is how long that is. Supervisors that are older than Outputs, or Left, write
// no Files: their spec has none of it.
func (t *TaskSpec) resultSize() int {
	if t.takesFiles() {
		return 40
	}
	return 32
}

// parseResult reads what appendResult wrote.
func (t *TaskSpec) parseResult(b []byte) (TaskResult, error) {
	r := TaskResult{
		Place: int(binary.BigEndian.Uint32(b)), Code: int(binary.BigEndian.Uint32(b[4:])),
		Stdout: int64(binary.BigEndian.Uint64(b[8:])), Stderr: int64(binary.BigEndian.Uint64(b[16:])),
		Took: time.Duration(binary.BigEndian.Uint64(b[24:])),
	}
	if t.takesFiles() {
		r.Files = int64(binary.BigEndian.Uint64(b[32:]))
	}
	if r.Place >= maxTasks || r.Code > 255 || r.Stdout < 0 || r.Stderr < 0 || r.Took < 0 || r.Files < 0 {
		return r, fmt.Errorf("%w: result of a task", errMalformed)
	}
	return r, nil
}
