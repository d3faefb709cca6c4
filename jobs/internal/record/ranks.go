package record

import (
	"maps"
	"slices"

	"zorilla/jobs"
	"zorilla/vicinity"
)

// What a job's record says of its ranks: which of them need a node, and whose
// workers count.

// Owned reports which of a participant's workers still count.
func (r *Record) Owned(from vicinity.ID, ra jobs.RankAttempt) bool {
	if r.State.Final() || !r.Owns(ra) {
		return false
	}
	k := &r.Ranks[ra.Rank]
	return k.Node == from && k.State != jobs.WorkerWanted && k.State != jobs.WorkerLost
}

// Early reports whether the job waits for the time at which it is to begin: that has come when it
// is fulfilled as a dependency behind the last one.
func Early(r *Record) bool { return !r.Spec.Search.Begin.IsZero() && !r.Met[len(r.Spec.After)] }

// Blocked reports whether the job waits for other jobs, or for its time.
func (r *Record) Blocked() bool {
	if Early(r) {
		return true
	}
	for i := range r.Spec.After {
		if !r.Met[i] {
			return true
		}
	}
	return false
}

// Wanted returns how many workers are still looked for.
func (r *Record) Wanted() int {
	if r.State.Final() || r.Closing() || r.Blocked() || r.Replicated() && !r.Started.IsZero() {
		return 0
	}
	return len(r.WantedRanks(r.Spec.Workers()))
}

// WantedRanks lists at most limit ranks that need a node: lost and moved ones first,
// then new ones, unless the job has stopped growing.
func (r *Record) WantedRanks(limit int) []int {
	var lost, fresh []int
	if t := r.Tasks; t != nil { // those that come will take one each
		limit = min(limit, max(0, t.waits-r.Count(jobs.WorkerPreparing, jobs.WorkerReady)))
	}
	if r.Asked > 0 { // one that had ended, and whose files are lost, waits until others have ended
		limit = min(limit, max(0, r.Asked-r.Ranks.Kept(jobs.WorkerPreparing, jobs.WorkerReady, jobs.WorkerRunning)))
	}
	more := growth(r)
	for i := range r.Ranks {
		switch k := &r.Ranks[i]; {
		case k.State == jobs.WorkerLost, k.again() && k.Left != "":
			lost = append(lost, i)
		case len(fresh) == limit:
		case k.again():
			fresh = append(fresh, i)
		case k.free() && more > 0:
			more--
			fresh = append(fresh, i)
		}
	}
	all := append(lost, fresh...)
	return all[:min(limit, len(all))]
}

// Threshold returns how many workers must be offered before any is granted, if
// so many are wanted.
func (r *Record) Threshold(wanted int) int {
	switch {
	case r.SizesOpen():
		return r.Spec.Least()
	case r.Spec.FixedSize():
		return wanted
	case r.Started.IsZero():
		return max(1, r.Spec.Min-r.Count(jobs.WorkerPreparing, jobs.WorkerReady, jobs.WorkerRunning))
	}
	return 1
}

// Missing returns how many ranks must still run before the job can end.
func (r *Record) Missing() (n int) {
	if r.Replicated() {
		return 0
	}
	for i := range r.Ranks {
		if k := &r.Ranks[i]; k.State == jobs.WorkerLost || k.again() {
			n++
		}
	}
	return n
}

// Count returns how many ranks are in one of the states.
func (r *Record) Count(states ...jobs.WorkerState) (n int) {
	for i := range r.Ranks {
		if slices.Contains(states, r.Ranks[i].State) {
			n++
		}
	}
	return n
}

// RanksOf lists the ranks of a node that have not started, and those that have
// and are not done with: they run, or their outputs are still there.
func (r *Record) RanksOf(node vicinity.ID) (unstarted, started []jobs.RankAttempt) {
	for i := range r.Ranks {
		k := &r.Ranks[i]
		if k.Node != node {
			continue
		}
		switch k.State {
		case jobs.WorkerPreparing, jobs.WorkerReady:
			unstarted = append(unstarted, jobs.RankAttempt{Rank: i, Attempt: k.Attempt})
		case jobs.WorkerRunning, jobs.WorkerEnded:
			if !k.Collected {
				started = append(started, jobs.RankAttempt{Rank: i, Attempt: k.Attempt})
			}
		}
	}
	return unstarted, started
}

// Nodes lists the nodes that have ranks of the job.
func (r *Record) Nodes() []vicinity.ID {
	seen := map[vicinity.ID]bool{}
	for i := range r.Ranks {
		switch k := &r.Ranks[i]; k.State {
		case jobs.WorkerPreparing, jobs.WorkerReady, jobs.WorkerRunning:
			seen[k.Node] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// NameOf returns the name that a node had when it was granted ranks.
func (r *Record) NameOf(id vicinity.ID) string {
	for i := range r.Ranks {
		if r.Ranks[i].Node == id {
			return r.Ranks[i].Name
		}
	}
	return ""
}

// Granted is what nodes are told of the job: without what is for its origin alone.
func (l *Lineup) Granted() jobs.Spec {
	c := l.Spec
	if c.OnEnd, c.Spares = "", 0; c.Mapped() {
		c.Strategy, c.Graph, c.OnePerNode = "", nil, true
	}
	return c
}
