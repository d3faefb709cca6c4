package vicinity

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"
)

const (
	listPlaces = 18               // bearings of others in a list
	placeLife  = 10 * time.Minute // after which they are not passed on
	samePlace  = 500 * time.Microsecond
)

// addRecords puts the bearings of some nodes into a list: half of them at
// random, half the newest among random ones, as news spread best that way.
func (c *coordinates) addRecords(m *message, to *peer) {
	var drawn []*peer
	for range min(len(c.peers.list), 2*listPlaces) {
		p := c.peers.list[c.cfg.Rand.IntN(len(c.peers.list))]
		if p != to && len(p.at) > 0 && c.at-p.located <= placeLife && !slices.Contains(drawn, p) {
			drawn = append(drawn, p)
		}
	}
	if len(drawn) == 0 {
		return
	}
	const anyhow = listPlaces / 2
	slices.SortFunc(drawn[min(len(drawn), anyhow):], func(a, b *peer) int { return cmp.Compare(b.located, a.located) })
	for _, lm := range c.current() {
		m.Tags = binary.BigEndian.AppendUint16(m.Tags, lm.tag)
	}
	for _, p := range drawn[:min(len(drawn), listPlaces)] {
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
