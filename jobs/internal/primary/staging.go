package primary

import (
	"fmt"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// staging is how much of the job's inputs is at the nodes that get them.
type staging struct {
	Staged jobs.Staged
	moved  map[jobs.RankAttempt]jobs.Staged // as its node told last; Total is not used
}

// note takes a worker's report, and returns how many news it has.
func (s *staging) note(w wire.WorkerReport) (news uint64) {
	before := s.moved[w.RankAttempt]
	now := jobs.Staged{Fetched: min(w.Fetched, s.Staged.Total), Cached: min(w.Cached, s.Staged.Total)}
	if now.Fetched+now.Cached <= before.Fetched+before.Cached {
		return 0 // or an older report
	}
	s.moved[w.RankAttempt] = now
	s.Staged.Fetched += now.Fetched - before.Fetched
	s.Staged.Cached += now.Cached - before.Cached
	return 1
}

// text tells how much of the inputs is at the nodes of ranks that have not
// started, or how many workers are ready.
func (s *staging) text(r *record.Record) string {
	there, lack := map[vicinity.ID]int64{}, map[vicinity.ID]bool{}
	for i := range r.Ranks {
		k := &r.Ranks[i]
		if k.State != jobs.WorkerPreparing && k.State != jobs.WorkerReady {
			continue
		}
		so := s.moved[jobs.RankAttempt{Rank: i, Attempt: k.Attempt}]
		there[k.Node] += so.Fetched + so.Cached
		lack[k.Node] = lack[k.Node] || k.State == jobs.WorkerPreparing
	}
	nodes, have := int64(len(there)), int64(0)
	for id, n := range there {
		if n = min(n, s.Staged.Total); !lack[id] {
			n = s.Staged.Total
		}
		have += n
	}
	whole := nodes * s.Staged.Total
	if have >= whole {
		return fmt.Sprintf("%d of %d workers are ready", r.Count(jobs.WorkerReady), max(r.Spec.Least(), r.Count(jobs.WorkerPreparing, jobs.WorkerReady)))
	}
	to := ""
	if nodes > 1 {
		to = fmt.Sprintf(" to %d nodes", nodes)
	}
	return fmt.Sprintf("inputs are sent%s: %s of %s are there", to, units.Bytes(have), units.Bytes(whole))
}
