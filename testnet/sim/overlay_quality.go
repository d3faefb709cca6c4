package sim

import (
	"time"

	"zorilla/testnet"
)

// Quality says how good the neighbours of the running nodes are.
type Quality struct {
	// Right is the share of the near neighbours that are right. A node wants
	// the k nearest; its k nearest links count, those missing as wrong ones. A
	// neighbour is right if its true round trip is not clearly larger than that
	// of the k-th nearest node, by 20 % and 0.2 ms, the step below which the
	// protocol does not change a link.
	Right float64
	// Stretch is the mean true round trip of these neighbours over that of the
	// truly nearest.
	Stretch float64
	Reached float64 // share of the nodes that a flood from one of them reaches
}

// Quality looks at all nodes that run, where each wants k near neighbours. It
// takes time in proportion to the square of their number.
func (o *Overlay) Quality(k int) Quality {
	up := o.Live()
	var q Quality
	var right, wanted int
	var mine, best time.Duration
	for _, i := range up {
		near := testnet.NearestRTTs(i, up, k, o.RTT)
		if len(near) == 0 {
			continue
		}
		last, got := near[len(near)-1], 0
		for _, nb := range o.Neighbours(i) {
			to, _ := o.Index(nb.ID)
			if nb.Far || got == len(near) || !o.Up(to) {
				continue
			}
			rtt := o.RTT(i, to)
			mine += rtt
			best += near[got]
			got++
			if !testnet.Clearly(last, rtt) {
				right++
			}
		}
		wanted += len(near)
	}
	if wanted == 0 {
		return Quality{Right: 1, Stretch: 1, Reached: 1}
	}
	q.Right = float64(right) / float64(wanted)
	if best > 0 {
		q.Stretch = float64(mine) / float64(best)
	}
	q.Reached = float64(o.Reached(up[0])) / float64(len(up))
	return q
}

// Live returns the nodes that run.
func (o *Overlay) Live() []int {
	var up []int
	for i := range o.hosts {
		if o.Up(i) {
			up = append(up, i)
		}
	}
	return up
}

// Reached counts the nodes that a flood from a node reaches, itself included,
// by links as that node and those after it see them.
func (o *Overlay) Reached(from int) int {
	seen := make([]bool, len(o.hosts))
	seen[from] = true
	list := []int{from}
	for at := 0; at < len(list); at++ {
		for _, nb := range o.Neighbours(list[at]) {
			if k, _ := o.Index(nb.ID); !seen[k] && o.Up(k) && !o.severed(k, from) {
				seen[k] = true
				list = append(list, k)
			}
		}
	}
	return len(list)
}
