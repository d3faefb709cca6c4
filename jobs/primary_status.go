package jobs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/units"
	"zorilla/vicinity"
)

// reason tells why the job is not further than it is, or why it ended.
func (p *primary) reason() string {
	switch p.rec.state {
	case Pending:
		if len(p.unmet()) > 0 {
			return p.dependencyReason()
		}
		return p.waitReason()
	case Staging:
		return p.stagingReason()
	case Running:
		if p.missing() > 0 {
			return p.waitReason()
		}
		if away := p.awayReason(); away != "" {
			return away
		}
		if p.rec.tasks != nil {
			return p.arrayReason()
		}
		if p.rec.spec.Rigid() || p.wanted() == 0 {
			return ""
		}
		return fmt.Sprintf("runs with %d workers, up to %d more are welcome", p.count(WorkerRunning, WorkerEnded), p.wanted())
	case Collecting:
		return fmt.Sprintf("fetching the outputs of %d workers", len(p.collecting))
	}
	return p.rec.reason
}

// stagingReason tells how much of the inputs is at the nodes that get them, or
// how many workers are ready.
func (p *primary) stagingReason() string {
	there, lack := map[vicinity.ID]int64{}, map[vicinity.ID]bool{}
	for i := range p.rec.ranks {
		k := &p.rec.ranks[i]
		if k.state != WorkerPreparing && k.state != WorkerReady {
			continue
		}
		so := p.moved[RankAttempt{i, k.attempt}]
		there[k.node] += so.Fetched + so.Cached
		lack[k.node] = lack[k.node] || k.state == WorkerPreparing
	}
	nodes, have := int64(len(there)), int64(0)
	for id, n := range there {
		if n = min(n, p.staged.Total); !lack[id] {
			n = p.staged.Total
		}
		have += n
	}
	whole := nodes * p.staged.Total
	if have >= whole {
		return fmt.Sprintf("%d of %d workers are ready", p.count(WorkerReady), max(p.rec.spec.least(), p.count(WorkerPreparing, WorkerReady)))
	}
	to := ""
	if nodes > 1 {
		to = fmt.Sprintf(" to %d nodes", nodes)
	}
	return fmt.Sprintf("inputs are sent%s: %s of %s are there", to, units.Bytes(have), units.Bytes(whole))
}

// awayReason names a node that is being started again, or is "".
func (p *primary) awayReason() string {
	for _, id := range slices.Sorted(maps.Keys(p.parts)) {
		if back := p.parts[id].back; !back.IsZero() {
			return fmt.Sprintf("node %s was stopped; its workers go on, and it is expected back by %s", label(p.nameOf(id), id), back.Format("15:04:05 MST"))
		}
	}
	return ""
}

// nameOf returns the name that a node had when it was granted ranks.
func (p *primary) nameOf(id vicinity.ID) string {
	for i := range p.rec.ranks {
		if p.rec.ranks[i].node == id {
			return p.rec.ranks[i].name
		}
	}
	return ""
}

// declines sums the latest answers up: "12 asked: 5 offered, 7 busy".
func (p *primary) declines() string { return p.tally().String() }

// status describes the job as it is now.
func (p *primary) status() Status {
	r := &p.rec
	s := Status{
		ID: r.id, Origin: r.origin, Spec: r.spec, State: r.state, Reason: p.reason(), ExitCode: r.code,
		Submitted: r.submitted, Started: r.started, Ended: r.ended,
		Rounds: slices.Clone(p.rounds), Warnings: slices.Clone(r.warnings), Staged: p.staged, Broken: r.broken,
		Workers: []WorkerStatus{}, Array: r.tasks.status(), Worst: r.worst,
	}
	for i := range r.ranks {
		k := &r.ranks[i]
		if k.attempt == 0 && !r.spec.Rigid() && i >= r.spec.Min {
			continue // never asked for in earnest
		}
		got := p.received[RankAttempt{i, k.attempt}]
		rank, replica := r.spec.RankOf(i)
		s.Workers = append(s.Workers, WorkerStatus{
			Rank: rank, Replica: replica, Won: r.replicated() && r.telling(rank) == i && k.collected && succeeded(k.exit), Attempt: k.attempt, Retried: k.retried, Node: k.node, Name: k.name, RTT: codec.Duration(k.rtt),
			State: k.state, Exit: k.exit, Stdout: got.stdout, Stderr: got.stderr,
		})
		if k.output != nil && k.collected && !r.spare(i) {
			s.Outputs = append(s.Outputs, *k.output)
			s.Outputs[len(s.Outputs)-1].Rank = rank
		}
	}
	if r.replicated() {
		slices.SortStableFunc(s.Workers, func(a, b WorkerStatus) int { return a.Rank - b.Rank })
	}
	return s
}

// explain answers why the job waits, or ended as it did.
func (p *primary) explain(now time.Time) Explanation {
	t := p.tally()
	e := Explanation{
		ID: p.rec.id, State: p.rec.state, Summary: p.reason(), Wanted: p.wanted(),
		Asked: t.Asked, Offered: t.Offered, Declined: t.Declined, Nodes: []NodeAnswer{}, Rounds: slices.Clone(p.rounds),
		Since: p.rec.eligible,
	}
	switch {
	case e.Wanted > 0:
		if !p.rec.lacking.IsZero() {
			e.Since = p.rec.lacking
		}
		e.Next = earlier(p.search.Wake(), p.poke)
	case !p.rec.started.IsZero():
		e.Until = p.rec.started
	default:
		e.Until = p.rec.ended
	}
	for _, a := range p.answers {
		e.Nodes = append(e.Nodes, a)
	}
	slices.SortFunc(e.Nodes, func(a, b NodeAnswer) int {
		if a.RTT != b.RTT {
			return int(max(-1, min(1, a.RTT-b.RTT)))
		}
		return strings.Compare(string(a.Node), string(b.Node))
	})
	if e.Summary == "" {
		e.Summary = p.declines()
	}
	return e
}
