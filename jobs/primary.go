package jobs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// primary is the core of one job at its origin, the node that is answerable for
// the job: it carries out what the search for workers wants done, and talks with
// the participants. It has no goroutine, lock or clock; each method takes the
// time and an input and leaves events and effects in out, which the shell takes:
// effects are released once the events before them are on disk.
type primary struct {
	lifecycle
	staging
	*surroundings // of the search
	self          vicinity.Member

	received   map[RankAttempt]received
	collecting map[RankAttempt]bool
}

// received counts output bytes that the origin has.
type received struct{ stdout, stderr int64 }

// newPrimary makes the core of a job from its events: one for a new job, all
// of the journal after a restart.
func newPrimary(id ID, self vicinity.Member, rnd *rand.Rand, schedule flood.Schedule) *primary {
	s := newSearch(self.ID, rnd, schedule)
	return &primary{
		lifecycle:    lifecycle{ledger: ledger{rec: record{id: id, origin: self.ID}, version: 1}, search: s, parts: leases{}},
		staging:      staging{moved: map[RankAttempt]Staged{}},
		surroundings: s.surroundings, self: self,
		received: map[RankAttempt]received{}, collecting: map[RankAttempt]bool{},
	}
}

// submit begins a new job.
func (p *primary) submit(now time.Time, spec Spec, stamp Stamp, schedule flood.Schedule) {
	p.emit(event{Kind: evSubmitted, At: now, Spec: &spec, Stamp: stamp})
	p.search.begin(&p.rec.spec, schedule)
	p.tick(now)
}

// resume goes on after the origin was restarted: participants of before are
// expected to report within a lease, ranks that had not started are searched
// for again.
func (p *primary) resume(now time.Time, schedule flood.Schedule) {
	p.search.begin(&p.rec.spec, schedule)
	var back []RankAttempt
	for i := range p.rec.ranks {
		k := &p.rec.ranks[i]
		switch k.state {
		case WorkerPreparing, WorkerReady:
			back = append(back, RankAttempt{i, k.attempt})
		case WorkerRunning, WorkerEnded:
			p.parts[k.node] = &participantRecord{lastContact: now, unverified: true, expectedBack: backBy(now, p.rec.away[k.node])}
		}
	}
	if len(back) > 0 {
		p.emit(event{Kind: evReleased, At: now, Ranks: back, Reason: "given back before its start: this node was started again"})
	}
	p.tick(now)
}

// tick does what is due and must be called at wake, or at any other time.
func (p *primary) tick(now time.Time) {
	if p.rec.state.Final() {
		return
	}
	p.checkLeases(now)
	if at := p.giveUpAt(); !at.IsZero() && !now.Before(at) && !p.rec.state.Final() {
		p.waits = p.search.outlook(p.demand()) // which may have changed just now
		p.end(now, Failed, fmt.Sprintf("gave up after %v: %s", time.Duration(p.rec.spec.GiveUp), p.reason()), CodeZorilla)
	}
	p.advance(now)
	p.pursue(now)
}

// giveUpAt returns when a job ends that has not started within its --give-up
// time; zero = never.
func (p *primary) giveUpAt() time.Time {
	d := time.Duration(p.rec.spec.GiveUp)
	if d <= 0 || !p.rec.started.IsZero() || p.rec.blocked() {
		return time.Time{}
	}
	return p.rec.eligible.Add(d)
}

// wake returns when tick is due next; zero = only after an input.
func (p *primary) wake() time.Time {
	if p.rec.state.Final() {
		return time.Time{}
	}
	return earlier(earlier(p.outlook().until, p.giveUpAt()), p.parts.wake())
}

// cancel ends the job because a user wants it.
func (p *primary) cancel(now time.Time, why string) {
	if p.rec.state.Final() {
		return
	}
	p.end(now, Cancelled, why, CodeCancelled)
}

// pursue looks for the workers that are still wanted.
func (p *primary) pursue(now time.Time) {
	if p.rec.state.Final() {
		return
	}
	d := p.demand()
	if d.wanted > 0 && p.rec.spec.grouped() {
		d.nodes = p.rec.nodes()
	}
	p.carryOut(now, p.search.next(now, d))
}

// carryOut does what the search wants done.
func (p *primary) carryOut(now time.Time, n next) {
	p.noteSearch()
	p.waits = n.outlook
	if n.err != nil {
		p.end(now, Failed, n.err.Error(), CodeZorilla)
		return
	}
	for _, m := range n.measure {
		if m.from != p.self.ID {
			p.do(doMeasure(m))
			continue
		}
		for _, id := range m.nodes {
			p.do(doProbe{id})
		}
	}
	p.grant(now, n.grant)
	p.yield(n.release, n.over)
	if n.flood.Number > 0 {
		p.do(doFlood{radius: n.flood.Radius, ad: p.advertisement(now, n.flood, p.self.Addrs)})
	}
	if len(n.extend) > 0 {
		p.do(doExtend{flood: p.search.current, rim: n.extend})
	}
}

// noteSearch takes note of news of the search for those who watch the job.
func (p *primary) noteSearch() {
	if p.search.news() {
		p.version++
	}
}

// grant gives wanted ranks to the nodes of offers.
func (p *primary) grant(now time.Time, taken []choice) {
	total := 0
	for _, c := range taken {
		total += len(c.places)
		p.parts.at(c.node) // all of them first: they fetch inputs from each other
	}
	wanted := p.rec.wantedRanks(total)
	for _, c := range taken {
		var ranks []RankAttempt
		for _, place := range c.places {
			rank := wanted[place]
			ranks = append(ranks, RankAttempt{rank, p.rec.ranks[rank].attempt + 1})
		}
		p.emit(event{Kind: evGranted, At: now, Node: c.node, Name: c.name, RTT: codec.Duration(c.rtt), Ranks: ranks})
		k := p.parts.at(c.node)
		k.lastContact, k.key = now, c.key
		p.do(doGrant{to: c.node, grant: Grant{
			Job: p.rec.id, Addrs: p.self.Addrs, Key: c.key, Ranks: ranks, Spec: p.rec.spec, Stamp: p.rec.stamp, Holders: p.parts.holders(c.node, p.self.ID),
		}})
	}
}

// answered takes a node's offer or decline.
func (p *primary) answered(now time.Time, from vicinity.Member, rtt time.Duration, a Answer) {
	if p.rec.state.Final() {
		p.do(doYield{to: from.ID, job: p.rec.id, forget: true})
		return
	}
	k := p.parts[from.ID]
	granted := k != nil && k.key == a.Key && a.Key != 0
	act, refused := p.search.answered(now, from, rtt, a, granted)
	p.noteSearch()
	if refused {
		p.do(doYield{to: from.ID, job: p.rec.id})
	}
	if !act {
		p.waits = p.search.outlook(p.demand())
		return
	}
	p.pursue(now)
	if a.Round == 0 && !p.rec.state.Final() { // it came from a queue
		p.carryOut(now, p.search.followUp(now, p.demand(), from.ID))
	}
}

// sent tells that the round's flood is on its way.
func (p *primary) sent(now time.Time, round int, f flood.Flood) {
	p.search.sent(now, round, f)
	p.noteSearch()
}

// paired takes the round trips from one node to others, 0 where there is none;
// of a node that did not answer there are none at all.
func (p *primary) paired(now time.Time, from vicinity.ID, nodes []vicinity.ID, rtt []time.Duration) {
	if !p.rec.state.Final() && p.search.paired(from, nodes, rtt) {
		p.pursue(now)
	}
}

// grantFailed takes back what a node refused, or did not answer to: a refusal
// is no reason to avoid the node, its offer had only ended.
func (p *primary) grantFailed(now time.Time, to vicinity.ID, ranks []RankAttempt, refused bool) {
	if p.rec.state.Final() {
		return
	}
	ranks = slices.DeleteFunc(slices.Clone(ranks), func(ra RankAttempt) bool {
		return p.owned(to, ra) && p.rec.ranks[ra.Rank].state != WorkerPreparing // only the answer was lost
	})
	if !refused {
		p.unprepared(now, to, ranks, "did not answer")
	} else {
		p.unprepared(now, to, ranks, "offer had ended")
		p.search.forgive(to)
	}
	p.pursue(now)
}

// label names a node for people: its name, and its short ID.
func label(name string, id vicinity.ID) string {
	return strings.TrimSpace(name + " (" + id.Short() + ")")
}
