package primary

import (
	"fmt"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// What the primary does about participants that leave, are silent, or have
// forgotten what they were granted.

const reasonForgot = "forgot the grant"

// leaves keeps a participant that is being started again: its workers go on. What
// has not started is looked for elsewhere.
func (p *Primary) leaves(now time.Time, from vicinity.ID, away time.Duration) {
	k := p.Parts[from]
	if k == nil || away <= 0 || p.Rec.State.Final() {
		return
	}
	away = min(away, maxAway)
	k.expectedBack, k.seenBack = now.Add(away), time.Time{}
	p.emit(record.Event{Kind: record.Away, At: now, Node: from, For: codec.Duration(away)})
	unstarted, _ := p.Rec.RanksOf(from)
	p.unprepared(now, from, unstarted, wire.ReasonLeaving)
}

// MemberGone is called when the overlay has declared a node dead.
func (p *Primary) MemberGone(now time.Time, id vicinity.ID) {
	p.Parts.gone(now, id, p.Rec.Spec.FixedSize() && p.Rec.Started.IsZero())
	p.Search.Gone(id)
	p.Tick(now)
}

// MemberBack is called when the overlay reports that a node is a member. It reports whether
// that changes anything.
func (p *Primary) MemberBack(now time.Time, id vicinity.ID) bool { return p.Parts.back(now, id) }

// checkLeases gives up participants that have been silent for too long.
func (p *Primary) checkLeases(now time.Time) {
	for _, id := range p.Parts.nodes() {
		k := p.Parts[id]
		if k == nil || now.Before(k.ends()) || p.Rec.State.Final() {
			continue
		}
		delete(p.Parts, id)
		name := p.Rec.NameOf(id)
		unstarted, started := p.Rec.RanksOf(id)
		p.unprepared(now, id, unstarted, "lost")
		if len(started) > 0 {
			p.Search.Lost(now, id, "lost")
			p.lost(now, started, fmt.Sprintf("node %s was lost with %s", jobs.Label(name, id), p.Rec.Spec.List(started)))
		}
	}
}

// forgotten gives up the ranks of a node that its reports have not named for a
// lease: a node that was killed before it had written down what it was granted
// goes on reporting the job's other ranks, so that its silence does not tell.
func (p *Primary) forgotten(now time.Time, from vicinity.ID, rep wire.Report) {
	k := p.Parts[from]
	if k == nil || p.Rec.State.Final() || now.Before(k.comparedAt.Add(wire.ReportEvery)) {
		return // a job may have very many ranks
	}
	unstarted, started := p.Rec.RanksOf(from)
	gone := p.Parts.forgotten(now, from, rep, slices.Concat(unstarted, started))
	kept := func(ra jobs.RankAttempt) bool { return !gone[ra] }
	if unstarted = slices.DeleteFunc(unstarted, kept); len(unstarted) > 0 {
		p.unprepared(now, from, unstarted, reasonForgot)
	}
	if started = p.ownedOf(from, slices.DeleteFunc(started, kept)); len(started) > 0 {
		p.lost(now, started, fmt.Sprintf("node %s does not know %s any more", jobs.Label(p.Rec.Ranks[started[0].Rank].Name, from), p.Rec.Spec.List(started)))
	}
}
