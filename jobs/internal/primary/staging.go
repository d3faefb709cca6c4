package primary

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"zorilla/internal/rate"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/internal/agenda"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// staging is how much of the job's inputs is at the nodes that get them.
type staging struct {
	Staged jobs.Staged
	moved  map[jobs.RankAttempt]jobs.Staged // as its node told last; Total is not used
	at     time.Time                        // when a node last told of more
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

// text tells how far the inputs are, or how many workers are ready.
func (s *staging) text(r *record.Record) string {
	if m := s.moving(r); m != nil {
		return m.String()
	}
	return fmt.Sprintf("%d of %d workers are ready", r.Count(jobs.WorkerReady), max(r.Spec.Least(), r.Count(jobs.WorkerPreparing, jobs.WorkerReady)))
}

// quiet is how long a node that prepares ranks may have nothing new to tell before that is worth
// a word.
const quiet = 3 * wire.ReportEvery

// notReady tells of the nodes that have not got their ranks ready what they are at.
func (p *Primary) notReady(now time.Time) map[vicinity.ID]string {
	list := map[vicinity.ID]string{}
	if p.Rec.State != jobs.Staging {
		return list
	}
	ranks, there := map[vicinity.ID]int{}, map[vicinity.ID]int64{}
	for i := range p.Rec.Ranks {
		if k := &p.Rec.Ranks[i]; k.State == jobs.WorkerPreparing {
			so := p.moved[jobs.RankAttempt{Rank: i, Attempt: k.Attempt}]
			ranks[k.Node]++
			there[k.Node] += so.Fetched + so.Cached
		}
	}
	for id, n := range ranks {
		k := p.Parts[id]
		if k == nil {
			continue
		}
		text := "prepares " + units.Count(n, "worker", "workers")
		if has := there[id]; has < p.Staged.Total {
			text = fmt.Sprintf("fetches inputs, has %s of %s", units.Bytes(has), units.Bytes(p.Staged.Total))
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

// maxLate bounds how many nodes are named that a job waits for.
const maxLate = 3

// stagingText tells since when nodes prepare the job's workers, and which are late with what; "" if
// none is.
func (p *Primary) stagingText(now time.Time, late map[vicinity.ID]string) string {
	if len(late) == 0 || p.Rec.Cancelled != "" {
		return ""
	}
	var since time.Time
	for _, k := range p.Parts {
		since = agenda.Earlier(since, k.granted)
	}
	var names []string
	for _, id := range slices.Sorted(maps.Keys(late)) {
		if len(names) == maxLate {
			names = append(names, fmt.Sprintf("and %d more", len(late)-maxLate))
			break
		}
		names = append(names, jobs.Label(p.Rec.NameOf(id), id)+" "+late[id])
	}
	return fmt.Sprintf("%s, after %s: %s", p.reason(), units.Span(now.Sub(since)), strings.Join(names, "; "))
}
