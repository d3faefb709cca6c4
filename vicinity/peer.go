package vicinity

import (
	"cmp"
	"slices"
	"time"
)

const window = 8 // samples kept of a peer

// peer is what a core remembers of another node. Instants are counted from
// the core's epoch; a peer that the node never asked has asked == never.
type peer struct {
	id      ID
	samples [window]time.Duration
	count   int           // samples taken so far
	rtt     time.Duration // mean of the two smallest samples; 0 = not measured
	sampled time.Duration // when the last sample was taken
	heard   time.Duration // when it last sent something
	asked   time.Duration // when it was last pinged
	shun    time.Duration // no link is asked for before
	burst   int           // messages since second began
	second  time.Duration
	at      Coordinate
	placed  bool // at is known
	link    *link
}

const never = time.Duration(-1 << 62)

// sample takes a round trip into the window. The smallest samples count: all
// that a busy host or network can do is to add to the truth.
func (p *peer) sample(at, rtt time.Duration) {
	p.samples[p.count%window] = rtt
	p.count++
	p.sampled = at
	least, second := rtt, time.Duration(0)
	for i, s := range p.samples[:min(p.count, window)] {
		switch {
		case i == 0:
			least = s
		case s < least:
			least, second = s, least
		case second == 0 || s < second:
			second = s
		}
	}
	p.rtt = least
	if second > 0 {
		p.rtt = (least + second) / 2
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
		if p.link != nil || p.rtt > 0 && p.rtt <= limit {
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
