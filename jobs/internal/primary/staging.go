package primary

import (
	"fmt"
	"time"

	"zorilla/internal/rate"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// staging is how much of the job's inputs is at the nodes that get them.
type staging struct {
	Staged jobs.Staged
	moved  map[jobs.RankAttempt]jobs.Staged // as its node reported last; Total is not used
	at     time.Time                        // when a node last reported more
	pace   rate.Meter                       // of what is moved
}

// note takes a worker's report, and returns how many news it has.
func (s *staging) note(now time.Time, w wire.WorkerReport) (news uint64) {
	before, known := s.moved[w.RankAttempt]
	if !known && w.Attempt > 1 { // what was on its way before is not any more
		s.pace = rate.Meter{}
	}
	so := jobs.Staged{Fetched: min(w.Fetched, s.Staged.Total), Cached: min(w.Cached, s.Staged.Total)}
	if so.Fetched+so.Cached <= before.Fetched+before.Cached {
		return 0 // or an older report
	}
	s.moved[w.RankAttempt], s.at = so, now
	s.Staged.Fetched += so.Fetched - before.Fetched
	s.Staged.Cached += so.Cached - before.Cached
	s.pace.Note(now, s.Staged.Fetched)
	return 1
}

// sum is how far inputs are at the nodes of ranks that have not started.
func (s *staging) sum(r *record.Record) jobs.Moving {
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
	m := jobs.Moving{What: jobs.MovingInputs, Nodes: len(there), Total: int64(len(there)) * s.Staged.Total, Holders: 1}
	for id, n := range there {
		if n = min(n, s.Staged.Total); !lack[id] {
			n = s.Staged.Total
		}
		if m.Done += n; n == s.Staged.Total && id != r.Origin {
			m.Holders++
		}
	}
	return m
}

// moving is sum while inputs are on their way, else nil.
func (s *staging) moving(r *record.Record) *jobs.Moving {
	if s.Staged.Total == 0 {
		return nil
	}
	m := s.sum(r)
	if m.Done == 0 { // a rate would be that of an earlier try
		return paced(m, &rate.Meter{})
	}
	return paced(m, &s.pace)
}

// text reports how far the inputs are, or how many workers are ready.
func (s *staging) text(r *record.Record) string {
	if m := s.moving(r); m != nil {
		return m.String()
	}
	return fmt.Sprintf("%d of %d workers are ready", r.Count(jobs.WorkerReady), max(r.Spec.Least(), r.Count(jobs.WorkerPreparing, jobs.WorkerReady)))
}

// quiet is how long a node that prepares ranks may have nothing new to report before that is worth
// a word.
const quiet = 3 * wire.ReportEvery

// late is what nodes are at that have not got their ranks ready.
func (s *staging) late(now time.Time, r *record.Record, parts Leases) map[vicinity.ID]string {
	list := map[vicinity.ID]string{}
	if r.State != jobs.Staging {
		return list
	}
	ranks, there := map[vicinity.ID]int{}, map[vicinity.ID]int64{}
	for i := range r.Ranks {
		if k := &r.Ranks[i]; k.State == jobs.WorkerPreparing {
			so := s.moved[jobs.RankAttempt{Rank: i, Attempt: k.Attempt}]
			ranks[k.Node]++
			there[k.Node] += so.Fetched + so.Cached
		}
	}
	for id, n := range ranks {
		k := parts[id]
		if k == nil {
			continue
		}
		text := "prepares " + units.Count(n, "worker", "workers")
		if has := there[id]; has < s.Staged.Total {
			text = fmt.Sprintf("fetches inputs, has %s of %s", units.Bytes(has), units.Bytes(s.Staged.Total))
		}
		if silent := now.Sub(k.lastContact); silent > quiet {
			text += ", silent for " + units.Span(silent)
		} else if stuck := now.Sub(k.progress); stuck > quiet {
			text += ", no progress for " + units.Span(stuck)
		}
		list[id] = text
	}
	return list
}
