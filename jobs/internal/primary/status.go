package primary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
)

// reason reports why the job is not further than it is, or why it ended.
func (p *Primary) reason() string {
	switch p.Rec.State {
	case jobs.Staging, jobs.Running:
		if p.Rec.Cancelled != "" {
			return p.Rec.Cancelled + ": waits for its workers to end"
		}
	}
	switch p.Rec.State {
	case jobs.Pending:
		if p.Rec.Blocked() {
			return p.dependencyReason()
		}
		return strings.TrimSuffix(p.waitReason()+"; "+p.Bookings.text(), "; ")
	case jobs.Staging:
		return p.staging.text(&p.Rec)
	case jobs.Running:
		if p.Rec.Missing() > 0 {
			return p.waitReason()
		}
		if text := p.moves.text(&p.Rec); text != "" {
			return text
		}
		if away := p.Parts.awayText(&p.Rec); away != "" {
			return away
		}
		if silent := p.silentText(); silent != "" {
			return silent
		}
		if held := p.heldReason(); held != "" {
			return held
		}
		if p.Rec.Tasks != nil {
			return p.Rec.Tasks.Text()
		}
		if o := p.outlook(); o.Spares {
			return cmp.Or(p.sizeReason(0), sparesText(o.Wanted))
		}
		return p.sizeReason(p.outlook().Wanted)
	case jobs.Collecting:
		return p.collecting.text()
	}
	return p.Rec.Reason
}

// moving reports which files are on their way.
func (p *Primary) moving() *jobs.Moving {
	if p.Rec.State.Final() {
		return nil
	}
	if m := p.staging.moving(&p.Rec); m != nil {
		return m
	}
	return p.collecting.moving()
}

// heldReason names a worker that waits at its node, or is "".
func (p *lifecycle) heldReason() string {
	for i := range p.Rec.Ranks {
		k := &p.Rec.Ranks[i]
		if why := p.held[jobs.RankAttempt{Rank: i, Attempt: k.Attempt}]; why != "" && k.State == jobs.WorkerRunning {
			return fmt.Sprintf("%s on %s waits: %s", p.Rec.Spec.Who(i), jobs.Label(k.Name, k.Node), why)
		}
	}
	return ""
}

// shownState is how a rank is. One that was given back is not looked for, and is none of
// the job's workers once it has ended.
func shownState(k *record.Rank) jobs.WorkerState {
	if k.GivenBack && (k.State == jobs.WorkerWanted || k.State == jobs.WorkerEnded) {
		return jobs.WorkerStopped
	}
	return k.State
}

// Status describes the job as it is now.
func (p *Primary) Status() jobs.Status {
	r := &p.Rec
	s := jobs.Status{
		ID: r.ID, Origin: r.Origin, Spec: r.Spec, State: r.State, Reason: p.reason(), ExitCode: r.Code,
		Submitted: r.Submitted, Started: r.Started, Ended: r.Ended,
		Rounds: slices.Clone(p.searching().Rounds), Warnings: slices.Clone(r.Warnings), Staged: p.Staged, Moving: p.moving(), Broken: r.Broken,
		Workers: []jobs.WorkerStatus{}, Array: r.Tasks.Status(), Worst: r.Worst, Shape: p.shape(), AtOrigin: jobs.AtOrigin{OnEnd: r.OnEnd},
	}
	s.Spares, s.Promised = p.spares.status(), r.Booking.Promised()
	for _, k := range r.Kept {
		if k.Output != nil {
			s.Outputs = append(s.Outputs, *k.Output)
		}
	}
	for i := range r.Ranks {
		k := &r.Ranks[i]
		if k.Attempt == 0 && !r.Spec.FixedSize() && i >= r.Spec.Min {
			continue // never asked for in earnest
		}
		ra := jobs.RankAttempt{Rank: i, Attempt: k.Attempt}
		got := p.Received[ra]
		if r.Tasks != nil {
			got.Stderr = r.Tasks.Stderr(ra)
		}
		rank, replica := r.Spec.RankOf(i)
		s.Workers = append(s.Workers, jobs.WorkerStatus{
			Rank: rank, Replica: replica,
			Won:     r.Replicated() && r.Telling(rank) == i && k.Collected && record.Succeeded(k.Exit),
			Attempt: k.Attempt, Retried: k.Retried, Node: k.Node, Name: k.Name, RTT: codec.Duration(k.RTT),
			State: shownState(k), Exit: k.Exit, Stdout: got.Stdout, Stderr: got.Stderr,
			Checkpoint: k.Newest(), Resumed: k.Resumed, Keepers: labels(k, p.self, p.Member), Task: r.Spec.TaskName(rank), Replaced: k.Replaced,
		})
		if k.Output != nil && k.Collected && !r.Surplus(i) {
			s.Outputs = append(s.Outputs, *k.Output)
			s.Outputs[len(s.Outputs)-1].Rank = rank
		}
	}
	if r.Replicated() {
		slices.SortStableFunc(s.Workers, func(a, b jobs.WorkerStatus) int { return a.Rank - b.Rank })
	}
	return s
}

// Explain answers why the job waits, or ended as it did.
func (p *Primary) Explain(now time.Time) jobs.Explanation {
	t, waits := p.tally(), p.outlook()
	e := jobs.Explanation{
		ID: p.Rec.ID, State: p.Rec.State, Summary: p.reason(), Wanted: waits.Wanted, Spares: waits.Spares,
		Asked: t.Asked, Offered: t.Offered, Declined: t.Declined, Nodes: []jobs.NodeAnswer{}, Rounds: slices.Clone(p.searching().Rounds),
		Since: p.Rec.Eligible, Promised: p.Rec.Booking.Promised(),
	}
	switch {
	case e.Wanted > 0:
		if !p.Rec.Lacking.IsZero() {
			e.Since = p.Rec.Lacking
		}
		e.Next = waits.Flood
	case !p.Rec.Started.IsZero():
		e.Until = p.Rec.Started
	default:
		e.Until = p.Rec.Ended
	}
	late := p.staging.late(now, &p.Rec, p.Parts)
	for _, a := range p.searching().Answers {
		if text := late[a.Node]; text != "" {
			a.Fate = strings.TrimPrefix(a.Fate+": "+text, ": ")
		}
		e.Nodes = append(e.Nodes, a)
	}
	if len(late) > 0 && p.Rec.Cancelled == "" {
		e.Summary += ", " + p.Parts.lateText(now, &p.Rec, late)
	}
	e.Nodes = append(e.Nodes, p.searching().Silent()...)
	slices.SortFunc(e.Nodes, func(a, b jobs.NodeAnswer) int {
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
