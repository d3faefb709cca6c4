package jobs

import (
	"fmt"

	"zorilla/internal/units"
	"zorilla/vicinity"
)

// staging is how much of the job's inputs is at the nodes that get them.
type staging struct {
	staged Staged
	moved  map[RankAttempt]Staged // as its node told last; Total is not used
}

// note takes a worker's report, and returns how many news it has.
func (s *staging) note(w WorkerReport) (news uint64) {
	before := s.moved[w.RankAttempt]
	now := Staged{Fetched: min(w.Fetched, s.staged.Total), Cached: min(w.Cached, s.staged.Total)}
	if now.Fetched+now.Cached <= before.Fetched+before.Cached {
		return 0 // or an older report
	}
	s.moved[w.RankAttempt] = now
	s.staged.Fetched += now.Fetched - before.Fetched
	s.staged.Cached += now.Cached - before.Cached
	return 1
}

// text tells how much of the inputs is at the nodes of ranks that have not
// started, or how many workers are ready.
func (s *staging) text(r *record) string {
	there, lack := map[vicinity.ID]int64{}, map[vicinity.ID]bool{}
	for i := range r.ranks {
		k := &r.ranks[i]
		if k.state != WorkerPreparing && k.state != WorkerReady {
			continue
		}
		so := s.moved[RankAttempt{i, k.attempt}]
		there[k.node] += so.Fetched + so.Cached
		lack[k.node] = lack[k.node] || k.state == WorkerPreparing
	}
	nodes, have := int64(len(there)), int64(0)
	for id, n := range there {
		if n = min(n, s.staged.Total); !lack[id] {
			n = s.staged.Total
		}
		have += n
	}
	whole := nodes * s.staged.Total
	if have >= whole {
		return fmt.Sprintf("%d of %d workers are ready", r.count(WorkerReady), max(r.spec.least(), r.count(WorkerPreparing, WorkerReady)))
	}
	to := ""
	if nodes > 1 {
		to = fmt.Sprintf(" to %d nodes", nodes)
	}
	return fmt.Sprintf("inputs are sent%s: %s of %s are there", to, units.Bytes(have), units.Bytes(whole))
}
