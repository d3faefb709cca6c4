package jobs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"zorilla/internal/codec"
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
		return p.staging.text(&p.rec)
	case Running:
		if p.rec.missing() > 0 {
			return p.waitReason()
		}
		if away := p.awayReason(); away != "" {
			return away
		}
		if p.rec.tasks != nil {
			return p.rec.tasks.text()
		}
		if p.rec.spec.Rigid() || p.outlook().wanted == 0 {
			return ""
		}
		return fmt.Sprintf("runs with %d workers, up to %d more are welcome", p.rec.count(WorkerRunning, WorkerEnded), p.outlook().wanted)
	case Collecting:
		return fmt.Sprintf("fetching the outputs of %d workers", len(p.collecting))
	}
	return p.rec.reason
}

// awayReason names a node that is being started again, or is "".
func (p *primary) awayReason() string {
	id, back := p.parts.expected()
	if back.IsZero() {
		return ""
	}
	return fmt.Sprintf("node %s was stopped; its workers go on, and it is expected back by %s", label(p.rec.nameOf(id), id), back.Format("15:04:05 MST"))
}

// status describes the job as it is now.
func (p *primary) status() Status {
	r := &p.rec
	s := Status{
		ID: r.id, Origin: r.origin, Spec: r.spec, State: r.state, Reason: p.reason(), ExitCode: r.code,
		Submitted: r.submitted, Started: r.started, Ended: r.ended,
		Rounds: slices.Clone(p.search.rounds), Warnings: slices.Clone(r.warnings), Staged: p.staged, Broken: r.broken,
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
	t, waits := p.tally(), p.outlook()
	e := Explanation{
		ID: p.rec.id, State: p.rec.state, Summary: p.reason(), Wanted: waits.wanted,
		Asked: t.Asked, Offered: t.Offered, Declined: t.Declined, Nodes: []NodeAnswer{}, Rounds: slices.Clone(p.search.rounds),
		Since: p.rec.eligible,
	}
	switch {
	case e.Wanted > 0:
		if !p.rec.lacking.IsZero() {
			e.Since = p.rec.lacking
		}
		e.Next = waits.flood
	case !p.rec.started.IsZero():
		e.Until = p.rec.started
	default:
		e.Until = p.rec.ended
	}
	for _, a := range p.search.answers {
		e.Nodes = append(e.Nodes, a)
	}
	slices.SortFunc(e.Nodes, func(a, b NodeAnswer) int {
		if a.RTT != b.RTT {
			return int(max(-1, min(1, a.RTT-b.RTT)))
		}
		return strings.Compare(string(a.Node), string(b.Node))
	})
	if e.Summary == "" {
		e.Summary = t.String()
	}
	return e
}
