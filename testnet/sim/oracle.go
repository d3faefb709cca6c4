package sim

import (
	"slices"
	"time"

	"zorilla/testnet"
)

// Nearest returns where an oracle that knows everything would run so many
// workers of one slot each: at the nearest free slots, the origin's own first.
// It returns fewer if there are not so many. free reports how many slots a node
// has to spare.
func (o *Overlay) Nearest(origin, workers int, free func(node int) int) []int {
	return testnet.NearestSlots(o.Live(), workers, func(i int) time.Duration { return o.Distance(origin, i) }, free)
}

// Distance is the true round trip from an origin to a worker's node; 0 to
// itself.
func (o *Overlay) Distance(origin, node int) time.Duration {
	if origin == node {
		return 0
	}
	return o.RTT(origin, node)
}

// Distances returns the true round trips from an origin to nodes, in order.
func (o *Overlay) Distances(origin int, nodes []int) []time.Duration {
	list := make([]time.Duration, len(nodes))
	for i, k := range nodes {
		list[i] = o.Distance(origin, k)
	}
	slices.Sort(list)
	return list
}

// Resolution is the difference of round trips that noise can hide: no two nodes
// of one site differ by more.
const Resolution = 200 * time.Microsecond

// Excess compares the distances of chosen workers with those of an oracle's,
// both in order and of the same number: the ratio of the means, and the same where
// differences of two workers of one place in the order count only if they are
// larger than Resolution.
func Excess(chosen, best []time.Duration) (ratio, clear float64) {
	var c, b, told time.Duration
	for i, d := range chosen {
		c, b = c+d, b+best[i]
		if d-best[i] > Resolution {
			told += d
		} else {
			told += best[i]
		}
	}
	if b == 0 {
		return 1, 1
	}
	return float64(c) / float64(b), float64(told) / float64(b)
}
