package record

import (
	"time"

	"zorilla/jobs"
	"zorilla/vicinity"
)

const (
	// KeepResults is how long results are kept if nothing else is said.
	KeepResults = 7 * 24 * time.Hour
	// KeepRecords is how many times longer the record of a job lives.
	KeepRecords = 10
	// KeepUnread is how long results are kept that nobody has asked for,
	// whatever room they need, and KeepRead how long those that somebody has:
	// who waited for a job may be about to fetch its files.
	KeepUnread    = 24 * time.Hour
	KeepRead      = time.Hour
	maxPastReason = 120
)

// Past is the record of a job that has ended: all that its origin keeps once
// the results are forgotten, and what lists have of it before.
type Past struct {
	ID        jobs.ID    `json:"-"`
	Stamp     jobs.Stamp `json:"stamp"`
	Name      string     `json:"name"` // or the beginning of the command
	State     jobs.State `json:"state"`
	Code      int        `json:"code"`
	Reason    string     `json:"reason,omitempty"`
	Min       int        `json:"min"`
	Max       int        `json:"max"`
	Tasks     int        `json:"tasks,omitempty"` // of an array: how many, and how many were done
	Done      int        `json:"done,omitempty"`
	Submitted int64      `json:"submitted"` // Unix nanoseconds; 0 = never
	Started   int64      `json:"started,omitempty"`
	Ended     int64      `json:"ended"`
	Forgotten int64      `json:"forgotten,omitempty"` // when the results were; 0 = they are kept
	Key       string     `json:"key,omitempty"`       // of its submission
	Sum       []byte     `json:"sum,omitempty"`       // of its spec, if it has a key; on disk only

	Size int64 `json:"-"` // of what the workers wrote, and of the files that they made
}

// PastOf sums an ended job up.
func PastOf(r *Record) *Past {
	p := &Past{
		ID: r.ID, Stamp: r.Stamp, Name: r.Spec.Title(), State: r.State, Code: r.Code, Reason: jobs.CutText(r.Reason, maxPastReason),
		Key: r.Spec.Key, Min: r.Spec.Min, Max: r.Spec.Max, Submitted: nanos(r.Submitted), Started: nanos(r.Started), Ended: nanos(r.Ended),
	}
	if a := r.Tasks.Status(); a != nil {
		p.Tasks, p.Done = a.Tasks, a.Done
	}
	return p
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// TimeOfNanos is a time that was kept as nanoseconds since 1970; 0 = none.
func TimeOfNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// Sound reports whether a record that came from disk can be used.
func (p *Past) Sound() bool {
	return p != nil && p.State.Final() && p.Min >= 0 && p.Max >= 0 && p.Ended != 0 && p.Forgotten != 0 &&
		len(p.Name) <= 2*jobs.MaxPastName && len(p.Reason) <= 2*maxPastReason && len(p.Key) <= jobs.MaxKey
}

// Intern makes records that were read from disk share their states.
func (p *Past) Intern() {
	for _, s := range []jobs.State{jobs.Completed, jobs.Failed, jobs.Cancelled, jobs.Timeout, jobs.NodeFail} {
		if p.State == s {
			p.State = s
		}
	}
}

// Status describes the job as far as its record does.
func (p *Past) Status(origin vicinity.ID) jobs.Status {
	st := jobs.Status{
		ID: p.ID, Origin: origin, Spec: jobs.Spec{Name: p.Name, Min: p.Min, Max: p.Max}, State: p.State, Reason: p.Reason, ExitCode: p.Code,
		Submitted: TimeOfNanos(p.Submitted), Started: TimeOfNanos(p.Started), Ended: TimeOfNanos(p.Ended), Forgotten: TimeOfNanos(p.Forgotten),
		Size: p.Size, Brief: true, Workers: []jobs.WorkerStatus{}, Rounds: []jobs.Round{},
	}
	if p.Tasks > 0 {
		st.Array = &jobs.ArrayStatus{Tasks: p.Tasks, Done: p.Done}
	}
	return st
}
