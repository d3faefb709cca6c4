package jobs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/vicinity"
)

// lifecycle is what becomes of a job: when its ranks start together, what the
// loss or the end of one means for the others, and how the job ends. It tells the
// search what to do without, and lets participants go.
type lifecycle struct {
	ledger
	search *search
	waits  outlook // of the search, as of the last input
	parts  leases
	table  tableState
}

// advance starts what is ready and ends what has ended.
func (p *lifecycle) advance(now time.Time) {
	if p.rec.state.Final() {
		return
	}
	ready := []RankAttempt{}
	active, failing := 0, p.rec.closing()
	for i := range p.rec.ranks {
		if p.rec.idle(i) {
			continue
		}
		switch k := &p.rec.ranks[i]; k.state {
		case WorkerReady:
			ready = append(ready, RankAttempt{i, k.attempt})
			active++
		case WorkerRunning:
			active++
		case WorkerPreparing, WorkerLost:
			if !failing {
				active++
			}
		case WorkerEnded:
			if !k.collected {
				active++
			}
		}
	}
	if failing {
		if active -= len(ready); active == 0 {
			p.finish(now)
		}
		return
	}
	if len(ready) > 0 && (!p.rec.started.IsZero() || len(ready) >= p.rec.spec.least()) {
		p.start(now, ready)
		return
	}
	if !p.rec.started.IsZero() && active == 0 && p.rec.missing() == 0 {
		p.finish(now)
	}
}

// start sends START to the ready ranks. It is journalled before it is sent,
// and a ready worker that missed it asks again with its next report.
func (p *lifecycle) start(now time.Time, ready []RankAttempt) {
	ev := event{Kind: evStarted, At: now, Ranks: ready, Worst: p.worstPair()}
	if p.rec.started.IsZero() { // why it was not sooner
		t := p.tally()
		ev.Tally = &t
	}
	p.emit(ev)
	byNode := map[vicinity.ID][]RankAttempt{}
	for _, ra := range ready {
		id := p.rec.ranks[ra.Rank].node
		byNode[id] = append(byNode[id], ra)
	}
	message := p.startMessage(nil)
	for _, id := range slices.Sorted(maps.Keys(byNode)) {
		message.Ranks = byNode[id]
		p.do(doStart{to: id, start: message})
	}
}

// finish ends the job by how its ranks ended, or tries a gang again.
func (p *lifecycle) finish(now time.Time) {
	v := p.rec.verdict()
	if v.state == Failed && p.rec.tasks == nil {
		if p.retryGang(now, v.reason) {
			return
		}
		v.reason += p.rec.stoppedText()
	}
	p.end(now, v.state, v.reason, v.code)
}

// end makes the job final and lets everybody go.
func (p *lifecycle) end(now time.Time, state State, reason string, code int) {
	t := p.tally()
	p.emit(event{Kind: evEnded, At: now, State: state, Reason: reason, Code: code, Tally: &t})
	for _, id := range p.parts.nodes() {
		p.do(doRelease{to: id, release: Release{Job: p.rec.id}})
	}
	for _, id := range p.search.close() {
		if p.parts[id] == nil {
			p.do(doYield{to: id, job: p.rec.id, forget: true})
		}
	}
	p.parts, p.waits = leases{}, outlook{}
}

// tally sums up what nodes have answered. After a restart of the origin it is
// what the journal says, until somebody answers anew.
func (p *lifecycle) tally() Tally {
	if t := p.search.tally(); t.Asked > 0 || p.rec.tally == nil {
		return t
	}
	return p.rec.tally.clone()
}

// demand is what the job wants of the search now.
func (p *lifecycle) demand() demand {
	d := demand{wanted: p.rec.wanted()}
	d.least = p.rec.threshold(d.wanted)
	return d
}

// outlook is what the search waits for, and why. As long as a job that was read
// from the journal is not resumed, nobody has asked the search.
func (p *lifecycle) outlook() outlook {
	if p.waits == (outlook{}) && !p.rec.state.Final() {
		return p.search.outlook(p.demand())
	}
	return p.waits
}

// waitReason says in one line what the job waits for.
func (p *lifecycle) waitReason() string {
	return p.outlook().text(p.search.tally())
}

// giveOffersBack lets the nodes go that offer and have not been granted.
func (p *lifecycle) giveOffersBack() {
	if nodes := p.search.giveBack(); len(nodes) > 0 {
		p.yield(nodes, p.rec.wanted() == 0) // then they need not offer again
	}
}

// lost handles started ranks whose node is gone: a rigid job cannot go on, a
// malleable one gets them replaced near by.
func (p *lifecycle) lost(now time.Time, ranks []RankAttempt, why string) {
	p.emit(event{Kind: evLost, At: now, Ranks: ranks, Reason: why})
	if p.rec.closing() {
		if p.rec.replicated() { // perhaps only since this copy was lost
			p.stopOthers()
		}
		p.advance(now)
		return
	}
	if p.rec.replicated() && p.survives(now, ranks) || p.retryGang(now, why) {
		return
	}
	if p.rec.spec.Rigid() {
		p.end(now, NodeFail, why, CodeZorilla)
		return
	}
	p.search.again(now)
}

// survives handles lost copies, and reports whether the job goes on, or ends, by
// what is left. It does not if all copies of a rank were lost.
func (p *lifecycle) survives(now time.Time, lost []RankAttempt) bool {
	for _, ra := range lost {
		rank, _ := p.rec.spec.RankOf(ra.Rank)
		if dead, failed := p.rec.hopeless(rank); dead && !failed {
			return false
		}
	}
	p.advance(now)
	return true
}

// unprepared returns ranks that their node cannot run to the wanted ones. A
// job that cannot start with the others goes back to the beginning as a whole,
// so that it does not hold slots while it waits for others' (design: claim).
func (p *lifecycle) unprepared(now time.Time, node vicinity.ID, ranks []RankAttempt, why string) {
	if ranks = p.ownedOf(node, ranks); len(ranks) == 0 {
		return
	}
	p.search.failedAt(now, node, why)
	why = fmt.Sprintf("given back before its start: node %s: %s", label(p.rec.ranks[ranks[0].Rank].name, node), why)
	if p.rec.started.IsZero() && p.rec.count(WorkerPreparing, WorkerReady)-len(ranks) < p.rec.spec.least() {
		p.giveBack(now, why)
		return
	}
	p.emit(event{Kind: evReleased, At: now, Ranks: ranks, Reason: why})
	p.search.again(now)
}

// giveBack releases a gang that could not be prepared and looks for it again
// after a pause.
func (p *lifecycle) giveBack(now time.Time, why string) {
	var all []RankAttempt
	for i := range p.rec.ranks {
		if k := &p.rec.ranks[i]; k.state != WorkerWanted {
			all = append(all, RankAttempt{i, k.attempt})
		}
	}
	p.emit(event{Kind: evReleased, At: now, Ranks: all, Reason: why})
	p.letGo(all)
	p.search.backOff(now)
}

// letGo lets all participants go, and those who offer.
func (p *lifecycle) letGo(ranks []RankAttempt) {
	for _, id := range p.parts.nodes() {
		p.do(doRelease{to: id, release: Release{Job: p.rec.id, Ranks: ranks}})
	}
	p.parts = leases{}
	p.giveOffersBack()
}
