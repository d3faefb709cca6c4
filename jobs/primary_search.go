package jobs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// pursue looks for the workers that are still wanted: with the offers that
// stand, else with the next flood when it is due.
func (p *primary) pursue(now time.Time) {
	if p.rec.state.Final() {
		return
	}
	for id, o := range p.offers {
		if !now.Before(o.expires) {
			delete(p.offers, id)
		}
	}
	if p.wanted() == 0 {
		p.yieldAll()
		return
	}
	p.consider(now)
	if p.wanted() == 0 {
		p.yieldAll()
		return
	}
	if radius, due := p.search.Next(now); due {
		p.search.Flooded(now)
		p.flood(now, radius)
		return
	}
	if !p.poke.IsZero() && !now.Before(p.poke) {
		p.flood(now, p.rounds[len(p.rounds)-1].Radius)
		return
	}
	if !p.keep.IsZero() && !now.Before(p.keep) {
		p.keep = time.Time{}
		p.yieldAll()
	}
}

// flood advertises the job once.
func (p *primary) flood(now time.Time, radius int) {
	spec := &p.rec.spec
	next, _ := p.search.Wake()
	wait := max(next.Sub(now), 0)
	p.poke = time.Time{}
	number := 1
	if len(p.rounds) > 0 {
		number = p.rounds[len(p.rounds)-1].Number + 1
	}
	p.reached = map[vicinity.ID]bool{}
	p.flooded = now
	p.keep = now.Add(keepOffers)
	p.rounds = append(p.rounds, Round{Number: number, Radius: radius, At: now, Wait: codec.Duration(wait), Wanted: p.wanted()})
	if len(p.rounds) > maxRounds {
		p.rounds = slices.Delete(p.rounds, 1, 2) // the first one tells most
	}
	p.version++
	p.do(doFlood{radius: radius, ad: Advertisement{
		Job: p.rec.id, Origin: p.self.ID, Addrs: p.self.Addrs, Round: number, Wanted: p.wanted(),
		Slots: spec.Slots, Memory: spec.Memory, Priority: spec.Priority, Stamp: p.rec.stamp,
		Life: min(wait+10*time.Second, maxLife).Milliseconds(),
	}})
}

// sent tells how many copies of the round's flood the origin itself sent.
func (p *primary) sent(round, copies int) {
	if n := len(p.rounds); n > 0 && p.rounds[n-1].Number == round {
		p.rounds[n-1].Messages = copies
	}
}

// answered takes a node's offer or decline.
func (p *primary) answered(now time.Time, from vicinity.Member, rtt time.Duration, a Answer) {
	if p.rec.state.Final() {
		p.do(doYield{to: from.ID, job: p.rec.id})
		return
	}
	if len(p.answers) >= MaxRanks {
		return
	}
	p.version++
	p.answers[from.ID] = NodeAnswer{Node: from.ID, Name: from.Name, RTT: codec.Duration(rtt), Offered: a.Workers, Reason: a.Reason, At: now}
	p.room[from.ID] = a.Capacity
	p.countAnswer(from.ID, a)
	if part := p.parts[from.ID]; part != nil && part.key == a.Key && a.Key != 0 {
		return // sent before the grant arrived; to yield it would take the grant back
	}
	if a.Workers == 0 {
		delete(p.offers, from.ID)
		return
	}
	if until, ok := p.avoid[from.ID]; ok && now.Before(until) {
		p.do(doYield{to: from.ID, job: p.rec.id})
		return
	}
	if rtt <= 0 {
		rtt = now.Sub(p.flooded) // not measured, but no larger than this
	}
	p.offers[from.ID] = offer{key: a.Key, workers: a.Workers, rtt: rtt, expires: now.Add(holdLease)}
	queue := a.Round == 0
	p.pursue(now)
	if _, stands := p.offers[from.ID]; queue && stands && p.wanted() > 0 {
		p.queueOffer(now)
	}
}

// queueOffer follows up an offer that came from a node's queue and is not
// enough by itself: if the nodes that have answered could do it together, ask
// them again soon; else do not block the slots.
func (p *primary) queueOffer(now time.Time) {
	room := 0
	for _, n := range p.room {
		room += n
	}
	if room < p.threshold() {
		p.yieldAll()
		return
	}
	if p.poke.IsZero() {
		jitter := time.Duration(p.rnd.Int64N(int64(100 * time.Millisecond)))
		p.poke = later(now, p.flooded.Add(time.Second)).Add(jitter)
	}
	p.keep = later(p.keep, p.poke.Add(keepOffers))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (p *primary) countAnswer(from vicinity.ID, a Answer) {
	n := len(p.rounds)
	if n == 0 || p.reached[from] || a.Round != p.rounds[n-1].Number {
		return
	}
	p.reached[from] = true
	r := &p.rounds[n-1]
	r.Reached++
	p.search.Heard(r.Reached)
	if a.Workers > 0 {
		r.Offers++
		r.Workers += a.Workers
	} else {
		r.Declines++
	}
}

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

// consider grants if enough workers are offered.
func (p *primary) consider(now time.Time) {
	p.settle = time.Time{}
	var offers []placement.Offer
	total := 0
	for _, id := range slices.Sorted(maps.Keys(p.offers)) {
		o := p.offers[id]
		offers = append(offers, placement.Offer{Node: string(id), RTT: o.rtt, Workers: o.workers})
		total += o.workers
	}
	if total == 0 || total < p.threshold() {
		return
	}
	ranks := p.wantedRanks(min(total, p.rec.spec.Max))
	assign, err := placement.Place(placement.Strategy(p.rec.spec.Strategy), offers, len(ranks))
	if err != nil {
		p.end(now, Failed, err.Error(), CodeZorilla)
		return
	}
	if at := p.settled(offers, assign); now.Before(at) {
		p.settle = at
		return
	}
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

// settled returns until when nodes that are nearer than the farthest chosen one
// may still answer the last flood: it reached them over several links, but each
// of these is short. So a job near by starts at once, and one that spans sites
// waits for a few round trips between them rather than take the first to come.
func (p *primary) settled(offers []placement.Offer, assign []int) time.Time {
	worst := time.Duration(0)
	for _, i := range assign {
		worst = max(worst, offers[i].RTT)
	}
	return p.flooded.Add(min(2*worst, maxSettle))
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
	if p.rec.started.IsZero() && p.count(WorkerPreparing, WorkerReady)-len(ranks) < p.rec.spec.Min {
		p.restart(now)
		return
	}
	p.emit(event{Kind: evReleased, At: now, Ranks: ranks})
	p.search.Reset(now)
}

// restart releases a gang that could not be prepared and looks for it again
// after a pause with jitter, so that two such jobs do not meet again.
func (p *primary) restart(now time.Time) {
	var all []RankAttempt
	for i := range p.rec.ranks {
		if k := &p.rec.ranks[i]; k.state != WorkerWanted {
			all = append(all, RankAttempt{i, k.attempt})
		}
	}
	p.emit(event{Kind: evReleased, At: now, Ranks: all})
	for _, id := range slices.Sorted(maps.Keys(p.parts)) {
		p.do(doRelease{to: id, release: Release{Job: p.rec.id, Ranks: all}})
	}
	p.parts = map[vicinity.ID]*part{}
	p.yieldAll()
	p.search.Reset(now.Add(time.Duration(p.rnd.Int64N(int64(500 * time.Millisecond)))))
}

// yieldAll gives standing offers back.
func (p *primary) yieldAll() {
	for _, id := range slices.Sorted(maps.Keys(p.offers)) {
		p.do(doYield{to: id, job: p.rec.id})
	}
	p.offers = map[vicinity.ID]offer{}
}

// waitReason says in one line what the job waits for.
func (p *primary) waitReason() string {
	want := p.wanted()
	noun := "workers"
	if want == 1 {
		noun = "worker"
	}
	if len(p.answers) == 0 {
		return fmt.Sprintf("looking for %d %s", want, noun)
	}
	room := 0
	for _, n := range p.room {
		room += n
	}
	text := fmt.Sprintf("waiting for %d %s: %s", want, noun, p.declines())
	if t := p.threshold(); room < t {
		text = fmt.Sprintf("waiting for %d %s: %s; together they have room for %d", want, noun, p.declines(), room)
	}
	return text
}
