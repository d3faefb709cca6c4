package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// threshold returns how many workers must be offered before any is granted.
func (p *primary) threshold() int {
	if p.rec.spec.Rigid() {
		return p.wanted()
	}
	if p.rec.started.IsZero() {
		return max(1, p.rec.spec.Min-p.count(WorkerPreparing, WorkerReady, WorkerRunning))
	}
	return 1
}

// consider grants if enough workers are offered. It returns how far away more
// workers would be welcome: 0 if they would not.
func (p *primary) consider(now time.Time) (horizon time.Duration) {
	p.settle = time.Time{}
	total := 0
	for _, o := range p.offers {
		total += o.workers
	}
	if total == 0 || total < p.threshold() {
		return anywhere
	}
	if p.grouped() {
		return p.considerGroup(now, total)
	}
	offers, ranks := p.standing(), p.wantedRanks(min(total, p.rec.spec.Max))
	assign, err := placement.Place(placement.Strategy(p.rec.spec.Strategy), offers, len(ranks))
	if err != nil {
		p.end(now, Failed, err.Error(), CodeZorilla)
		return 0
	}
	worst := time.Duration(0)
	for _, i := range assign {
		worst = max(worst, offers[i].RTT)
	}
	horizon, since := anywhere, p.flooded
	switch {
	case p.spreading():
		if p.horizon = anywhere; p.mayExtend(now) {
			p.settle = p.extended(now)
			return p.horizon
		}
		horizon, since, worst = 0, later(since, p.frontier.Sent()), maxSettle
	case total >= p.wanted():
		if p.rec.spec.Search.adaptive() {
			since = later(since, p.frontier.Sent())
		}
		p.frontier.Refresh(p.measured)
		if p.horizon = nearer(worst); !p.open(now) {
			p.meet()
		}
		if p.mayExtend(now) {
			p.settle = p.extended(now)
			return p.horizon
		}
		horizon = 0
	}
	if p.measure(now) {
		p.asked = now
	}
	if at := later(since, p.asked).Add(min(2*worst, maxSettle)); now.Before(at) {
		p.settle = at
		return horizon
	}
	p.grantAll(now, ranks, offers, assign)
	if p.wanted() == 0 {
		return 0
	}
	return anywhere
}

// spreading reports whether a job that is to be spread could have more nodes
// than have offered yet.
func (p *primary) spreading() bool {
	return placement.Strategy(p.rec.spec.Strategy) == placement.Spread && len(p.offers) < p.wanted() && !p.everybodyAnswered()
}

// standing lists the offers for placement, with their distances as they are
// known by now.
func (p *primary) standing() []placement.Offer {
	offers := make([]placement.Offer, 0, len(p.offers))
	for _, id := range slices.Sorted(maps.Keys(p.offers)) {
		o := p.offers[id]
		if !o.exact {
			if rtt := p.measured(id); rtt > 0 {
				o.rtt, o.exact = rtt, true
				p.offers[id] = o
				a := p.answers[id]
				a.RTT = codec.Duration(rtt)
				p.answers[id] = a
			}
		}
		offers = append(offers, placement.Offer{Node: string(id), RTT: o.rtt, Workers: o.workers})
	}
	return offers
}

// nearer returns the distance below which a node would be nearer than another:
// less differs by noise only.
func nearer(rtt time.Duration) time.Duration {
	return max(0, rtt-max(rtt/32, 200*time.Microsecond))
}

// extended returns when a flood that may be extended has brought more: not at
// once, since it may have to wait for nodes that are free soon.
func (p *primary) extended(now time.Time) time.Time {
	return later(now.Add(time.Millisecond), p.frontier.Ready())
}

// mayExtend reports whether somebody below the horizon may still be found. A
// search that has enough offers does not go on for ever.
func (p *primary) mayExtend(now time.Time) bool {
	return p.open(now) && p.vain < maxVain && now.Before(p.flooded.Add(maxExtend))
}

// measure has nodes measured of which only an upper bound of their distance is
// known, and reports whether there were any: those that offer, and those on the
// rim beyond which somebody nearer may be.
func (p *primary) measure(now time.Time) bool {
	var unknown []vicinity.ID
	for id, o := range p.offers {
		if !o.exact && !o.probed {
			unknown = append(unknown, id)
		}
	}
	slices.SortFunc(unknown, func(a, b vicinity.ID) int {
		return cmp.Or(cmp.Compare(p.offers[a].rtt, p.offers[b].rtt), cmp.Compare(a, b))
	})
	unknown = unknown[:min(len(unknown), maxProbes)]
	for _, id := range unknown {
		o := p.offers[id]
		o.probed = true
		p.offers[id] = o
	}
	if p.rec.spec.Search.adaptive() && p.horizon > 0 && p.vain < maxVain && now.Before(p.flooded.Add(maxExtend)) {
		unknown = append(unknown, p.frontier.Unsure(p.horizon, maxProbes-len(unknown))...)
	}
	for _, id := range unknown {
		p.do(doProbe{id})
	}
	return len(unknown) > 0
}

// grantAll gives each rank to the node of its offer.
func (p *primary) grantAll(now time.Time, ranks []int, offers []placement.Offer, assign []int) {
	byNode := map[vicinity.ID][]RankAttempt{}
	for i, rank := range ranks {
		id := vicinity.ID(offers[assign[i]].Node)
		byNode[id] = append(byNode[id], RankAttempt{rank, p.rec.ranks[rank].attempt + 1})
	}
	for id := range byNode { // all of them first: they fetch inputs from each other
		if p.parts[id] == nil {
			p.parts[id] = &part{}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byNode)) {
		p.grant(now, id, byNode[id])
	}
}

// grant gives ranks to a node that offered.
func (p *primary) grant(now time.Time, to vicinity.ID, ranks []RankAttempt) {
	o := p.offers[to]
	delete(p.offers, to)
	p.emit(event{Kind: evGranted, At: now, Node: to, Name: p.answers[to].Name, RTT: codec.Duration(o.rtt), Ranks: ranks})
	if p.parts[to] == nil {
		p.parts[to] = &part{}
	}
	p.parts[to].heard, p.parts[to].key = now, o.key
	holders := []vicinity.ID{}
	for _, id := range slices.Sorted(maps.Keys(p.parts)) {
		if id != to && id != p.self.ID && len(holders) < 16 {
			holders = append(holders, id)
		}
	}
	p.do(doGrant{to: to, grant: Grant{
		Job: p.rec.id, Addrs: p.self.Addrs, Key: o.key, Ranks: ranks, Spec: p.rec.spec, Stamp: p.rec.stamp, Holders: holders,
	}})
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
		delete(p.avoid, to)
	}
	p.pursue(now)
}

// unprepared returns ranks that their node cannot run to the wanted ones. A
// job that cannot start with the others goes back to the beginning as a whole,
// so that it does not hold slots while it waits for others' (design: claim).
func (p *primary) unprepared(now time.Time, node vicinity.ID, ranks []RankAttempt, why string) {
	ranks = slices.DeleteFunc(slices.Clone(ranks), func(ra RankAttempt) bool { return !p.owned(node, ra) })
	if len(ranks) == 0 {
		return
	}
	p.avoid[node] = now.Add(avoidFor)
	if a, ok := p.answers[node]; ok {
		a.Offered, a.Reason, a.At = 0, why, now
		p.answers[node] = a
	}
	why = fmt.Sprintf("given back before its start: node %s: %s", label(p.rec.ranks[ranks[0].Rank].name, node), why)
	if p.rec.started.IsZero() && p.count(WorkerPreparing, WorkerReady)-len(ranks) < p.rec.spec.least() {
		p.restart(now, why)
		return
	}
	p.emit(event{Kind: evReleased, At: now, Ranks: ranks, Reason: why})
	p.search.Reset(now)
}

// restart releases a gang that could not be prepared and looks for it again
// after a pause with jitter, so that two such jobs do not meet again.
func (p *primary) restart(now time.Time, why string) {
	var all []RankAttempt
	for i := range p.rec.ranks {
		if k := &p.rec.ranks[i]; k.state != WorkerWanted {
			all = append(all, RankAttempt{i, k.attempt})
		}
	}
	p.emit(event{Kind: evReleased, At: now, Ranks: all, Reason: why})
	for _, id := range slices.Sorted(maps.Keys(p.parts)) {
		p.do(doRelease{to: id, release: Release{Job: p.rec.id, Ranks: all}})
	}
	p.parts = map[vicinity.ID]*part{}
	p.yieldAll()
	p.search.Reset(now.Add(time.Duration(p.rnd.Int64N(int64(500 * time.Millisecond)))))
}

// yieldAll gives standing offers back.
func (p *primary) yieldAll() {
	if len(p.offers) == 0 {
		return
	}
	enough := p.wanted() == 0 // then their nodes need not offer again
	for _, id := range slices.Sorted(maps.Keys(p.offers)) {
		p.do(doYield{to: id, job: p.rec.id, forget: enough})
	}
	p.offers = map[vicinity.ID]offer{}
}
