package vicinity

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"time"
)

const (
	maxLandmarks  = 8 // members that all others measure
	bearingLength = 4 // bytes on the wire: 2 of the tag, 2 of the round trip
	maxCode       = math.MaxUint16 - 1
)

// MaxBearings is how many bytes Core.Bearings returns at most.
const MaxBearings = maxLandmarks * bearingLength

// bearing is a node's round trip to one landmark, which is known by a hash of
// its ID.
type bearing struct {
	tag uint16
	rtt time.Duration
}

// bearings say where a node is, sorted by tag. Nodes with about the same
// bearings are near each other. As they are measured, not worked out together
// with others, they are right at once and do not move while nobody does.
type bearings []bearing

func tagOf(id ID) uint16 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return uint16(h.Sum32() ^ h.Sum32()>>16)
}

// encodeRTT keeps the precision of the root: 14 µs at 20 ms, less at less.
func encodeRTT(rtt time.Duration) uint16 {
	return uint16(math.Round(math.Sqrt(float64(min(max(rtt, 0), maxRTT))/float64(maxRTT)) * maxCode))
}

func decodeRTT(code uint16) time.Duration {
	root := float64(min(code, maxCode)) / maxCode
	return time.Duration(root * root * float64(maxRTT))
}

func (b bearings) wire() []byte {
	var out []byte
	for _, x := range b {
		out = binary.BigEndian.AppendUint16(out, x.tag)
		out = binary.BigEndian.AppendUint16(out, encodeRTT(x.rtt))
	}
	return out
}

// bearingsFromWire refuses what no node sends: too many bearings, or not
// sorted. It has no bytes for what is not a possible round trip.
func bearingsFromWire(b []byte) (bearings, bool) {
	if len(b)%bearingLength != 0 || len(b) > MaxBearings {
		return nil, false
	}
	var out bearings
	for ; len(b) > 0; b = b[bearingLength:] {
		tag := binary.BigEndian.Uint16(b)
		if len(out) > 0 && tag <= out[len(out)-1].tag {
			return nil, false
		}
		out = append(out, bearing{tag, decodeRTT(binary.BigEndian.Uint16(b[2:]))})
	}
	return out, true
}

// to returns the round trip to a landmark.
func (b bearings) to(tag uint16) (time.Duration, bool) {
	i, ok := slices.BinarySearchFunc(b, tag, func(x bearing, tag uint16) int { return int(x.tag) - int(tag) })
	if !ok {
		return 0, false
	}
	return b[i].rtt, true
}

// nextDoor is by how much the bearings of two nodes at one place may differ.
const nextDoor = time.Millisecond

// same reports whether what compare returned is that of two nodes at one
// place: so many landmarks cannot be as far from both by chance.
func same(least time.Duration, common int) bool { return common >= 5 && least < nextDoor }

// elsewhere reports whether a node with the new bearings is at another place than one with
// the old ones: some landmark is much farther, and another one much farther or nearer.
// That they are all nearer may only be that they were measured better.
func elsewhere(before, now bearings) bool {
	nearer, farther := 0, 0
	for _, b := range before {
		rtt, ok := now.to(b.tag)
		switch {
		case !ok || max(rtt-b.rtt, b.rtt-rtt) < nextDoor:
		case muchNearer(b.rtt, rtt):
			farther++
		case muchNearer(rtt, b.rtt):
			nearer++
		}
	}
	return farther > 0 && farther+nearer >= 2
}

// apart returns how far apart two nodes are at least. It is false if they have
// hardly a landmark in common.
func (b bearings) apart(d bearings) (least time.Duration, ok bool) {
	least, _, common := b.compare(d)
	return least, common >= 3 || common > 0 && common >= min(len(b), len(d))
}

// compare returns how far apart two nodes are at least and at most, and by how
// many common landmarks. Who is 2 ms from one and who is 10 ms from it are 8 to
// 12 ms apart. With landmarks enough one of them may be wrong.
func (b bearings) compare(d bearings) (least, most time.Duration, common int) {
	var second time.Duration
	most = maxRTT
	for i, k := 0, 0; i < len(b) && k < len(d); {
		switch {
		case b[i].tag < d[k].tag:
			i++
		case b[i].tag > d[k].tag:
			k++
		default:
			diff := max(b[i].rtt-d[k].rtt, d[k].rtt-b[i].rtt)
			if diff > least {
				least, second = diff, least
			} else {
				second = max(second, diff)
			}
			most = min(most, b[i].rtt+d[k].rtt) // no answer comes too early
			common++
			i++
			k++
		}
	}
	if common >= 5 {
		least = second
	}
	return least, most, common
}
