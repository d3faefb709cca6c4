// Package record is a job as its events tell it: Event is what the origin's journal
// has, Record is the fold of them, and nothing else decides what state a job is in.
// Applying an event twice, or one of an attempt that is over, changes nothing.
//
// Past is what is left of a job whose results were forgotten.
package record

import (
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
	"zorilla/vicinity"
)

// Kind names what happened to a job.
type Kind string

const (
	Submitted    Kind = "submitted"    // Spec, Stamp
	Booked       Kind = "booked"       // Booking: nodes have promised a start; nil = it is not counted on any more
	Granted      Kind = "granted"      // Node, Name, RTT, Ranks; Sizes of a job with groups
	Released     Kind = "released"     // Ranks went back before they had started; Reason
	Started      Kind = "started"      // Ranks
	Exited       Kind = "exited"       // Ranks (one), Exit, Output, Reason (a warning)
	Collected    Kind = "collected"    // Ranks (one): its outputs are in the store
	Followed     Kind = "followed"     // After: the number of a dependency that is fulfilled, from 1; behind the last: the time to begin has come
	Lost         Kind = "lost"         // Ranks, Node, Reason
	Away         Kind = "away"         // Node is being started again, until For has passed
	Retried      Kind = "retried"      // Ranks get another attempt, all of a gang at once; Reason
	Declined     Kind = "declined"     // the same, where it does not count: the program of one did not begin at its node, or others of its group were lost
	Moved        Kind = "moved"        // Ranks were ended to go on elsewhere, or wait for that: at Node, if that offers room, "" = anywhere; Reason
	Resized      Kind = "resized"      // Size: how many workers were asked for; Ranks are given back; Reason
	Leased       Kind = "leased"       // Ranks (one) gets Tasks of an array
	TasksEnded   Kind = "tasks"        // Ranks (one): Results of tasks
	Checkpointed Kind = "checkpointed" // Ranks (one): Saved, all that is needed of it
	Warned       Kind = "warned"       // Warn
	Cancelling   Kind = "cancel"       // a user wants the job to end; Reason
	Ended        Kind = "ended"        // State, Reason, Code
	OnEnd        Kind = "on-end"       // Code, Reason: how the command ended that was run since the job had
	Forgotten    Kind = "forgotten"    // Past: all that is left, in the place of all other events
)

// Event is one durable change of a job. A job's record is a pure function of
// its events in order; unknown kinds, written by a newer node, change nothing.
type Event struct {
	Kind   Kind               `json:"kind"`
	At     time.Time          `json:"at"`
	Spec   *jobs.Spec         `json:"spec,omitempty"`
	Stamp  jobs.Stamp         `json:"stamp,omitempty"`
	Node   vicinity.ID        `json:"node,omitempty"`
	Name   string             `json:"name,omitempty"`
	RTT    codec.Duration     `json:"rtt,omitempty"`
	For    codec.Duration     `json:"for,omitempty"`
	Ranks  []jobs.RankAttempt `json:"ranks,omitempty"`
	Exit   *work.Exit         `json:"exit,omitempty"`
	Wrote  *wire.Written      `json:"wrote,omitempty"` // of Exited
	Output *jobs.RankOutput   `json:"output,omitempty"`
	Warn   []string           `json:"warn,omitempty"`
	State  jobs.State         `json:"state,omitempty"`
	Reason string             `json:"reason,omitempty"`
	Code   int                `json:"code,omitempty"`
	After  int                `json:"after,omitempty"`
	Tally  *jobs.Tally        `json:"tally,omitempty"` // of Started and Ended: what nodes had answered

	Tasks   []process.TaskRange `json:"tasks,omitempty"`
	Results []byte              `json:"results,omitempty"` // packed, see PackResults

	Past *Past `json:"past,omitempty"`
	Placed
	Sizing
	Saved

	Stored int64 `json:"stored,omitempty"` // of Ended: size of the file that holds its output
}

// Rank is what the primary knows of one rank.
type Rank struct {
	Attempt   int // of the current or last try; 0 = never granted
	Node      vicinity.ID
	Name      string
	RTT       time.Duration
	State     jobs.WorkerState
	Exit      *work.Exit
	Wrote     *wire.Written // nil = not known
	Output    *jobs.RankOutput
	Collected bool
	Port      int    // that its node has chosen for what rank 0 listens at; 0 = none
	Retries   int    // attempts that followed a failure of the program
	Retried   string // why a new attempt was, or is, needed
	GivenBack bool   // the job does without it, whatever becomes of it, until it is granted again
	Saved
	Former   vicinity.ID    // where it was lost, or is to go on, until it has started elsewhere; "" = nowhere
	Left     vicinity.ID    // what it was moved away from, as long: it does not start there; "" = nothing
	Resumed  int            // the number of the checkpoint that the attempt began with; 0 = none
	Replaced *jobs.Replaced // why the attempt has its node; nil = the rank was not lost
}

// fresh returns what is left of a rank when its attempt is over and it needs another one: what is of
// the rank, and nothing of the attempt but its number.
func (k *Rank) fresh() Rank {
	return Rank{Attempt: k.Attempt, State: jobs.WorkerWanted, Retries: k.Retries, Retried: k.Retried, GivenBack: k.GivenBack, Saved: k.Saved,
		Former: k.Former, Left: k.Left}
}

// grant begins an attempt, of the rank that the event has at a place.
func (k *Rank) grant(attempt int, ev Event, place int) {
	*k = k.fresh()
	k.Attempt, k.Node, k.Name, k.RTT = attempt, ev.Node, ev.Name, time.Duration(ev.RTT)
	k.State, k.GivenBack = jobs.WorkerPreparing, false
	if place < len(ev.Resumed) {
		k.Resumed = ev.Resumed[place]
	}
	if place < len(ev.Replaced) && ev.Replaced[place].From != "" {
		k.Replaced = &ev.Replaced[place]
	}
}

// release ends an attempt before its start.
func (k *Rank) release(why string) {
	*k = k.fresh()
	k.Retried = why
}

// Record is a job as its events tell it.
type Record struct {
	ID     jobs.ID
	Origin vicinity.ID
	Stamp  jobs.Stamp
	Lineup
	State  jobs.State
	Reason string // of the end
	Code   int
	Ending
	Broken    string // why nothing is known of it from some point on, or ""
	Warnings  []string
	Submitted time.Time
	Started   time.Time
	Ended     time.Time
	Met       map[int]bool // fulfilled dependencies, by their place in the spec
	Eligible  time.Time    // since when it may look for workers
	Tally     *jobs.Tally  // of answers, when it started or ended
	Lacking   time.Time    // since when ranks need another attempt: of the latest loss or retry
	Retries   int          // times that the gang was started again as a whole
	Tasks     *TaskTable   // nil unless the job is an array
	Shape
	Won   Winners                   // of a job with replicas
	Worst *jobs.WorstPair           // of the nodes at the latest START; nil = not known
	Past  *Past                     // of a job whose results are forgotten: all that is known
	Away  map[vicinity.ID]time.Time // when nodes that were stopped may be back at the latest
	// Booking is the start that nodes have promised; nil = none is, or workers were granted.
	Booking *Booking
}

// applyTasks does what an event means for the tasks of an array.
func (r *Record) applyTasks(ev Event) {
	for _, ra := range ev.Ranks {
		switch {
		case r.Tasks == nil || !r.Owns(ra):
		case ev.Kind == Leased:
			r.Tasks.lease(ra, ev.Tasks)
		case ev.Kind == TasksEnded:
			if rs, err := wire.UnpackResults(ev.Results); err == nil {
				r.Tasks.ended(ra, rs)
			}
		case ev.Kind == Exited:
			r.Tasks.free(ra.Rank)
			if r.Ranks[ra.Rank].State != jobs.WorkerEnded {
				r.leave(ev.Exit)
			}
		case ev.Kind == Lost || ev.Kind == Retried || ev.Kind == Declined || ev.Kind == Released:
			r.Tasks.free(ra.Rank)
		}
	}
}

// Apply folds one event into the record. Events of superseded attempts change
// nothing, so that replaying is safe whatever was sent twice.
func (r *Record) Apply(ev Event) {
	r.applyTasks(ev)
	r.turn(ev)
	r.Booking = r.Booking.after(&ev)
	if ev.Tally != nil {
		r.Tally = ev.Tally
	}
	switch ev.Kind {
	case Submitted:
		r.Spec, r.Stamp, r.Submitted, r.State, r.Code = *ev.Spec, ev.Stamp, ev.At, jobs.Pending, -1
		r.Met, r.Eligible, r.missed = map[int]bool{}, ev.At, missed{}
		r.Ranks = make([]Rank, r.Spec.Workers())
		r.undecide()
		if r.Spec.Array != nil {
			r.Tasks = newTaskTable(&r.Spec)
		}
		for i := range r.Ranks {
			r.Ranks[i].State = jobs.WorkerWanted
		}
	case Granted:
		r.choose(ev.Sizes)
		for i, ra := range ev.Ranks {
			keep(r, ra.Rank)
			r.Ranks[ra.Rank].grant(ra.Attempt, ev, i)
		}
	case Released:
		r.each(ev.Ranks, func(k *Rank) { k.release(ev.Reason) })
	case Resized:
		resize(r, ev)
	case Retried, Declined, Moved:
		r.again(ev)
	case Followed:
		r.Met[ev.After-1], r.Eligible = true, ev.At
	case Started:
		if r.Started.IsZero() {
			r.Started = ev.At
		}
		r.Worst = ev.Worst
		r.each(ev.Ranks, func(k *Rank) { k.State, k.Port, k.Former, k.Left = jobs.WorkerRunning, 0, "", "" })
		for i, port := range ev.Ports[:min(len(ev.Ports), len(ev.Ranks))] {
			r.each(ev.Ranks[i:i+1], func(k *Rank) { k.Port = port })
		}
	case Exited:
		r.each(ev.Ranks, func(k *Rank) {
			k.State, k.Exit, k.Wrote, k.Output = jobs.WorkerEnded, ev.Exit, ev.Wrote, ev.Output
			k.Collected = ev.Output == nil
		})
		r.warn(r.missed.take(ev, r.Spec.Workers() > 1 && r.Tasks == nil)...)
	case Collected:
		r.each(ev.Ranks, func(k *Rank) { k.Collected = true })
	case Lost:
		r.each(ev.Ranks, func(k *Rank) { k.lose(ev.Reason) })
		r.warn(ev.Reason)
		r.Lacking = ev.At
	case Checkpointed:
		save(&r.Lineup, ev)
	case Warned:
		r.warn(ev.Warn...)
	case Away:
		r.Away = expected(r.Away, ev)
	case Cancelling, Ended:
		r.end(ev)
	case OnEnd:
		r.OnEnd = &jobs.OnEnd{At: ev.At, Code: ev.Code, Text: ev.Reason}
	}
	r.decide(ev.Ranks)
	if !r.State.Final() {
		r.State = r.derive()
		r.reopen()
	}
}

// end notes how the job ended, or that it is to end.
func (r *Record) end(ev Event) {
	if ev.Kind == Cancelling {
		r.Cancelled = ev.Reason
		return
	}
	r.State, r.Reason, r.Code, r.Ended = ev.State, ev.Reason, ev.Code, ev.At
	r.warn(append(r.missed.by(r.Count(jobs.WorkerEnded)), leftText(r))...)
	r.Stored = ev.Stored
	for i := range r.Ranks {
		switch k := &r.Ranks[i]; k.State {
		case jobs.WorkerPreparing, jobs.WorkerReady, jobs.WorkerRunning:
			k.State = jobs.WorkerStopped
		}
		if r.Tasks != nil { // nobody does them any more
			r.Tasks.free(i)
		}
	}
}

// again gives ranks another attempt, which is a retry if they began the last one.
func (r *Record) again(ev Event) {
	r.Lacking = ev.At
	if ev.Kind == Moved { // as somebody wants it: that is no warning
		r.each(ev.Ranks, func(k *Rank) { k.move(ev.Node, ev.Reason) })
		return
	}
	retries := 1
	if ev.Kind == Declined {
		retries = 0
	}
	r.each(ev.Ranks, func(k *Rank) {
		*k = k.fresh()
		k.Retries, k.Retried, k.GivenBack = k.Retries+retries, ev.Reason, false
	})
	warning := ev.Reason
	if r.Spec.FixedSize() && len(ev.Ranks) == len(r.Ranks) {
		if r.Retries += retries; retries > 0 {
			warning = fmt.Sprintf("attempt %d: %s", r.Retries, warning)
		}
		r.undecide()
		r.Started = time.Time{} // all of it starts together, as the first time
	}
	r.warn(warning + ": trying again")
}

// each calls f for the ranks whose current attempt is named.
func (r *Record) each(ras []jobs.RankAttempt, f func(*Rank)) {
	for _, ra := range ras {
		if r.Owns(ra) {
			f(&r.Ranks[ra.Rank])
		}
	}
}

// Owns reports whether the rank's current attempt is meant.
func (r *Record) Owns(ra jobs.RankAttempt) bool {
	return ra.Rank >= 0 && ra.Rank < len(r.Ranks) && ra.Attempt > 0 && r.Ranks[ra.Rank].Attempt == ra.Attempt
}

func (r *Record) warn(texts ...string) {
	for _, t := range texts {
		if t != "" && len(r.Warnings) < jobs.MaxWarnings {
			r.Warnings = append(r.Warnings, t)
		}
	}
}

// derive tells the state of a job that has not ended from its ranks.
func (r *Record) derive() jobs.State {
	var granted, running, ended, waiting int
	for i := range r.Ranks {
		if r.Surplus(i) || r.Replicated() && r.Ranks[i].State == jobs.WorkerLost {
			continue // nobody waits for it
		}
		switch r.Ranks[i].State {
		case jobs.WorkerPreparing, jobs.WorkerReady:
			granted++
		case jobs.WorkerRunning:
			running++
		case jobs.WorkerEnded:
			ended++
		case jobs.WorkerLost:
			waiting++
		case jobs.WorkerWanted:
			if r.Ranks[i].again() {
				waiting++
			}
		}
	}
	switch {
	case !r.Started.IsZero() && ended > 0 && running+granted+waiting == 0:
		return jobs.Collecting
	case !r.Started.IsZero():
		return jobs.Running
	case granted > 0:
		return jobs.Staging
	}
	return jobs.Pending
}

// Sound reports whether an event that came from disk can be applied.
func (ev *Event) Sound(r *Record) bool {
	if ev.Kind == Forgotten {
		return ev.Past.Sound()
	}
	if ev.Kind == Submitted {
		return ev.Spec != nil && ev.Spec.Validate() == nil
	}
	if r.Ranks == nil || ev.Kind == Followed && (ev.After < 1 || ev.After > r.Spec.Conditions()) {
		return false
	}
	ranks, ok := r.Lineup.sound(ev)
	if wire.CheckTaskRanges(ev.Tasks) != nil || ev.Size < 0 || ev.Size > len(r.Ranks) || !ok || !ev.Saved.sound() || !ev.Booking.sound() {
		return false
	}
	for _, ra := range ev.Ranks {
		if ra.Rank < 0 || ra.Rank >= ranks || ra.Attempt < 1 {
			return false
		}
	}
	return true
}

// Filed is how large the files are that the job made.
func (r *Record) Filed() (n int64) {
	for i := range r.Ranks {
		if k := &r.Ranks[i]; k.Output != nil && k.Collected {
			n += k.Output.Bytes
		}
	}
	for _, k := range r.Kept {
		if k.Output != nil {
			n += k.Output.Bytes
		}
	}
	return n
}
