package jobs

import (
	"fmt"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// What the primary does about participants that leave, are silent, or have
// forgotten what they were granted.

const reasonForgot = "forgot the grant"

// leaves keeps a participant that is being started again: its workers go on. What
// has not started is looked for elsewhere.
func (p *primary) leaves(now time.Time, from vicinity.ID, away time.Duration) {
	k := p.parts[from]
	if k == nil || away <= 0 || p.rec.state.Final() {
		return
	}
	away = min(away, maxAway)
	k.expectedBack = now.Add(away)
	p.emit(event{Kind: evAway, At: now, Node: from, For: codec.Duration(away)})
	unstarted, _ := p.rec.ranksOf(from)
	p.unprepared(now, from, unstarted, reasonLeaving)
}

// memberGone is called when the overlay has declared a node dead.
func (p *primary) memberGone(now time.Time, id vicinity.ID) {
	p.parts.gone(now, id, p.rec.spec.Rigid() && p.rec.started.IsZero())
	p.search.gone(id)
	p.tick(now)
}

// checkLeases gives up participants that have been silent for too long.
func (p *primary) checkLeases(now time.Time) {
	for _, id := range p.parts.nodes() {
		k := p.parts[id]
		if k == nil || now.Before(k.ends()) || p.rec.state.Final() {
			continue
		}
		delete(p.parts, id)
		name := p.rec.nameOf(id)
		unstarted, started := p.rec.ranksOf(id)
		p.unprepared(now, id, unstarted, "lost")
		if len(started) > 0 {
			p.lost(now, started, fmt.Sprintf("node %s was lost with %s", label(name, id), p.rec.spec.list(started)))
		}
	}
}

// forgotten gives up the ranks of a node that its reports have not named for a
// lease: a node that was killed before it had written down what it was granted
// goes on reporting the job's other ranks, so that its silence does not tell.
func (p *primary) forgotten(now time.Time, from vicinity.ID, rep Report) {
	k := p.parts[from]
	if k == nil || p.rec.state.Final() || now.Before(k.comparedAt.Add(reportEvery)) {
		return // a job may have very many ranks
	}
	unstarted, started := p.rec.ranksOf(from)
	gone := p.parts.forgotten(now, from, rep, slices.Concat(unstarted, started))
	kept := func(ra RankAttempt) bool { return !gone[ra] }
	if unstarted = slices.DeleteFunc(unstarted, kept); len(unstarted) > 0 {
		p.unprepared(now, from, unstarted, reasonForgot)
	}
	if started = p.ownedOf(from, slices.DeleteFunc(started, kept)); len(started) > 0 {
		p.lost(now, started, fmt.Sprintf("node %s does not know %s any more", label(p.rec.ranks[started[0].Rank].name, from), p.rec.spec.list(started)))
	}
}
