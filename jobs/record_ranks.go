package jobs

import (
	"maps"
	"slices"

	"zorilla/vicinity"
)

// What a job's record says of its ranks: which of them need a node, and whose
// workers count.

// owned tells which of a participant's workers still count.
func (r *record) owned(from vicinity.ID, ra RankAttempt) bool {
	if r.state.Final() || !r.owns(ra) {
		return false
	}
	k := &r.ranks[ra.Rank]
	return k.node == from && k.state != WorkerWanted && k.state != WorkerLost
}

// blocked reports whether the job waits for other jobs.
func (r *record) blocked() bool {
	for i := range r.spec.After {
		if !r.met[i] {
			return true
		}
	}
	return false
}

// wanted returns how many workers are still looked for.
func (r *record) wanted() int {
	if r.state.Final() || r.closing() || r.blocked() || r.replicated() && !r.started.IsZero() {
		return 0
	}
	return len(r.wantedRanks(r.spec.Workers()))
}

// wantedRanks lists at most limit ranks that need a node: lost ones first,
// then new ones, unless the job has stopped growing.
func (r *record) wantedRanks(limit int) []int {
	var lost, fresh []int
	if t := r.tasks; t != nil { // those that come will take one each
		limit = min(limit, max(0, t.waits-r.count(WorkerPreparing, WorkerReady)))
	}
	// Nobody new is looked for once a first rank has ended.
	grow := r.tasks != nil || r.count(WorkerEnded) == 0
	for i := range r.ranks {
		switch r.ranks[i].state {
		case WorkerLost:
			lost = append(lost, i)
		case WorkerWanted:
			if len(fresh) < limit && (grow || r.ranks[i].attempt > 0) {
				fresh = append(fresh, i)
			}
		}
	}
	all := append(lost, fresh...)
	return all[:min(limit, len(all))]
}

// threshold returns how many workers must be offered before any is granted, if
// so many are wanted.
func (r *record) threshold(wanted int) int {
	switch {
	case r.spec.Rigid():
		return wanted
	case r.started.IsZero():
		return max(1, r.spec.Min-r.count(WorkerPreparing, WorkerReady, WorkerRunning))
	}
	return 1
}

// missing returns how many ranks must still run before the job can end.
func (r *record) missing() (n int) {
	if r.replicated() {
		return 0
	}
	for i := range r.ranks {
		if k := &r.ranks[i]; k.state == WorkerLost || k.state == WorkerWanted && k.attempt > 0 {
			n++
		}
	}
	return n
}

// count returns how many ranks are in one of the states.
func (r *record) count(states ...WorkerState) (n int) {
	for i := range r.ranks {
		if slices.Contains(states, r.ranks[i].state) {
			n++
		}
	}
	return n
}

// ranksOf lists the ranks of a node that have not started, and those that have
// and are not done with: they run, or their outputs are still there.
func (r *record) ranksOf(node vicinity.ID) (unstarted, started []RankAttempt) {
	for i := range r.ranks {
		k := &r.ranks[i]
		if k.node != node {
			continue
		}
		switch k.state {
		case WorkerPreparing, WorkerReady:
			unstarted = append(unstarted, RankAttempt{i, k.attempt})
		case WorkerRunning, WorkerEnded:
			if !k.collected {
				started = append(started, RankAttempt{i, k.attempt})
			}
		}
	}
	return unstarted, started
}

// nodes lists the nodes that have ranks of the job.
func (r *record) nodes() []vicinity.ID {
	seen := map[vicinity.ID]bool{}
	for i := range r.ranks {
		switch k := &r.ranks[i]; k.state {
		case WorkerPreparing, WorkerReady, WorkerRunning:
			seen[k.node] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// nameOf returns the name that a node had when it was granted ranks.
func (r *record) nameOf(id vicinity.ID) string {
	for i := range r.ranks {
		if r.ranks[i].node == id {
			return r.ranks[i].name
		}
	}
	return ""
}
