package primary

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/work"
	"zorilla/vicinity"
)

// A rank that a user moves is stopped where it is, and starts again elsewhere once that has ended it, so that
// there are never two of it. Only its end there is written down: if the origin dies before it has heard of that,
// the rank runs on, or is found to have been stopped, which nothing else is the reason for, and goes on elsewhere.

// moves are the ranks that are being stopped, and where they are to go; "" = anywhere else.
type moves map[jobs.RankAttempt]vicinity.ID

// move has ranks go on at other nodes: all that are named, or none if one cannot.
func (p *Primary) move(now time.Time, list []jobs.Move) (jobs.Size, error) {
	maps.DeleteFunc(p.moves, func(ra jobs.RankAttempt, _ vicinity.ID) bool {
		return !p.Rec.Owns(ra) || p.Rec.Ranks[ra.Rank].State != jobs.WorkerRunning
	})
	leave := map[vicinity.ID][]jobs.RankAttempt{}
	to := moves{}
	for _, m := range list {
		under, err := mayMove(&p.Rec, m)
		if err == nil && m.To != "" && !under {
			err = p.mayMoveTo(m)
		}
		if err != nil {
			return jobs.Size{}, err
		}
		if !under {
			to[jobs.RankAttempt{Rank: m.Rank, Attempt: p.Rec.Ranks[m.Rank].Attempt}] = m.To
		}
	}
	news := func(ra jobs.RankAttempt) bool {
		before, moves := p.moves[ra]
		return !moves || to[ra] != "" && to[ra] != before
	}
	ranks := slices.SortedFunc(maps.Keys(to), func(a, b jobs.RankAttempt) int { return a.Rank - b.Rank })
	if slices.ContainsFunc(ranks, news) && !p.resizes.allows(now) {
		return jobs.Size{}, fmt.Errorf("%w: job %s was changed too often (%d times at once, then every %v): try again", jobs.ErrRefused, p.Rec.ID.Short(), resizeBurst, resizeEvery)
	}
	for _, ra := range ranks {
		if k := &p.Rec.Ranks[ra.Rank]; k.State == jobs.WorkerWanted {
			p.goOn(now, ra, to[ra], k.Retried)
			continue
		} else if leave[k.Node] = append(leave[k.Node], ra); news(ra) {
			p.moves[ra] = to[ra]
			p.Version++
		}
	}
	p.release(leave, true)
	p.Tick(now)
	size := p.size()
	size.Moving = len(list)
	return size, nil
}

// mayMove reports why a rank cannot be moved, or whether that is under way, between two nodes. One that still waits
// may go to another node than it was to, also back to where it was.
func mayMove(r *record.Record, m jobs.Move) (under bool, err error) {
	job := r.ID.Short()
	switch {
	case r.State.Final():
		return false, fmt.Errorf("%w: job %s has ended (%s)", jobs.ErrNotRunning, job, r.State)
	case m.Rank >= r.Spec.Max:
		return false, fmt.Errorf("%w: rank %d: job %s has ranks 0 to %d", jobs.ErrRange, m.Rank, job, r.Spec.Max-1)
	case !r.Spec.Movable(m.Rank):
		return false, fmt.Errorf("%w: job %s %s", jobs.ErrRefused, job, unmovable(&r.Spec, m.Rank))
	case r.Closing():
		return false, fmt.Errorf("%w: job %s is ending", jobs.ErrRefused, job)
	}
	k, what := &r.Ranks[m.Rank], ""
	switch {
	case k.GivenBack, k.State == jobs.WorkerWanted && k.Attempt == 0:
		what = "is none of the workers that the job has"
	case k.State == jobs.WorkerRunning:
		return false, nil
	case k.State == jobs.WorkerEnded:
		what = "has ended"
	case k.Left != "" && (m.To == "" || m.To == k.Former):
		return true, nil
	case k.Left != "" && k.State == jobs.WorkerWanted:
		return false, nil
	case k.State == jobs.WorkerPreparing, k.State == jobs.WorkerReady:
		what = "is being prepared at " + jobs.Label(k.Name, k.Node)
	default:
		what = "waits for a node already"
	}
	return false, fmt.Errorf("%w: rank %d of job %s %s", jobs.ErrNotRunning, m.Rank, job, what)
}

// unmovable says why a rank of a job cannot go on elsewhere by itself.
func unmovable(spec *jobs.Spec, rank int) string {
	switch {
	case spec.Array != nil:
		return "is an array, whose tasks begin anew at other nodes: 'zorilla drain --now' at a node has them do that"
	case spec.Replicas > 1:
		return "has copies of its ranks (--replicas), and none of them is replaced once it has started"
	case spec.Restarts(rank) == groups.RestartGroup:
		return fmt.Sprintf("starts all of the group of rank %d again, none alone: 'zorilla drain --now' at its node has that done elsewhere", rank)
	}
	return "starts again as a whole, none of its ranks alone: 'zorilla drain --now' at a node has that done elsewhere, if it has --retries"
}

// mayMoveTo reports why a rank cannot go to a node, as far as that is known here.
func (p *Primary) mayMoveTo(m jobs.Move) error {
	spec, k := &p.Rec.Spec, &p.Rec.Ranks[m.Rank]
	about, here := p.self, true
	if m.To != p.self.ID {
		about, here = p.Member(m.To)
	}
	group, _ := spec.GroupOf(m.Rank)
	why := ""
	switch {
	case m.To == k.Node:
		why = "is where it runs"
	case !here:
		return fmt.Errorf("%w: node %s is no member that the job's node knows", jobs.ErrRefused, m.To.Short())
	case !spec.Suits(group, about):
		why = "does not suit it: what it needs, or --where"
	case spec.Single() && slices.Contains(p.Rec.Nodes(), m.To):
		why = "has a rank of the job, which wants one at each node"
	default:
		return nil
	}
	return fmt.Errorf("%w: rank %d: node %s %s", jobs.ErrRefused, m.Rank, jobs.Label(about.Name, m.To), why)
}

// moved has a rank that was stopped go on elsewhere, and reports whether it does. One that was stopped for
// no reason which is known was to be moved before this node was started again.
func (p *Primary) moved(now time.Time, from vicinity.ID, w *wire.WorkerReport) bool {
	k := &p.Rec.Ranks[w.Rank]
	to, asked := p.moves[w.RankAttempt]
	stopped := w.Exit != nil && w.Exit.Cause == work.Stopped || w.State == jobs.WorkerLost && asked
	if !stopped || k.State != jobs.WorkerRunning || k.GivenBack || p.Rec.Closing() || !p.Rec.Spec.Movable(w.Rank) {
		return false
	}
	delete(p.moves, w.RankAttempt)
	p.Search.Lost(now, from, search.MovedAway)
	p.goOn(now, w.RankAttempt, to, "moved from "+jobs.Label(k.Name, from))
	return true
}

// goOn has a rank that has ended looked for elsewhere.
func (p *lifecycle) goOn(now time.Time, ra jobs.RankAttempt, to vicinity.ID, why string) {
	p.emit(record.Event{Kind: record.Moved, At: now, Node: to, Ranks: []jobs.RankAttempt{ra}, Reason: why})
	p.Search.Readmit(to)
	p.Search.Again(now)
}

// elsewhere warns of ranks that a node gets which were to go to another one.
func (p *Primary) elsewhere(now time.Time, ranks []jobs.RankAttempt) {
	for _, ra := range ranks {
		k := &p.Rec.Ranks[ra.Rank]
		if k.Left == "" || k.Former == k.Left || k.Former == k.Node {
			continue
		}
		to, _ := p.Member(k.Former)
		p.Warn(now, fmt.Sprintf("%s: no room was offered by %s, where it was to go: it goes to %s", p.Rec.Spec.Who(ra.Rank), jobs.Label(to.Name, k.Former), jobs.Label(k.Name, k.Node)))
	}
}

// text names a rank that is being stopped to go on elsewhere, or is "".
func (m moves) text(r *record.Record) string {
	var parts []string
	for _, ra := range slices.SortedFunc(maps.Keys(m), func(a, b jobs.RankAttempt) int { return a.Rank - b.Rank }) {
		if k := &r.Ranks[ra.Rank]; r.Owns(ra) && k.State == jobs.WorkerRunning && len(parts) < maxLate {
			parts = append(parts, fmt.Sprintf("%s leaves %s", r.Spec.Who(ra.Rank), jobs.Label(k.Name, k.Node)))
		}
	}
	return strings.Join(parts, "; ")
}
