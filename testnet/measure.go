package testnet

import (
	"slices"
	"time"
)

// nearWanted is how many near neighbours a node wants: the default of
// vicinity.Config.
const nearWanted = 6

// Known returns the share of all pairs of nodes that are up in which the one
// knows the other, 0 to 1.
func (n *Nodes) Known() float64 {
	up := n.Up()
	known := int64(0)
	for _, i := range up {
		known += n.list[i].watch.known.Load()
	}
	if len(up) < 2 {
		return 1
	}
	return float64(known) / float64(len(up)*(len(up)-1))
}

// Gone returns how often nodes that are up have held another one to be gone, in their
// present lives.
func (n *Nodes) Gone() (sum int64) {
	for _, i := range n.Up() {
		sum += n.list[i].watch.gone.Load()
	}
	return sum
}

// Right returns the share of near neighbours that are right, 0 to 1: of the
// six links that a node holds to be its nearest, those to a node that is not
// clearly (20 % and 0.2 ms, by the true round trip) farther than the sixth
// nearest node is. A link that is missing is wrong.
func (n *Nodes) Right() float64 {
	up := n.Up()
	want := min(nearWanted, len(up)-1)
	if want < 1 {
		return 1
	}
	if !slices.Equal(up, n.sixthOf) {
		n.sixth, n.sixthOf = n.sixth[:0], up
		for _, i := range up {
			n.sixth = append(n.sixth, NearestRTTs(i, up, want, n.RTT)[want-1])
		}
	}
	right := 0
	for k, i := range up {
		got := 0
		for _, nb := range n.list[i].node.Vicinity().Neighbours() {
			if j, ok := n.index[nb.ID]; ok && !nb.Far && n.list[j].node != nil && got < want {
				got++
				right += one(!Clearly(n.sixth[k], n.RTT(i, j)))
			}
		}
	}
	return float64(right) / float64(want*len(up))
}

// NearestRTTs returns the round trips from a node to the nearest of some others, at
// most so many, sorted.
func NearestRTTs(i int, among []int, most int, rtt func(i, j int) time.Duration) []time.Duration {
	near := make([]time.Duration, 0, most+1)
	for _, j := range among {
		if j == i {
			continue
		}
		d := rtt(i, j)
		if len(near) == most && d >= near[most-1] {
			continue
		}
		at, _ := slices.BinarySearch(near, d)
		near = slices.Insert(near, at, d)
		near = near[:min(len(near), most)]
	}
	return near
}

// Clearly is what vicinity holds to be nearer beyond doubt.
func Clearly(a, b time.Duration) bool { return a < b/5*4 && b-a > 200*time.Microsecond }

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Traffic is what nodes have sent, all lives of all nodes together. Bytes are
// those of payloads but in Packets, which counts what went over the network.
type Traffic struct {
	Vicinity, Flood Amount
	Counters        // of all kinds, memberlist's included, as they are on the wire
}

// Minus returns the difference.
func (t Traffic) Minus(u Traffic) Traffic {
	minus := func(a, b Amount) Amount { return Amount{a.Count - b.Count, a.Bytes - b.Bytes} }
	return Traffic{
		minus(t.Vicinity, u.Vicinity), minus(t.Flood, u.Flood),
		Counters{minus(t.Packets, u.Packets), minus(t.Streams, u.Streams)},
	}
}

// Traffic returns what was sent so far.
func (n *Nodes) Traffic() Traffic {
	kind := func(k byte) Amount { return Amount{n.sent[k].packets.Load(), n.sent[k].bytes.Load()} }
	return Traffic{kind(kindVicinity), kind(kindFlood), n.Network.Counters()}
}
