package vicinity

import (
	"cmp"
	"slices"
	"time"
)

const maxCandidates = 40

// candidate is a member that may be near.
type candidate struct {
	id  ID
	est time.Duration // upper bound by way of who named it; maxRTT = unknown
}

// pending is a ping or pong whose answer is awaited.
type pending struct {
	nonce  uint64
	id     ID
	sent   time.Duration
	answer kind // pong or ack
	linked bool // a link was claimed with it
	ask    bool // a caller waits for the answer
}

func (c *Core) expect(p *peer, answer kind) uint64 {
	for len(c.pending) > 0 && (len(c.pending) >= maxPending || c.at-c.pending[0].sent > maxRTT) {
		c.pending = slices.Delete(c.pending, 0, 1)
		c.stats.Unanswered++
	}
	nonce := max(1, c.cfg.Rand.Uint64())
	c.pending = append(c.pending, pending{nonce: nonce, id: p.id, sent: c.at, answer: answer, linked: p.link != nil})
	return nonce
}

// answered finds what a nonce answers and measures the round trip.
func (c *Core) answered(p *peer, m message) (pending, bool) {
	i := slices.IndexFunc(c.pending, func(w pending) bool { return w.nonce == m.Nonce && w.id == p.id && w.answer == m.Kind })
	if i < 0 {
		return pending{}, false
	}
	w := c.pending[i]
	c.pending = slices.Delete(c.pending, i, i+1)
	if rtt := c.at - w.sent; rtt <= maxRTT {
		c.measured(p, rtt)
		if w.ask {
			c.answers = append(c.answers, Answer{Nonce: w.nonce, RTT: max(rtt, minRTT)})
		}
	}
	return w, true
}

// measured takes a sample, and looks over the links if it shows somebody
// clearly nearer.
func (c *Core) measured(p *peer, rtt time.Duration) {
	p.sample(c.at, max(rtt, minRTT))
	c.stale = true
	if c.at-p.checked > time.Second && len(p.at) > 0 {
		p.checked = c.at
		if c.impossible(p.at, p.rtt) {
			p.at = nil
			c.stats.Absurd++
		}
	}
	if p.link != nil && p.link.want == claimNear || p.shun > c.at {
		return
	}
	for _, l := range c.links {
		if l.want == claimNear && clearly(p.rtt, l.peer.distant()) {
			c.planSoon()
			return
		}
	}
}

func (c *Core) ping(p *peer) {
	p.asked = c.at
	c.send(p.id, message{Kind: kindPing, Nonce: c.expect(p, kindPong), Link: p.claim(), Place: c.bearings().wire()})
}

// Receive takes a payload that a member sent.
func (c *Core) Receive(now time.Time, from ID, payload []byte) []Packet {
	c.enter(now)
	c.stats.Received++
	c.stats.ReceivedBytes += int64(len(payload))
	if from == c.cfg.Self || !c.cfg.Roster.Has(from) {
		c.stats.Strangers++
		return c.flush()
	}
	m, err := decode(payload)
	if err != nil {
		c.stats.Malformed++
		return c.flush()
	}
	p := c.peer(from)
	p.heard = c.at
	if p.flooding(c.at) {
		c.stats.Excess++
		return c.flush()
	}
	if at, ok := bearingsFromWire(m.Place); ok {
		c.place(p, at, c.at)
	}
	c.handle(p, m)
	return c.flush()
}

func (c *Core) handle(p *peer, m message) {
	switch m.Kind {
	case kindPing:
		c.claimed(p, m.Link)
		pong := message{Kind: kindPong, Nonce: m.Nonce, Link: p.claim(), Place: c.bearings().wire()}
		if p.count < freshSample || c.at-p.sampled > ackEvery {
			pong.Ack = c.expect(p, kindAck)
		}
		c.send(p.id, pong)
	case kindPong:
		w, ok := c.answered(p, m)
		if !ok {
			return
		}
		if m.Ack != 0 {
			c.send(p.id, message{Kind: kindAck, Nonce: m.Ack})
		}
		switch {
		case m.Link != claimNone:
			c.claimed(p, m.Link)
			if p.link == nil {
				c.send(p.id, message{Kind: kindDrop})
			}
		case w.linked && p.link != nil:
			c.lose(p.link)
		}
	case kindAck:
		c.answered(p, m)
	case kindSwap:
		c.send(p.id, c.list(kindList, p))
		c.learn(p, m.Names)
		c.learnPlaces(m)
		c.infer(p, m.Names)
	case kindList:
		c.learn(p, m.Names)
		c.learnPlaces(m)
		c.infer(p, m.Names)
	case kindDrop:
		if p.link != nil {
			c.lose(p.link)
		}
	}
}

// round is what happens once a second, more rarely in the calm: the links are
// looked over, lists swapped with one peer, and candidates pinged.
func (c *Core) round() {
	if c.at-c.lastChange < calmAfter {
		c.pause = activePause
	} else {
		c.pause = min(2*c.pause, calmPause)
	}
	c.nextRound = c.at + c.jitter(c.pause)
	if c.others() == 0 {
		return
	}
	c.plan()
	c.survey()
	if p := c.partner(); p != nil {
		c.send(p.id, c.list(kindSwap, p))
	}
	c.explore()
}

// partner returns one of the four nearest, or 1 time in 4 a random member.
func (c *Core) partner() *peer {
	near := c.ranked()
	if len(near) == 0 || c.cfg.Rand.IntN(4) == 0 {
		id := c.draw(func(ID) bool { return true })
		if id == "" {
			return nil
		}
		return c.peer(id)
	}
	return near[c.cfg.Rand.IntN(min(4, len(near)))]
}

// list names the nearest, except the one it is for.
func (c *Core) list(as kind, to *peer) message {
	m := message{Kind: as, Place: c.bearings().wire()}
	c.addRecords(&m, to)
	for _, p := range c.ranked() {
		if len(m.Names) == listLength {
			break
		}
		if p != to {
			m.Names = append(m.Names, named{ID: p.id, RTT: uint32(p.rtt / time.Microsecond)})
		}
	}
	return m
}

// learn takes the names of a list as candidates, unless they cannot be nearer
// than the neighbours: who is 0.2 ms from a node 10 ms away is 9.8 ms away.
func (c *Core) learn(from *peer, names []named) {
	bound := c.farthestNear()
	for _, n := range names {
		if n.ID == c.cfg.Self || !c.cfg.Roster.Has(n.ID) {
			continue
		}
		hint := time.Duration(n.RTT) * time.Microsecond
		est := maxRTT
		if from.rtt > 0 {
			est = min(maxRTT, from.rtt+hint)
			if from.rtt-hint > bound || hint-from.rtt > bound {
				continue
			}
		}
		// A name known already is of interest only if its few samples look
		// too large to be true.
		if p := c.known[n.ID]; p != nil && p.rtt > 0 && (p.count >= freshSample || !clearly(2*est, p.rtt)) {
			continue
		}
		if i := slices.IndexFunc(c.candidates, func(x candidate) bool { return x.id == n.ID }); i >= 0 {
			c.candidates[i].est = min(c.candidates[i].est, est)
			continue
		}
		if len(c.candidates) >= maxCandidates {
			c.candidates = slices.Delete(c.candidates, 0, 1)
		}
		c.candidates = append(c.candidates, candidate{id: n.ID, est: est})
	}
}

// farthestNear is the round trip of the farthest near link, or maxRTT while
// there are not enough.
func (c *Core) farthestNear() time.Duration {
	n, worst := 0, time.Duration(0)
	for _, l := range c.links {
		if l.want == claimNear {
			n++
			worst = max(worst, l.peer.distant())
		}
	}
	if n < c.cfg.Near {
		return maxRTT
	}
	return worst
}

// explore pings the most promising candidates, and always a random member or
// more that was not measured, since lists alone may know only one corner.
func (c *Core) explore() {
	budget := activePings
	if c.pause > activePause {
		budget = calmPings
	}
	c.candidates = slices.DeleteFunc(c.candidates, func(x candidate) bool { return !c.mayAsk(x.id) })
	c.propose()
	slices.SortStableFunc(c.candidates, func(a, b candidate) int { return cmp.Compare(a.est, b.est) })
	n := min(budget-1, len(c.candidates))
	for _, x := range c.candidates[:n] {
		c.ping(c.peer(x.id))
	}
	c.candidates = slices.Delete(c.candidates, 0, n)
	for range budget - n {
		id := c.draw(func(id ID) bool { p := c.known[id]; return p == nil || p.rtt == 0 && c.mayAsk(id) })
		if id == "" {
			return
		}
		c.ping(c.peer(id))
	}
}

// propose makes candidates of the members that seem, by their bearings, nearer
// than the farthest near neighbour.
func (c *Core) propose() {
	mine, bound := c.bearings(), c.farthestNear()
	for _, p := range c.peers {
		if p.rtt > 0 || len(p.at) == 0 || !c.mayAsk(p.id) {
			continue
		}
		least, ok := mine.apart(p.at)
		if !ok || !clearly(least, bound) || slices.ContainsFunc(c.candidates, func(x candidate) bool { return x.id == p.id }) {
			continue
		}
		c.candidates = append(c.candidates, candidate{id: p.id, est: least})
	}
}

// mayAsk reports whether a member is worth a ping now.
func (c *Core) mayAsk(id ID) bool {
	p := c.known[id]
	return c.cfg.Roster.Has(id) && (p == nil || p.link == nil && c.at-p.asked >= askAgain)
}

// RTT returns the measured round trip to a member: the smallest of the last
// minutes.
func (c *Core) RTT(id ID) (time.Duration, bool) {
	p := c.known[id]
	if p == nil || p.rtt == 0 {
		return 0, false
	}
	return p.rtt, true
}

// Nearer returns the members that were measured to be nearer than a distance,
// nearest first, at most limit.
func (c *Core) Nearer(than time.Duration, limit int) []Measured {
	var list []Measured
	for _, p := range c.ranked() {
		if p.rtt >= than || len(list) == limit {
			break
		}
		list = append(list, Measured{ID: p.id, RTT: p.rtt})
	}
	return list
}

// Estimate returns the measured round trip, else the one predicted from
// coordinates, else 0.
func (c *Core) Estimate(id ID) (rtt time.Duration, measured bool) {
	if rtt, ok := c.RTT(id); ok {
		return rtt, true
	}
	rtt, _ = c.Distance(c.cfg.Self, id)
	return rtt, false
}

// Stats returns the counters.
func (c *Core) Stats() Stats {
	s := c.stats
	s.Links = len(c.links)
	s.Measured = len(c.ranked())
	return s
}
