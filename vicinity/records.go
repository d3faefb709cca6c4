package vicinity

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"
)

const (
	listPlaces = 18               // bearings of others in a list
	calmPlaces = 12               // in a calm network
	placeLife  = 10 * time.Minute // after which they are not passed on
	samePlace  = 500 * time.Microsecond
)

// addRecords puts the bearings of some nodes into a list: half of them those which seem
// nearest to who gets it, so that each finds its place among many in a few steps; a quarter
// at random, and a quarter the newest among random ones, as news spread best that way.
func (c *coordinates) addRecords(m *message, to *peer, places int) {
	drawn := c.around(to, places/2)
	near := len(drawn)
	for range min(len(c.peers.list), 2*places) {
		p := c.peers.list[c.cfg.Rand.IntN(len(c.peers.list))]
		if c.tellable(p, to) && !slices.Contains(drawn, p) {
			drawn = append(drawn, p)
		}
	}
	if len(drawn) == 0 {
		return
	}
	anyhow := near + (places-near)/2
	slices.SortFunc(drawn[min(len(drawn), anyhow):], func(a, b *peer) int { return cmp.Compare(b.located, a.located) })
	for _, lm := range c.current() {
		m.Tags = binary.BigEndian.AppendUint16(m.Tags, lm.tag)
	}
	for _, p := range drawn[:min(len(drawn), places)] {
		m.Known = appendID(m.Known, p.id)
		m.Known = binary.BigEndian.AppendUint16(m.Known, uint16((c.at-p.located)/time.Second))
		for _, lm := range c.current() {
			code := uint16(noBearing)
			if rtt, ok := p.at.to(lm.tag); ok {
				code = encodeRTT(rtt)
			}
			m.Known = binary.BigEndian.AppendUint16(m.Known, code)
		}
	}
}

// tellable reports whether bearings of a node are passed on to another one.
func (c *coordinates) tellable(p, to *peer) bool {
	return p != to && len(p.at) > 0 && c.at-p.located <= placeLife
}

// around returns at most so many nodes that seem to be nearest to another one.
func (c *coordinates) around(to *peer, most int) []*peer {
	if to == nil || len(to.at) == 0 {
		return nil
	}
	type seen struct {
		p     *peer
		apart time.Duration
	}
	near := make([]seen, 0, most+1)
	for _, p := range c.peers.list {
		if !c.tellable(p, to) {
			continue
		}
		least, ok := to.at.apart(p.at)
		if !ok || len(near) == most && least >= near[most-1].apart {
			continue
		}
		i, _ := slices.BinarySearchFunc(near, least, func(x seen, d time.Duration) int { return cmp.Compare(x.apart, d) })
		near = slices.Insert(near, i, seen{p, least})
		near = near[:min(len(near), most)]
	}
	list := make([]*peer, 0, 2*listPlaces)
	for _, x := range near {
		list = append(list, x.p)
	}
	return list
}

// infer gives members named in a list, whose bearings are not known and who are
// as good as at the same place as the list's sender, the bearings of that. They
// are not passed on, and any others are better.
func (c *coordinates) infer(from *peer, names []named) {
	if len(from.at) == 0 {
		return
	}
	for _, n := range names {
		if time.Duration(n.RTT)*time.Microsecond > samePlace || !c.member(n.ID) {
			continue
		}
		if p := c.peers.get(n.ID); len(p.at) == 0 && p != from {
			c.learn(p, from.at, c.at-placeLife-1)
		}
	}
}

// learnRecords takes the bearings that a list tells of.
func (c *coordinates) learnRecords(m message) {
	size := recordLength(m.Tags)
	for rest := m.Known; len(rest) >= size; rest = rest[size:] {
		id := unpackID(rest[:packedID])
		if !c.member(id) {
			continue
		}
		age := time.Duration(binary.BigEndian.Uint16(rest[packedID:])) * time.Second
		var at bearings
		for i := 0; i < len(m.Tags); i += 2 {
			if code := binary.BigEndian.Uint16(rest[packedID+2+i:]); code != noBearing {
				at = append(at, bearing{binary.BigEndian.Uint16(m.Tags[i:]), decodeRTT(code)})
			}
		}
		// In the middle of the second that was rounded down.
		c.learn(c.peers.get(id), at, c.at-age-time.Second/2)
	}
}
