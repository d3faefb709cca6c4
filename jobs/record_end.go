package jobs

import (
	"fmt"

	"zorilla/jobs/process"
)

// What the ends of a job's ranks mean for the job.

// badExit reports whether a rank's program failed by itself: what Zorilla
// stopped because of others says nothing about the job.
func badExit(e *process.Exit) bool { return e != nil && e.Code != 0 && e.Cause != process.Stopped }

// succeeded reports whether a program ended with 0 by itself.
func succeeded(e *process.Exit) bool { return e != nil && e.Code == 0 && e.Cause != process.Stopped }

// failedRanks returns how many ranks have failed for good; of a rank with copies
// none can end with 0 any more, and one at least failed.
func (r *record) failedRanks() (n int) {
	if r.replicated() {
		for rank := range r.spec.Max {
			if _, failed := r.hopeless(rank); failed {
				n++
			}
		}
		return n
	}
	for i := range r.ranks {
		if k := &r.ranks[i]; k.state == WorkerEnded && badExit(k.exit) {
			n++
		}
	}
	return n
}

// failing reports whether the job ends because ranks have failed: nobody is
// looked for any more, and who runs is stopped.
func (r *record) failing() bool {
	n := 0
	if t := r.tasks; t != nil {
		n = t.failed
	} else {
		n = r.failedRanks()
	}
	return n > 0 && r.spec.stopsOnBadExit() || r.spec.MaxFails > 0 && n > r.spec.MaxFails
}

// closing reports whether the job looks for nobody any more and ends with those
// that run.
func (r *record) closing() bool { return r.failing() || r.tasks.over() }

// idle reports whether the end of the job does not wait for a worker.
func (r *record) idle(worker int) bool {
	return r.replicated() && (r.spare(worker) || r.ranks[worker].state == WorkerLost)
}

// forgiven reports whether a program that failed did so in a copy that the job
// could do without.
func (r *record) forgiven(worker int) bool {
	if !r.replicated() {
		return false
	}
	rank, _ := r.spec.RankOf(worker)
	_, failed := r.hopeless(rank)
	return !failed
}

// verdict is how a job ends.
type verdict struct {
	state  State
	code   int
	reason string
}

// verdict decides how the job ends from how its ranks, or tasks, ended.
func (r *record) verdict() verdict {
	if r.tasks != nil {
		return r.tasks.verdict()
	}
	v := verdict{state: Completed}
	for i := range r.ranks {
		k := &r.ranks[i]
		if !badExit(k.exit) || r.forgiven(i) {
			continue
		}
		if v.state == Completed {
			v.state = Failed
		}
		if k.exit.Cause == process.Walltime {
			v.state = Timeout
		}
		if k.exit.Code > v.code {
			v.code, v.reason = k.exit.Code, r.exitReason(i, k)
		}
	}
	if v.state == Timeout {
		v.code, v.reason = CodeTimeout, fmt.Sprintf("needed more than %v (-t)", r.spec.Walltime)
	}
	return v
}

// stoppedText adds to the reason of a failure that other ranks were stopped.
func (r *record) stoppedText() string {
	n := r.count(WorkerLost, WorkerPreparing, WorkerReady)
	for i := range r.ranks {
		if e := r.ranks[i].exit; e != nil && e.Cause == process.Stopped {
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

// exitReason says how a worker's program ended.
func (r *record) exitReason(worker int, k *rankRecord) string {
	return exitText(fmt.Sprintf("%s on %s", r.spec.who(worker), label(k.name, k.node)), k)
}

func exitText(who string, k *rankRecord) string {
	switch {
	case k.exit.Detail == "":
		return fmt.Sprintf("%s ended with %d", who, k.exit.Code)
	case k.exit.Cause == process.Signalled:
		return fmt.Sprintf("%s was %s", who, k.exit.Detail)
	}
	return fmt.Sprintf("%s: %s", who, k.exit.Detail)
}
