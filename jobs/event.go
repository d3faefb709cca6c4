package jobs

import (
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// eventKind names what happened to a job.
type eventKind string

const (
	evSubmitted eventKind = "submitted" // Spec, Stamp
	evGranted   eventKind = "granted"   // Node, Name, RTT, Ranks
	evReleased  eventKind = "released"  // Ranks went back before they had started; Reason
	evStarted   eventKind = "started"   // Ranks
	evExited    eventKind = "exited"    // Ranks (one), Exit, Output, Reason (a warning)
	evCollected eventKind = "collected" // Ranks (one): its outputs are in the store
	evFollowed  eventKind = "followed"  // After: the number of a dependency that is fulfilled, from 1
	evLost      eventKind = "lost"      // Ranks, Node, Reason
	evAway      eventKind = "away"      // Node is being started again, until For has passed
	evRetried   eventKind = "retried"   // Ranks get another attempt, all of a gang at once; Reason
	evDeclined  eventKind = "declined"  // the same, since the program of one did not begin at its node: it does not count
	evLeased    eventKind = "leased"    // Ranks (one) gets Tasks of an array
	evTasks     eventKind = "tasks"     // Ranks (one): Results of tasks
	evWarned    eventKind = "warned"    // Warn
	evEnded     eventKind = "ended"     // State, Reason, Code
	evForgotten eventKind = "forgotten" // Past: all that is left, in the place of all other events
)

// event is one durable change of a job. A job's record is a pure function of
// its events in order; unknown kinds, written by a newer node, change nothing.
type event struct {
	Kind   eventKind      `json:"kind"`
	At     time.Time      `json:"at"`
	Spec   *Spec          `json:"spec,omitempty"`
	Stamp  Stamp          `json:"stamp,omitempty"`
	Node   vicinity.ID    `json:"node,omitempty"`
	Name   string         `json:"name,omitempty"`
	RTT    codec.Duration `json:"rtt,omitempty"`
	For    codec.Duration `json:"for,omitempty"`
	Ranks  []RankAttempt  `json:"ranks,omitempty"`
	Exit   *process.Exit  `json:"exit,omitempty"`
	Wrote  *wrote         `json:"wrote,omitempty"` // of evExited
	Output *RankOutput    `json:"output,omitempty"`
	Warn   []string       `json:"warn,omitempty"`
	State  State          `json:"state,omitempty"`
	Reason string         `json:"reason,omitempty"`
	Code   int            `json:"code,omitempty"`
	After  int            `json:"after,omitempty"`
	Tally  *Tally         `json:"tally,omitempty"` // of evStarted and evEnded: what nodes had answered

	Tasks   []process.TaskRange `json:"tasks,omitempty"`
	Results []byte              `json:"results,omitempty"` // packed, see packResults

	Worst *WorstPair `json:"worst,omitempty"` // of evStarted
	Past  *past      `json:"past,omitempty"`

	Stored int64 `json:"stored,omitempty"` // of evEnded: size of the file that holds its output
}

// wrote is how many bytes a rank wrote in all.
type wrote struct {
	Stdout int64 `json:"stdout"`
	Stderr int64 `json:"stderr"`
}

// RankAttempt names one try of one rank. Everything that a worker sends
// carries it, and the primary drops what it no longer owns.
type RankAttempt struct {
	Rank    int `json:"rank"`
	Attempt int `json:"attempt"`
}

// rankRecord is what the primary knows of one rank.
type rankRecord struct {
	attempt   int // of the current or last try; 0 = never granted
	node      vicinity.ID
	name      string
	rtt       time.Duration
	state     WorkerState
	exit      *process.Exit
	wrote     *wrote // nil = not known
	output    *RankOutput
	collected bool
	retries   int    // attempts that followed a failure of the program
	retried   string // why a new attempt was, or is, needed
}

// record is a job as its events tell it.
type record struct {
	id        ID
	origin    vicinity.ID
	spec      Spec
	stamp     Stamp
	ranks     []rankRecord // by worker, spec.Workers() of them
	state     State
	reason    string // of the end
	code      int
	stored    int64  // bytes of its output file when it ended
	broken    string // why nothing is known of it from some point on, or ""
	warnings  []string
	submitted time.Time
	started   time.Time
	ended     time.Time
	met       map[int]bool              // fulfilled dependencies, by their place in the spec
	eligible  time.Time                 // since when it may look for workers
	tally     *Tally                    // of answers, when it started or ended
	lacking   time.Time                 // since when ranks need another attempt: of the latest loss or retry
	retries   int                       // times that the gang was started again as a whole
	tasks     *taskTable                // nil unless the job is an array
	epoch     int64                     // of the table: how often it has changed
	winner    map[int]int               // by rank, of a job with replicas: the worker that counts
	won       []int                     // ranks in the order in which that was known
	worst     *WorstPair                // of the nodes at the latest START; nil = not known
	past      *past                     // of a job whose results are forgotten: all that is known
	away      map[vicinity.ID]time.Time // when nodes that were stopped may be back at the latest
}

const maxWarnings = 100

// applyTasks does what an event means for the tasks of an array.
func (r *record) applyTasks(ev event) {
	for _, ra := range ev.Ranks {
		switch {
		case r.tasks == nil || !r.owns(ra):
		case ev.Kind == evLeased:
			r.tasks.lease(ra, ev.Tasks)
		case ev.Kind == evTasks:
			if rs, err := unpackResults(ev.Results); err == nil {
				r.tasks.ended(ra, rs)
			}
		case ev.Kind == evExited:
			r.tasks.free(ra.Rank)
		case ev.Kind == evLost || ev.Kind == evRetried || ev.Kind == evDeclined || ev.Kind == evReleased:
			r.tasks.free(ra.Rank)
		}
	}
}

// apply folds one event into the record. Events of superseded attempts change
// nothing, so that replaying is safe whatever was sent twice.
func (r *record) apply(ev event) {
	r.applyTasks(ev)
	r.turn(ev)
	if ev.Tally != nil {
		r.tally = ev.Tally
	}
	switch ev.Kind {
	case evSubmitted:
		r.spec, r.stamp, r.submitted, r.state, r.code = *ev.Spec, ev.Stamp, ev.At, Pending, -1
		r.met, r.eligible = map[int]bool{}, ev.At
		r.ranks = make([]rankRecord, r.spec.Workers())
		r.undecide()
		if r.spec.Array != nil {
			r.tasks = newTaskTable(&r.spec)
		}
		for i := range r.ranks {
			r.ranks[i].state = WorkerWanted
		}
	case evGranted:
		for _, ra := range ev.Ranks {
			r.ranks[ra.Rank] = rankRecord{attempt: ra.Attempt, node: ev.Node, name: ev.Name, rtt: time.Duration(ev.RTT), state: WorkerPreparing, retries: r.ranks[ra.Rank].retries, retried: r.ranks[ra.Rank].retried}
		}
	case evReleased:
		r.each(ev.Ranks, func(k *rankRecord) {
			*k = rankRecord{attempt: k.attempt, state: WorkerWanted, retries: k.retries, retried: ev.Reason}
		})
	case evRetried, evDeclined:
		r.again(ev)
	case evFollowed:
		r.met[ev.After-1], r.eligible = true, ev.At
	case evStarted:
		if r.started.IsZero() {
			r.started = ev.At
		}
		r.worst = ev.Worst
		r.each(ev.Ranks, func(k *rankRecord) { k.state = WorkerRunning })
	case evExited:
		r.each(ev.Ranks, func(k *rankRecord) {
			k.state, k.exit, k.wrote, k.output = WorkerEnded, ev.Exit, ev.Wrote, ev.Output
			k.collected = ev.Output == nil
		})
		r.warn(ev.Warn...)
	case evCollected:
		r.each(ev.Ranks, func(k *rankRecord) { k.collected = true })
	case evLost:
		r.each(ev.Ranks, func(k *rankRecord) { k.state, k.retried = WorkerLost, ev.Reason })
		r.warn(ev.Reason)
		r.lacking = ev.At
	case evWarned:
		r.warn(ev.Warn...)
	case evAway:
		if r.away == nil {
			r.away = map[vicinity.ID]time.Time{}
		}
		r.away[ev.Node] = ev.At.Add(time.Duration(ev.For))
	case evEnded:
		r.end(ev)
	}
	r.decide(ev.Ranks)
	if !r.state.Final() {
		r.state = r.derive()
	}
}

// end notes how the job ended.
func (r *record) end(ev event) {
	r.state, r.reason, r.code, r.ended = ev.State, ev.Reason, ev.Code, ev.At
	r.stored = ev.Stored
	for i := range r.ranks {
		switch k := &r.ranks[i]; k.state {
		case WorkerPreparing, WorkerReady, WorkerRunning:
			k.state = WorkerStopped
		}
		if r.tasks != nil { // nobody does them any more
			r.tasks.free(i)
		}
	}
}

// again gives ranks another attempt, which is a retry if they began the last one.
func (r *record) again(ev event) {
	retries := 1
	if ev.Kind == evDeclined {
		retries = 0
	}
	r.each(ev.Ranks, func(k *rankRecord) {
		*k = rankRecord{attempt: k.attempt, state: WorkerWanted, retries: k.retries + retries, retried: ev.Reason}
	})
	warning := ev.Reason
	if r.spec.Rigid() {
		if r.retries += retries; retries > 0 {
			warning = fmt.Sprintf("attempt %d: %s", r.retries, warning)
		}
		r.undecide()
		r.started = time.Time{} // all of it starts together, as the first time
	}
	r.warn(warning + ": trying again")
	r.lacking = ev.At
}

// each calls f for the ranks whose current attempt is named.
func (r *record) each(ras []RankAttempt, f func(*rankRecord)) {
	for _, ra := range ras {
		if r.owns(ra) {
			f(&r.ranks[ra.Rank])
		}
	}
}

// owns reports whether the rank's current attempt is meant.
func (r *record) owns(ra RankAttempt) bool {
	return ra.Rank >= 0 && ra.Rank < len(r.ranks) && ra.Attempt > 0 && r.ranks[ra.Rank].attempt == ra.Attempt
}

func (r *record) warn(texts ...string) {
	for _, t := range texts {
		if t != "" && len(r.warnings) < maxWarnings {
			r.warnings = append(r.warnings, t)
		}
	}
}

// derive tells the state of a job that has not ended from its ranks.
func (r *record) derive() State {
	var granted, running, ended, waiting int
	for i := range r.ranks {
		if r.spare(i) || r.replicated() && r.ranks[i].state == WorkerLost {
			continue // nobody waits for it
		}
		switch r.ranks[i].state {
		case WorkerPreparing, WorkerReady:
			granted++
		case WorkerRunning:
			running++
		case WorkerEnded:
			ended++
		case WorkerLost:
			waiting++
		case WorkerWanted:
			if r.ranks[i].attempt > 0 { // given back, see primary.missing
				waiting++
			}
		}
	}
	switch {
	case !r.started.IsZero() && ended > 0 && running+granted+waiting == 0:
		return Collecting
	case !r.started.IsZero():
		return Running
	case granted > 0:
		return Staging
	}
	return Pending
}

// sound reports whether an event that came from disk can be applied.
func (ev *event) sound(r *record) bool {
	if ev.Kind == evForgotten {
		return ev.Past.sound()
	}
	if ev.Kind == evSubmitted {
		return ev.Spec != nil && ev.Spec.Validate() == nil
	}
	if r.ranks == nil || ev.Kind == evFollowed && (ev.After < 1 || ev.After > len(r.spec.After)) {
		return false
	}
	if checkTaskRanges(ev.Tasks) != nil {
		return false
	}
	for _, ra := range ev.Ranks {
		if ra.Rank < 0 || ra.Rank >= len(r.ranks) || ra.Attempt < 1 {
			return false
		}
	}
	return true
}
