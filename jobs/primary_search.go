package jobs

import (
	"fmt"
	"math"
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// anywhere is the horizon of a search that is short of workers.
const anywhere = time.Duration(math.MaxInt64)

// pursue looks for the workers that are still wanted: with the offers that
// stand, else by carrying the flood on, else with the next flood when it is due.
func (p *primary) pursue(now time.Time) {
	p.grow = time.Time{}
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
	p.horizon = p.consider(now)
	if p.wanted() == 0 {
		p.yieldAll()
		return
	}
	if !p.settle.IsZero() { // no flood while a choice is being made
		p.extend(now)
		return
	}
	if radius, due := p.search.Next(now); due {
		p.search.Flooded(now)
		if p.rec.spec.Search.adaptive() {
			p.waited = true
			if p.open(now) {
				p.extend(now) // not all of it again
				return
			}
			radius = p.search.First()
		}
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
	p.extend(now)
}

// extend carries the flood on beyond the nearest nodes of its rim that are
// nearer than the horizon, and says when to do so again.
func (p *primary) extend(now time.Time) {
	if !p.open(now) {
		return
	}
	short := p.wanted()
	for _, o := range p.offers {
		short -= o.workers
	}
	if short > 0 && p.freeSoon() >= short {
		return
	}
	if rim := p.frontier.Next(now, p.horizon, short, p.measured); len(rim) > 0 {
		p.do(doExtend{flood: p.current, rim: rim})
		p.keep = later(p.keep, now.Add(keepOffers))
		p.countCost()
	}
	if p.open(now) {
		p.grow = p.frontier.Ready()
	}
}

// meet has the flood carried to members that are known to be nearer than the
// horizon, though it found no way to them: all links of a small site may lead to
// nodes farther away than that.
func (p *primary) meet() {
	if !p.rec.spec.Search.adaptive() || p.horizon <= 0 {
		return
	}
	for _, m := range p.near(p.horizon, maxMeet) {
		p.frontier.Meet(m.ID, m.RTT)
	}
}

// open reports whether the flood can be extended to nodes that have not been
// reached, beyond nodes nearer than the horizon.
func (p *primary) open(now time.Time) bool {
	return p.rec.spec.Search.adaptive() && p.frontier.Open(now, p.horizon) && !p.everybodyAnswered()
}

// everybodyAnswered reports whether all members have answered the latest flood.
func (p *primary) everybodyAnswered() bool { return p.frontier.Cost().Reached+1 >= p.members() }

// freeSoon returns how many busy nodes nearer than the rim will have room before
// the timer of the schedule: it would be a pity to go farther for their sake.
// Once the timer has run it is 0 until the next flood.
func (p *primary) freeSoon() (nodes int) {
	nearest, ok := p.frontier.Nearest()
	if p.waited || !ok {
		return 0
	}
	timer := p.search.Wake()
	for id, c := range p.room {
		if !c.free.IsZero() && !c.free.After(timer) && time.Duration(p.answers[id].RTT) <= nearest {
			nodes++
		}
	}
	return nodes
}

// flood advertises the job once.
func (p *primary) flood(now time.Time, radius int) {
	spec := &p.rec.spec
	next := p.search.Wake()
	wait := max(next.Sub(now), 0)
	p.poke = time.Time{}
	number := 1
	if len(p.rounds) > 0 {
		number = p.rounds[len(p.rounds)-1].Number + 1
	}
	p.reached = map[vicinity.ID]bool{}
	p.flooded, p.waited, p.vain, p.asked = now, false, 0, time.Time{}
	p.keep = now.Add(keepOffers)
	p.regroup()
	p.rounds = append(p.rounds, Round{Number: number, Radius: radius, At: now, Wait: codec.Duration(wait), Wanted: p.wanted()})
	if len(p.rounds) > maxRounds {
		p.rounds = slices.Delete(p.rounds, 1, 2) // the first one tells most
	}
	p.version++
	p.do(doFlood{radius: radius, ad: Advertisement{
		Job: p.rec.id, Addrs: p.self.Addrs, Round: number, Wanted: p.wanted(),
		Slots: spec.Slots, Memory: spec.Memory, Disk: spec.Disk, GPUs: spec.GPUs, Where: spec.Where, Priority: spec.Priority, Stamp: p.rec.stamp, Near: spec.pairwise(),
		Life: min(wait+10*time.Second, maxLife).Milliseconds(), Signed: now.UnixMilli(),
	}})
}

// sent tells that the round's flood is on its way.
func (p *primary) sent(now time.Time, round int, f flood.Flood) {
	if n := len(p.rounds); n > 0 && p.rounds[n-1].Number == round {
		p.current = f
		p.frontier.Begin(f, now)
		p.countCost()
	}
}

// countCost notes what the latest flood has taken so far.
func (p *primary) countCost() {
	r, c := &p.rounds[len(p.rounds)-1], p.frontier.Cost()
	r.Messages, r.Duplicates, r.Bytes = c.Messages, max(0, c.Messages-c.Reached), c.Messages*p.current.Size
	r.Hops, r.Extended = c.Hops, c.Extended
	p.version++
}

// answered takes a node's offer or decline.
func (p *primary) answered(now time.Time, from vicinity.Member, rtt time.Duration, a Answer) {
	if p.rec.state.Final() {
		p.do(doYield{to: from.ID, job: p.rec.id, forget: true})
		return
	}
	if len(p.answers) >= MaxRanks {
		return
	}
	p.version++
	exact := rtt > 0
	if !exact {
		rtt = now.Sub(p.flooded) // no larger than this
	}
	p.answers[from.ID] = NodeAnswer{
		Node: from.ID, Name: from.Name, RTT: codec.Duration(rtt), Offered: a.Workers, Reason: a.Reason,
		At: now, Round: a.Round, Hops: a.Hops,
	}
	room := capacity{workers: a.Capacity}
	if a.Free > 0 {
		room.free = now.Add(time.Duration(a.Free) * time.Millisecond)
	}
	p.room[from.ID] = room
	p.countAnswer(now, from.ID, rtt, a)
	if part := p.parts[from.ID]; part != nil && part.key == a.Key && a.Key != 0 {
		return // sent before the grant arrived; to yield it would take the grant back
	}
	if a.Workers == 0 {
		delete(p.offers, from.ID)
		p.pursue(now)
		return
	}
	if until, ok := p.avoid[from.ID]; ok && now.Before(until) {
		p.do(doYield{to: from.ID, job: p.rec.id})
		return
	}
	p.offers[from.ID] = offer{key: a.Key, workers: a.Workers, rtt: rtt, exact: exact, expires: now.Add(holdLease)}
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
		room += n.workers
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

func (p *primary) countAnswer(now time.Time, from vicinity.ID, rtt time.Duration, a Answer) {
	n := len(p.rounds)
	if n == 0 || p.reached[from] || a.Round != p.rounds[n-1].Number {
		return
	}
	p.reached[from] = true
	r := &p.rounds[n-1]
	r.Reached++
	p.search.Heard(r.Reached)
	if a.Hops > 0 {
		switch {
		case rtt >= p.horizon:
		case a.Workers > 0:
			p.vain = 0
		default:
			p.vain++
		}
		p.frontier.Answered(now, flood.Reach{Node: from, RTT: rtt, Hops: a.Hops, Rim: a.Rim, Onward: a.Onward})
		p.countCost()
	}
	if a.Workers > 0 {
		r.Offers++
		r.Workers += a.Workers
	} else {
		r.Declines++
	}
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
		room += n.workers
	}
	text := fmt.Sprintf("waiting for %d %s: %s", want, noun, p.declines())
	if p.group.apart != "" {
		text += "; " + p.group.apart
	}
	if t := p.threshold(); room < t {
		text = fmt.Sprintf("waiting for %d %s: %s; together they have room for %d", want, noun, p.declines(), room)
	}
	return text
}
