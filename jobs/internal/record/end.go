package record

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// What the ends of a job's ranks mean for the job.

// BadExit reports whether a rank's program failed by itself: what Zorilla
// stopped because of others says nothing about the job.
func BadExit(e *work.Exit) bool { return e != nil && e.Code != 0 && e.Cause != work.Stopped }

// Succeeded reports whether a program ended with 0 by itself.
func Succeeded(e *work.Exit) bool { return e != nil && e.Code == 0 && e.Cause != work.Stopped }

// failedRanks returns how many ranks have failed for good; of a rank with copies
// none can end with 0 any more, and one at least failed.
func (r *Record) failedRanks() (n int) {
	if r.Replicated() {
		for rank := range r.Spec.Max {
			if _, failed := r.Hopeless(rank); failed {
				n++
			}
		}
		return n
	}
	for i := range r.Ranks {
		if k := &r.Ranks[i]; k.State == jobs.WorkerEnded && BadExit(k.Exit) && !k.GivenBack {
			n++
		}
	}
	return n
}

// Failing reports whether the job ends because ranks have failed, or a user wants that:
// nobody is looked for any more, and who runs is stopped.
func (r *Record) Failing() bool {
	if r.Cancelled != "" || Overflowed(r) {
		return true
	}
	n := 0
	if t := r.Tasks; t != nil {
		n = t.failed
	} else {
		n = r.failedRanks()
	}
	return n > 0 && r.Spec.StopsOnBadExit() || r.Spec.MaxFails > 0 && n > r.Spec.MaxFails
}

// Overflowed reports whether a worker of a job wrote more than --max-output. Then the job ends: its
// origin keeps what the others write, and would keep what another attempt writes.
func Overflowed(r *Record) bool {
	return r.Spec.MaxOutput > 0 && r.Tasks == nil && slices.ContainsFunc(r.Ranks, func(k Rank) bool { return k.overflowed() })
}

func (k *Rank) overflowed() bool {
	return k.State == jobs.WorkerEnded && k.Exit != nil && k.Exit.Cause == work.Output && !k.GivenBack
}

// Closing reports whether the job looks for nobody any more and ends with those
// that run.
func (r *Record) Closing() bool { return r.Failing() || r.Tasks.over() }

// Idle reports whether the end of the job does not wait for a worker.
func (r *Record) Idle(worker int) bool {
	return r.Replicated() && (r.Surplus(worker) || r.Ranks[worker].State == jobs.WorkerLost)
}

// forgiven reports whether a program that failed did so in a copy that the job
// could do without.
func (r *Record) forgiven(worker int) bool {
	if !r.Replicated() {
		return false
	}
	rank, _ := r.Spec.RankOf(worker)
	_, failed := r.Hopeless(rank)
	return !failed
}

// Ending is what belongs to the end of a job.
type Ending struct {
	missed    missed
	left      work.Left   // by tasks of all workers that have ended, and removed
	Cancelled string      // why, from when a user wants it to end; "" = nobody does
	Stored    int64       // bytes of its output file then
	OnEnd     *jobs.OnEnd // how the command of --on-end ended; nil = it has not, or there is none
}

// missed are output patterns that matched nothing, by the workers of which that is so. It is no
// news of one rank among several: mostly rank 0 writes the file.
type missed map[string]map[int]bool

// take takes the warnings of a worker that has ended, if it is one of several, and returns the
// others.
func (m missed) take(ev Event, several bool) (others []string) {
	if !several || len(ev.Ranks) != 1 {
		return ev.Warn
	}
	worker := ev.Ranks[0].Rank
	for _, workers := range m {
		delete(workers, worker) // in an earlier attempt
	}
	for _, text := range ev.Warn {
		_, what, ok := strings.Cut(text, ": ")
		if !ok || !strings.HasSuffix(what, transfer.MatchesNothing) {
			others = append(others, text)
			continue
		}
		if m[what] == nil {
			m[what] = map[int]bool{}
		}
		m[what][worker] = true
	}
	return others
}

// by lists what so many workers, which are all, left no file for.
func (m missed) by(all int) (texts []string) {
	for _, what := range slices.Sorted(maps.Keys(m)) {
		if n := len(m[what]); n > 0 && n == all {
			texts = append(texts, fmt.Sprintf("%s, of %s", what, units.Count(n, "rank", "ranks")))
		}
	}
	return texts
}

// leave takes what tasks of a worker left that was removed.
func (e *Ending) leave(exit *work.Exit) {
	if exit == nil || exit.Left == nil {
		return
	}
	if e.left.Tasks == 0 {
		e.left.Task, e.left.Name = exit.Left.Task, exit.Left.Name
	}
	e.left.Tasks += exit.Left.Tasks
}

// leftText says what tasks left that was removed; "" = nothing.
func leftText(r *Record) string {
	if r.Tasks == nil || r.left.Tasks == 0 {
		return ""
	}
	n := min(r.left.Tasks, len(r.Tasks.Tasks)) // each try has counted
	return fmt.Sprintf("%s left files that no -o names and that were removed, such as %s of task %d", units.Count(n, "task", "tasks"), r.left.Name, r.left.Task)
}

// Owes reports whether the command of --on-end is to be run: the job has ended, and how is known.
func Owes(r *Record) bool {
	return r.State.Final() && r.Broken == "" && r.Past == nil && r.Spec.OnEnd != "" && r.OnEnd == nil
}

// Verdict is how a job ends.
type Verdict struct {
	State  jobs.State
	Code   int
	Reason string
}

// Verdict decides how the job ends from how its ranks, or tasks, ended.
func (r *Record) Verdict() Verdict {
	if r.Cancelled != "" {
		return Verdict{jobs.Cancelled, jobs.CodeCancelled, r.Cancelled}
	}
	if r.Tasks != nil {
		return r.Tasks.verdict()
	}
	v, over := Verdict{State: jobs.Completed}, ""
	for i := range r.Ranks {
		k := &r.Ranks[i]
		if !BadExit(k.Exit) || k.GivenBack || r.forgiven(i) && !k.overflowed() {
			continue
		}
		if v.State == jobs.Completed {
			v.State = jobs.Failed
		}
		if k.Exit.Cause == work.Walltime && v.State != jobs.Timeout {
			v.State, over = jobs.Timeout, r.ExitReason(i, k)
		}
		if k.Exit.Code > v.Code {
			v.Code, v.Reason = k.Exit.Code, r.ExitReason(i, k)
		}
	}
	if v.State == jobs.Timeout {
		if v.Code, v.Reason = jobs.CodeTimeout, over; r.Spec.Walltime > 0 { // else its node's owner has set it
			v.Reason = fmt.Sprintf("needed more than %v (-t)", r.Spec.Walltime)
		}
	}
	return v
}

// StoppedText adds to the reason of a failure that other ranks were stopped.
func (r *Record) StoppedText() string {
	n := r.Count(jobs.WorkerLost, jobs.WorkerPreparing, jobs.WorkerReady)
	for i := range r.Ranks {
		if e := r.Ranks[i].Exit; e != nil && e.Cause == work.Stopped && !r.Ranks[i].GivenBack {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 other was stopped"
	}
	return fmt.Sprintf("; %d others were stopped", n)
}

// ExitReason says how a worker's program ended.
func (r *Record) ExitReason(worker int, k *Rank) string {
	return exitText(fmt.Sprintf("%s on %s", r.Spec.Who(worker), jobs.Label(k.Name, k.Node)), k)
}

func exitText(who string, k *Rank) string {
	switch {
	case k.Exit.Detail == "":
		return fmt.Sprintf("%s ended with %d", who, k.Exit.Code)
	case k.Exit.Cause == work.Signalled || k.Exit.Cause == work.Full:
		return fmt.Sprintf("%s was %s", who, k.Exit.Detail)
	}
	return fmt.Sprintf("%s: %s", who, k.Exit.Detail)
}
