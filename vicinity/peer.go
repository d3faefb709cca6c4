package vicinity

import (
	"cmp"
	"slices"
	"time"
)

const (
	// Of each time slot the smallest sample is kept: many samples in a busy
	// minute must not push the good ones out.
	window   = 8 // slots kept of a peer
	slotTime = 15 * time.Second
	oldest   = 5 * time.Minute // older slots do not count beside a newer one
)

// slot is the smallest round trip measured in a time.
type slot struct {
	from  time.Duration
	least time.Duration
}

// peer is what a core remembers of another node. Instants are counted from
// the core's epoch; a peer that the node never asked has asked == never.
type peer struct {
	id      ID
	slots   [window]slot // a ring; the newest is at slots[last]
	last    int
	count   int           // samples taken so far
	rtt     time.Duration // the smallest that counts; 0 = not measured
	sampled time.Duration // when the last sample was taken
	heard   time.Duration // when it last sent something
	asked   time.Duration // when it was last pinged
	shun    time.Duration // no link is asked for before
	burst   int           // messages since second began
	second  time.Duration
	tries   int // pings to it as a landmark
	at      bearings
	located time.Duration // when it had them
	checked time.Duration // when they were last compared with the round trip
	place   Coordinate    // by them
	issue   int           // of the atlas that place was worked out with; 0 = none
	link    *link
}

const never = time.Duration(-1 << 62)

// sample takes a round trip. The smallest counts: all that a busy host or
// network can do is to add to the truth. As slots go out of the window after
// two minutes of samples, a way that became longer is noticed.
func (p *peer) sample(at, rtt time.Duration) {
	now := &p.slots[p.last]
	switch {
	case p.count == 0:
		*now = slot{at, rtt}
	case at-now.from < slotTime:
		now.least = min(now.least, rtt)
	default:
		p.last = (p.last + 1) % window
		p.slots[p.last] = slot{at, rtt}
	}
	p.count++
	p.sampled = at
	p.rtt = rtt
	for _, s := range p.slots {
		if s.least > 0 && at-s.from < oldest {
			p.rtt = min(p.rtt, s.least)
		}
	}
}

// distant is the round trip for comparing, where not measured means farthest.
func (p *peer) distant() time.Duration {
	if p.rtt == 0 {
		return maxRTT
	}
	return p.rtt
}

// flooding counts a message of the peer and reports whether there were too
// many of them within a second.
func (p *peer) flooding(at time.Duration) bool {
	if at-p.second >= time.Second {
		p.second, p.burst = at, 0
	}
	p.burst++
	return p.burst > maxBurst
}

// clearly reports whether a is so much nearer than b that it is worth a
// change: within a site the order is noise.
func clearly(a, b time.Duration) bool {
	return a < b/5*4 && b-a > 200*time.Microsecond
}

// peer returns the record of id, making one if there is none.
func (c *Core) peer(id ID) *peer {
	if p := c.known[id]; p != nil {
		return p
	}
	if len(c.peers) >= c.cfg.Peers {
		c.evict()
	}
	p := &peer{id: id, heard: c.at, asked: never, sampled: never, shun: never}
	c.known[id] = p
	c.peers = append(c.peers, p)
	return p
}

func (c *Core) forget(p *peer) {
	delete(c.known, p.id)
	i := slices.Index(c.peers, p)
	c.peers[i] = c.peers[len(c.peers)-1]
	c.peers[len(c.peers)-1] = nil
	c.peers = c.peers[:len(c.peers)-1]
	c.stale = true
}

// evict forgets the peer not heard of for longest that is neither linked nor
// one of the nearest.
func (c *Core) evict() {
	keep := c.ranked()
	keep = keep[:min(len(keep), c.cfg.Peers/2)]
	limit := time.Duration(0)
	if len(keep) > 0 {
		limit = keep[len(keep)-1].rtt
	}
	var oldest *peer
	for _, p := range c.peers {
		if p.link != nil || p.rtt > 0 && p.rtt <= limit || c.isLandmark(p.id) {
			continue
		}
		if oldest == nil || p.heard < oldest.heard {
			oldest = p
		}
	}
	if oldest == nil { // many at exactly the same distance
		for _, p := range c.peers {
			if p.link == nil {
				oldest = p
				break
			}
		}
	}
	if oldest != nil {
		c.forget(oldest)
	}
}

// ranked returns the measured peers, nearest first. The slice is the core's
// own and valid until the next sample or loss.
func (c *Core) ranked() []*peer {
	if !c.stale {
		return c.order
	}
	clear(c.order)
	c.order = c.order[:0]
	for _, p := range c.peers {
		if p.rtt > 0 {
			c.order = append(c.order, p)
		}
	}
	slices.SortFunc(c.order, func(a, b *peer) int {
		if a.rtt != b.rtt {
			return cmp.Compare(a.rtt, b.rtt)
		}
		return cmp.Compare(a.id, b.id)
	})
	c.stale = false
	return c.order
}

// draw returns a random other member that suits, or "" if a few tries find
// none.
func (c *Core) draw(suits func(ID) bool) ID {
	n := c.cfg.Roster.Len()
	for range min(2*n, 24) {
		id := c.cfg.Roster.At(c.cfg.Rand.IntN(n))
		if id != c.cfg.Self && suits(id) {
			return id
		}
	}
	return ""
}
