package vicinity

import (
	"cmp"
	"slices"
	"time"
)

const probePause = time.Second // between probes of one member

// Ask pings a member for a caller who waits; Answers reports what comes of it.
// The nonce is 0 if id is no other member.
func (c *Core) Ask(now time.Time, id ID) (nonce uint64, out []Packet) {
	c.enter(now)
	if !c.member(id) {
		return 0, nil
	}
	nonce = c.pings.ask(c.peers.get(id))
	return nonce, c.flush()
}

// Answers returns what came of Ask since the last call.
func (c *Core) Answers() []Answer {
	out := c.pings.answers
	c.pings.answers = nil
	return out
}

// Probe pings a member soon to be compared with others, unless it was asked
// within the last second: twice, so that Sure has an answer then.
func (c *Core) Probe(now time.Time, id ID) []Packet {
	c.enter(now)
	if !c.member(id) {
		return c.flush()
	}
	if p := c.peers.get(id); c.at-p.asked >= probePause {
		for range sureSamples {
			c.pings.ping(p)
		}
	}
	return c.flush()
}

// Neighbours returns the links: the near ones by round trip, then the far
// ones; of each kind the unmeasured last.
func (c *Core) Neighbours() []Neighbour { return c.links.neighbours() }

// Version changes whenever Neighbours may return other members or kinds.
func (c *Core) Version() uint64 { return c.links.version }

// RTT returns the measured round trip to a member: the smallest of the last
// minutes.
func (c *Core) RTT(id ID) (time.Duration, bool) { return c.peers.rtt(id) }

// Sure is RTT, but false for a member that was measured only once: one packet in
// a hundred is held up on its way.
func (c *Core) Sure(id ID) (time.Duration, bool) {
	if p := c.peers.known[id]; p == nil || p.count < sureSamples {
		return 0, false
	}
	return c.RTT(id)
}

// Fresh is Sure by the samples of the last time only: who was measured more than once, but
// not since then twice, may be elsewhere by now; Probe asks again.
func (c *Core) Fresh(now time.Time, id ID, within time.Duration) (time.Duration, bool) {
	c.enter(now)
	if p := c.peers.known[id]; p != nil {
		return p.fresh(c.at, within)
	}
	return 0, false
}

// Nearer returns the members that were measured to be nearer than a distance, and those
// that must be by their bearings, though the only packet that measured them was held up, or
// none has; nearest first, at most limit.
func (c *Core) Nearer(than time.Duration, limit int) []Measured {
	var list []Measured
	bound := func(p *peer, least, most time.Duration) {
		list = append(list, Measured{ID: p.id, RTT: max(least, time.Microsecond), Least: true, Most: most})
	}
	own := c.where.bearings()
	for _, p := range c.peers.list {
		if p.rtt > 0 {
			continue
		}
		if least, ok := own.apart(p.at); ok {
			if _, most, _ := own.compare(p.at); most < than {
				bound(p, least, most)
			}
		}
	}
	bounded := len(list)
	for _, p := range c.peers.ranked() {
		if c.where.heldUp(p) {
			if least, most, _ := own.compare(p.at); least < than {
				bound(p, least, min(most, p.rtt))
				bounded++
			}
		} else if p.rtt < than && len(list) < limit+bounded {
			list = append(list, Measured{ID: p.id, RTT: p.rtt})
		}
	}
	slices.SortStableFunc(list, func(a, b Measured) int { return cmp.Or(cmp.Compare(a.RTT, b.RTT), cmp.Compare(a.ID, b.ID)) })
	return list[:min(limit, len(list))]
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

// Coordinate returns where a node is. It is false while too little is known of
// it, which takes some seconds in a new network. Only distances between the
// coordinates that one core gave at the same time mean something.
func (c *Core) Coordinate(id ID) (Coordinate, bool) { return c.where.of(id) }

// Distance predicts the round trip between two nodes. It is the measured one
// if one of them is this node or a landmark. It is false if the place of one
// of them is not known: that of one of the latest that have left still is.
func (c *Core) Distance(a, b ID) (time.Duration, bool) { return c.where.distance(a, b) }

// Bearings returns where this node is, for messages of another protocol: who
// gets them hands them to Placed. They are empty while too little is known.
func (c *Core) Bearings() []byte { return c.where.bearings().wire() }

// Placed takes what a member's Bearings returned. Bytes of another form, or
// from who is no member, are counted and change nothing.
func (c *Core) Placed(now time.Time, id ID, b []byte) {
	c.enter(now)
	at, ok := bearingsFromWire(b)
	switch {
	case id == c.cfg.Self:
	case !c.cfg.Roster.Has(id):
		c.stats.Strangers++
	case !ok:
		c.stats.Malformed++
	default:
		c.where.learn(c.peers.get(id), at, c.at)
	}
}

// Stats returns the counters.
func (c *Core) Stats() Stats {
	s := c.stats
	s.Links = len(c.links.list)
	s.Measured = len(c.peers.ranked())
	return s
}
