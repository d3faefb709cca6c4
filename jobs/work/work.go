// Package work has the types by which a job and the processes of a worker speak of it: what it
// writes, which tasks it is given, and how it ends. It imports nothing of Zorilla.
package work

import (
	"sort"
	"strconv"
	"strings"
	"time"
)

// Stream is one of a worker's outputs.
type Stream uint8

// The streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
	// Files has the output files of tasks, a transfer.Pack for each task. No worker writes to it.
	Files Stream = 3
)

// String returns "stdout", "stderr" or "files".
func (s Stream) String() string {
	switch s {
	case Stderr:
		return "stderr"
	case Files:
		return "files"
	}
	return "stdout"
}

// Cause says why a worker ended.
type Cause string

// The causes.
const (
	Exited    Cause = "exited"    // by itself, with Code
	Signalled Cause = "signalled" // by a signal that Zorilla did not send
	Walltime  Cause = "walltime"  // needed more than its time
	Memory    Cause = "memory"    // needed more than its memory
	Disk      Cause = "disk"      // needed more than its disk space
	Output    Cause = "output"    // wrote more than it may to standard output and error
	Full      Cause = "disk full" // that of its node is; its files are gone
	Stopped   Cause = "stopped"   // by its node
	Orphaned  Cause = "orphaned"  // its node was gone, or its origin silent, for too long
	NotFound  Cause = "not found" // the command does not exist (127)
	NotRun    Cause = "not run"   // the command exists but cannot be executed (126)
	Failed    Cause = "failed"    // the supervisor failed (125); Detail says how
	Unstarted Cause = "unstarted" // nothing of the program ran, through no fault of it as far as can be told (125); Detail says why
	Lost      Cause = "lost"      // the supervisor was killed (125), so that nobody knows how the worker ended
)

// Exit is how a worker ended.
type Exit struct {
	Code    int       `json:"code"` // 0..255; 128+signal; 124 walltime; 137 memory, disk, output, full; 125, 126, 127 as in Cause
	Cause   Cause     `json:"cause"`
	Detail  string    `json:"detail,omitempty"` // one line for people
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended"`
	CPU     float64   `json:"cpu,omitempty"`  // seconds of the whole tree
	Peak    int64     `json:"peak,omitempty"` // bytes, as far as it was seen

	// Read and Written are bytes of files that the tree read from disks, and wrote to them, if
	// Counted: nodes of before did not.
	Read    int64 `json:"read,omitempty"`
	Written int64 `json:"written,omitempty"`
	Counted bool  `json:"counted,omitempty"`

	Left *Left `json:"left,omitempty"` // of a worker with tasks that name no output files; nil = nothing
}

// Left is what tasks have left that was removed, since it was more than is taken along.
type Left struct {
	Tasks int    `json:"tasks"`          // how often tasks did
	Task  int    `json:"task"`           // the ID of the first
	Name  string `json:"name,omitempty"` // of a file of that one, on one line
}

// TaskIDs is a run of task numbers: First, First+Step and so on up to Last.
type TaskIDs struct {
	First int `json:"first"`
	Last  int `json:"last"`
	Step  int `json:"step"`
}

// Count returns how many tasks there are.
func (r TaskIDs) Count() int { return (r.Last-r.First)/r.Step + 1 }

// TaskNumbers maps the places of tasks in a list of runs, from 0, to their IDs.
type TaskNumbers struct {
	runs  []TaskIDs
	begin []int // place of each run's first task
	count int
}

// ParseRuns reads numbers from 0 and ranges of them, with a step, as in "1-9:2,12".
func ParseRuns(list string) (runs []TaskIDs, ok bool) {
	for part := range strings.SplitSeq(list, ",") {
		span, step, stepped := strings.Cut(part, ":")
		first, last, ranged := strings.Cut(span, "-")
		if !ranged {
			last = first
		}
		r := TaskIDs{Step: 1}
		var errs [3]error
		r.First, errs[0] = strconv.Atoi(first)
		r.Last, errs[1] = strconv.Atoi(last)
		if stepped {
			r.Step, errs[2] = strconv.Atoi(step)
		}
		if errs != [3]error{} || r.First < 0 || r.Last < r.First || r.Step < 1 || stepped && !ranged {
			return nil, false
		}
		r.Last -= (r.Last - r.First) % r.Step
		runs = append(runs, r)
	}
	return runs, true
}

// NumberTasks returns the IDs of the runs, in order. Each of them must hold at
// least one task.
func NumberTasks(runs []TaskIDs) TaskNumbers {
	n := TaskNumbers{runs: runs, begin: make([]int, len(runs))}
	for i, r := range runs {
		n.begin[i] = n.count
		n.count += r.Count()
	}
	return n
}

// Count returns how many tasks there are.
func (n *TaskNumbers) Count() int { return n.count }

// ID returns the ID of the task at a place from 0 to Count()-1.
func (n *TaskNumbers) ID(place int) int {
	i := sort.SearchInts(n.begin, place+1) - 1
	return n.runs[i].First + (place-n.begin[i])*n.runs[i].Step
}

// Place returns the place of the first task with an ID.
func (n *TaskNumbers) Place(id int) (int, bool) {
	for i, r := range n.runs {
		if id >= r.First && id <= r.Last && (id-r.First)%r.Step == 0 {
			return n.begin[i] + (id-r.First)/r.Step, true
		}
	}
	return 0, false
}
