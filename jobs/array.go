package jobs

import (
	"fmt"
	"strconv"
	"strings"

	"zorilla/internal/codec"
	"zorilla/jobs/work"
	"zorilla/vicinity"
)

// Limits of an array.
const (
	MaxTasks      = 1_000_000
	MaxTaskRuns   = 10_000 // of task IDs
	MaxTaskID     = 1 << 30
	ArrayLines    = ".zorilla-lines" // the input file with a line for each task
	arrayWorkers  = 1000             // at once, if the user says nothing
	MaxResults    = 4096             // of tasks in one report
	MaxTaskRanges = 64               // leased to a worker at once
)

// Array makes a job run its command once for each task, in workers that take
// one task after the other. Such a job starts with one worker and grows up to
// Spec.Max; it ends when all tasks have ended.
type Array struct {
	Tasks []work.TaskIDs `json:"tasks"` // IDs, each once
	// Lines tells that the inputs hold ArrayLines, with a line for each ID.
	Lines bool `json:"lines,omitempty"`
}

// ParseArray reads task IDs as in "1-10000%50" or "1-9:2,12": numbers and
// ranges, with a step, and how many tasks may run at once (0 = not said).
func ParseArray(s string) (tasks []work.TaskIDs, atOnce int, err error) {
	bad := func() ([]work.TaskIDs, int, error) {
		return nil, 0, fmt.Errorf("-a %.60s: want task numbers such as 1-10000%%50 or 1-9:2,12", s)
	}
	list, limit, limited := strings.Cut(s, "%")
	if limited {
		if atOnce, err = strconv.Atoi(limit); err != nil || atOnce < 1 {
			return bad()
		}
	}
	tasks, ok := work.ParseRuns(list)
	if !ok {
		return bad()
	}
	a := Array{Tasks: tasks}
	if text := a.check(); text != "" {
		return nil, 0, fmt.Errorf("-a %.60s: %s", s, text)
	}
	return tasks, atOnce, nil
}

// ArrayWorkers returns how many workers an array of so many tasks has at most.
func ArrayWorkers(tasks, atOnce int) int {
	if atOnce == 0 {
		atOnce = arrayWorkers
	}
	return min(tasks, atOnce, MaxRanks)
}

// check returns what is wrong, as a user sees it.
func (a *Array) check() string {
	if len(a.Tasks) == 0 || len(a.Tasks) > MaxTaskRuns {
		return fmt.Sprintf("%d ranges of tasks, want 1 to %d", len(a.Tasks), MaxTaskRuns)
	}
	total := 0
	for _, r := range a.Tasks {
		if r.First < 0 || r.Last < r.First || r.Last > MaxTaskID || r.Step < 1 || (r.Last-r.First)%r.Step != 0 {
			return fmt.Sprintf("tasks %d-%d:%d: want numbers from 0 to %d", r.First, r.Last, r.Step, MaxTaskID)
		}
		if total += r.Count(); total > MaxTasks {
			return fmt.Sprintf("more than %d tasks: make several jobs of them", MaxTasks)
		}
	}
	seen := make(map[int]struct{}, total)
	for _, r := range a.Tasks {
		for id := r.First; id <= r.Last; id += r.Step {
			if _, twice := seen[id]; twice {
				return fmt.Sprintf("task %d is there twice", id)
			}
			seen[id] = struct{}{}
		}
	}
	return ""
}

// checkArray returns what is wrong with a job's array, if it has one.
func (s *Spec) checkArray() string {
	switch {
	case s.Array == nil:
		return ""
	case s.Min != 1:
		return "-a: workers are found one by one, -n does not say how many: -a 1-100%8 has at most 8 at once"
	case s.Stdin:
		return "-a: tasks have no standard input: --stdin none"
	case s.Array.Lines && s.Inputs.IsZero():
		return "" // still to be pushed; a node without them says so
	}
	return s.Array.check()
}

// Count returns how many tasks there are.
func (a *Array) Count() (n int) {
	for _, r := range a.Tasks {
		n += r.Count()
	}
	return n
}

// TaskRuns packs task IDs, which must rise, into runs.
func TaskRuns(ids []int) (runs []work.TaskIDs) {
	for _, id := range ids {
		if n := len(runs); n > 0 {
			switch r := &runs[n-1]; {
			case r.First == r.Last:
				r.Last, r.Step = id, id-r.First
				continue
			case id-r.Last == r.Step:
				r.Last = id
				continue
			}
		}
		runs = append(runs, work.TaskIDs{First: id, Last: id, Step: 1})
	}
	return runs
}

// ArrayStatus sums up the tasks of an array.
type ArrayStatus struct {
	Tasks   int `json:"tasks"`
	Done    int `json:"done"`            // ended, with 0 or for good with another code
	Failed  int `json:"failed"`          // of these, with another code
	Running int `json:"running"`         // workers that have a task
	Left    int `json:"left"`            // neither ended nor running
	Filed   int `json:"filed,omitempty"` // of those that have ended, how many left files that are kept
}

// TaskState is where one task of an array is.
type TaskState string

// The states of tasks.
const (
	TaskWaiting TaskState = "waiting" // for a worker, or behind another task of its worker
	TaskRunning TaskState = "running"
	TaskDone    TaskState = "done"
	TaskFailed  TaskState = "failed"   // for good
	TaskNotDone TaskState = "not done" // and will not be: the job has ended
)

// TaskStatus is one task of an array.
type TaskStatus struct {
	ID     int            `json:"id"`
	State  TaskState      `json:"state,omitempty"` // "" = its origin does not tell
	Done   bool           `json:"done"`
	Code   int            `json:"exit_code"` // -1 unless Done
	Tries  int            `json:"tries,omitempty"`
	Rank   int            `json:"rank"` // of the worker that ran it; -1 unless Done
	Node   vicinity.ID    `json:"node,omitempty"`
	Took   codec.Duration `json:"took,omitempty"`
	Stdout int64          `json:"stdout,omitempty"` // bytes
	Stderr int64          `json:"stderr,omitempty"`
	Files  int64          `json:"files,omitempty"` // bytes of its output files, as they travel
}

// TaskQuery selects tasks of an array.
type TaskQuery struct {
	From   int  // place of the first one, from 0
	Limit  int  // at most; 0 = as many as one answer holds
	Failed bool // only those that have failed
	Cells  int  // letters of the picture, at most MaxCells; 0 = no picture
}

// TaskPage is an answer to a TaskQuery.
type TaskPage struct {
	Tasks []TaskStatus `json:"tasks"`
	Next  int          `json:"next"` // where to go on; 0 = that was the end
	// Picture sums all tasks up, in the letters CellWaits and so on.
	Picture string `json:"picture,omitempty"`
}

// OutputQuery selects output.
type OutputQuery struct {
	Rank   int  // of an array: the ID of a task; -1 = all
	Follow bool // wait for more until the job has ended
	// Files asks an array for the output files of its tasks, as work.Files:
	// a transfer.Pack for each, instead of what it wrote.
	Files bool
	// Times asks for the times at which output came, as far as they are known.
	Times bool
	// Since leaves out lines that came before: milliseconds since 1970; 0 = none. Those whose
	// time is not known are told.
	Since int64
	// Attempt asks for what this attempt of ranks, or this try of tasks, wrote, from 1, without
	// Follow; 0 = the one that counts.
	Attempt int
}

// MaxTried is how many tries of an array's tasks, which failed and were followed by others, are
// kept: the last ones.
const MaxTried = 10_000

// MaxTaskPage bounds one answer.
const MaxTaskPage = 10_000

// MaxCells bounds the picture of an array.
const MaxCells = 1000

// Letters of a picture: how a stretch of tasks stands.
const (
	CellWaits  = '.' // nobody has one of them
	CellRuns   = 'r' // a worker has some
	CellPartly = 'p' // some are done, the others wait
	CellDone   = 'd' // all have ended with 0
	CellFailed = 'f' // one or more have failed
)
