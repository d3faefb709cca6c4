package vicinity

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	listPlaces = 18               // bearings of others in a list
	placeLife  = 10 * time.Minute // after which they are not passed on
	samePlace  = 500 * time.Microsecond
	// absurd is by how much bearings may contradict what was measured. Real
	// ones do so by milliseconds; who is off by this does not mean to be right.
	absurd = time.Second
)

// Records of other nodes' bearings are packed, as they are most of a list: the
// tags of the landmarks stand once for all of them, then for each node 17
// bytes of its ID, the age in seconds and, in the tags' order, the round trips.
const (
	packedID  = 17
	noBearing = math.MaxUint16
	maxPlaces = 24 // records accepted in a list
)

const idAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

// appendID packs a valid ID: 26 characters of 5 bits, then 6 bits of zero.
func appendID(b []byte, id ID) []byte {
	var bits, count uint
	for _, c := range []byte(id[1:]) {
		bits, count = bits<<5|uint(strings.IndexByte(idAlphabet, c)), count+5
		if count >= 8 {
			count -= 8
			b = append(b, byte(bits>>count))
		}
	}
	return append(b, byte(bits<<(8-count)))
}

func unpackID(b []byte) ID {
	out := make([]byte, 1, idLength)
	out[0] = 'z'
	var bits, count uint
	for _, x := range b {
		bits, count = bits<<8|uint(x), count+8
		for count >= 5 && len(out) < idLength {
			count -= 5
			out = append(out, idAlphabet[bits>>count&31])
		}
	}
	return ID(out)
}

func recordLength(tags []byte) int { return packedID + 2 + len(tags) }

func (m *message) validRecords() bool {
	if len(m.Known) == 0 {
		return len(m.Tags) <= 2*landmarks
	}
	if len(m.Tags)%2 != 0 || len(m.Tags) > 2*landmarks || len(m.Known)%recordLength(m.Tags) != 0 || len(m.Known) > maxPlaces*recordLength(m.Tags) {
		return false
	}
	for i := 2; i < len(m.Tags); i += 2 {
		if binary.BigEndian.Uint16(m.Tags[i:]) <= binary.BigEndian.Uint16(m.Tags[i-2:]) {
			return false
		}
	}
	return true
}

// place notes the bearings that a peer had at a time, unless newer ones are
// known or they cannot be true.
func (c *Core) place(p *peer, at bearings, when time.Duration) {
	if len(at) == 0 || len(p.at) > 0 && when <= p.located {
		return
	}
	if p.rtt > 0 && c.impossible(at, p.rtt) {
		c.stats.Absurd++
		return
	}
	p.at, p.located, p.issue = at, when, 0
}

// impossible reports whether bearings cannot be those of a node so far away.
func (c *Core) impossible(at bearings, rtt time.Duration) bool {
	least, ok := c.bearings().apart(at)
	return ok && least-rtt > absurd
}

// addRecords puts the bearings of some nodes into a list: half of them at
// random, half the newest among random ones, as news spread best that way.
func (c *Core) addRecords(m *message, to *peer) {
	var drawn []*peer
	for range min(len(c.peers), 2*listPlaces) {
		p := c.peers[c.cfg.Rand.IntN(len(c.peers))]
		if p != to && len(p.at) > 0 && c.at-p.located <= placeLife && !slices.Contains(drawn, p) {
			drawn = append(drawn, p)
		}
	}
	if len(drawn) == 0 {
		return
	}
	const anyhow = listPlaces / 2
	slices.SortFunc(drawn[min(len(drawn), anyhow):], func(a, b *peer) int { return cmp.Compare(b.located, a.located) })
	for _, mark := range c.landmarks() {
		m.Tags = binary.BigEndian.AppendUint16(m.Tags, mark.tag)
	}
	for _, p := range drawn[:min(len(drawn), listPlaces)] {
		m.Known = appendID(m.Known, p.id)
		m.Known = binary.BigEndian.AppendUint16(m.Known, uint16((c.at-p.located)/time.Second))
		for _, mark := range c.landmarks() {
			code := uint16(noBearing)
			if rtt, ok := p.at.to(mark.tag); ok {
				code = encodeRTT(rtt)
			}
			m.Known = binary.BigEndian.AppendUint16(m.Known, code)
		}
	}
}

// infer gives members named in a list, whose bearings are not known and who are
// as good as at the same place as the list's sender, the bearings of that. They
// are not passed on, and any others are better.
func (c *Core) infer(from *peer, names []named) {
	if len(from.at) == 0 {
		return
	}
	for _, n := range names {
		if time.Duration(n.RTT)*time.Microsecond > samePlace || n.ID == c.cfg.Self || !c.cfg.Roster.Has(n.ID) {
			continue
		}
		if p := c.peer(n.ID); len(p.at) == 0 && p != from {
			c.place(p, from.at, c.at-placeLife-1)
		}
	}
}

// learnPlaces takes the bearings that a list tells of.
func (c *Core) learnPlaces(m message) {
	size := recordLength(m.Tags)
	for rest := m.Known; len(rest) >= size; rest = rest[size:] {
		id := unpackID(rest[:packedID])
		if id == c.cfg.Self || !c.cfg.Roster.Has(id) {
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
		c.place(c.peer(id), at, c.at-age-time.Second/2)
	}
}
