package sim

import (
	"time"

	"zorilla/testnet"
)

// Quality says how good the neighbours of some nodes are. Each wants the k nearest: those
// that are missing are wrong ones.
type Quality struct {
	// Right is the share of the near neighbours that are right: of the k nearest links
	// of a node those whose true round trip is not clearly larger than that to
	// the k-th nearest node, by 20 % and 0.2 ms, the step below which the protocol
	// does not change a link.
	Right float64
	// Strict is the same with 5 % and 0.1 ms.
	Strict float64
	// Known and KnownStrict are the same of the k members that a node has measured to be
	// nearest, whether it has links to them or not: a node to which many are near
	// does not keep links to all of them, but all can ask it for workers.
	Known, KnownStrict float64
	// Stretch is the mean true round trip of the neighbours over that of the
	// truly nearest.
	Stretch float64
	Reached float64 // share of the nodes that a flood from one of them reaches
}

// tally sums up whom nodes take for the nearest.
type tally struct {
	right, strict, wanted int
	mine, best            time.Duration
}

// add takes the true round trips to whom a node takes for its nearest, and those to
// the nearest there are.
func (t *tally) add(mine, nearest []time.Duration) {
	last := nearest[len(nearest)-1]
	for i, rtt := range mine[:min(len(mine), len(nearest))] {
		t.mine += rtt
		t.best += nearest[i]
		if !testnet.Clearly(last, rtt) {
			t.right++
		}
		if rtt <= last+max(last/20, 100*time.Microsecond) {
			t.strict++
		}
	}
	t.wanted += len(nearest)
}

func share(part, all int) float64 {
	if all == 0 {
		return 1
	}
	return float64(part) / float64(all)
}

// Quality looks at some of the nodes that run, at all of them if none are given, where
// each wants k near neighbours. It takes time in proportion to the number of these nodes
// and of all.
func (o *Overlay) Quality(k int, nodes ...int) Quality {
	var links, known tally
	up := o.Live()
	if len(nodes) == 0 {
		nodes = up
	}
	for _, i := range nodes {
		if near := testnet.NearestRTTs(i, up, k, o.RTT); len(near) > 0 {
			links.add(nearLinks(o, i), near)
			known.add(nearKnown(o, i, k), near)
		}
	}
	q := Quality{
		Right: share(links.right, links.wanted), Strict: share(links.strict, links.wanted), Stretch: 1, Reached: 1,
		Known: share(known.right, known.wanted), KnownStrict: share(known.strict, known.wanted),
	}
	if links.best > 0 {
		q.Stretch = float64(links.mine) / float64(links.best)
	}
	if links.wanted > 0 {
		q.Reached = float64(o.Reached(up[0])) / float64(len(up))
	}
	return q
}

// nearLinks returns the true round trips to a node's near neighbours, nearest first by what
// it has measured.
func nearLinks(o *Overlay, i int) (rtts []time.Duration) {
	for _, nb := range o.Neighbours(i) {
		if to, _ := o.Index(nb.ID); !nb.Far && o.Up(to) {
			rtts = append(rtts, o.RTT(i, to))
		}
	}
	return rtts
}

// nearKnown returns the true round trips to the k members that a node has measured to be
// nearest.
func nearKnown(o *Overlay, i, k int) (rtts []time.Duration) {
	core := o.Core(i)
	if core == nil {
		return nil
	}
	for _, m := range core.Nearer(forever, o.Len()) {
		if _, measured := core.RTT(m.ID); !measured {
			continue
		}
		if k--; k < 0 {
			break
		}
		if to, _ := o.Index(m.ID); o.Up(to) {
			rtts = append(rtts, o.RTT(i, to))
		}
	}
	return rtts
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
