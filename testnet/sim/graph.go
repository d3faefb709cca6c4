package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/vicinity"
)

// Graph is what the nodes know of each other.
type Graph interface {
	// Neighbours lists whom a node floods to, nearest first.
	Neighbours(node int) []vicinity.ID
	// RTT is the round trip to another node as the node has measured it, more
	// than once.
	RTT(node int, to vicinity.ID) (time.Duration, bool)
	// Nearer lists others that the node has measured to be nearer than a
	// distance, nearest first, at most limit.
	Nearer(node int, than time.Duration, limit int) []vicinity.Measured
	// Distance is what a node believes of the round trip between two others.
	Distance(node int, a, b vicinity.ID) (time.Duration, bool)
}

// Known returns what the cores of an overlay know. An overlay that runs no more
// can so lend its graph, once it has settled, to many grids on idle overlays of
// the same layout and seed.
func Known(o *Overlay) Graph { return known{o} }

type known struct{ o *Overlay }

func (k known) Neighbours(node int) []vicinity.ID {
	var ids []vicinity.ID
	for _, n := range k.o.Neighbours(node) {
		ids = append(ids, n.ID)
	}
	return ids
}

func (k known) RTT(node int, to vicinity.ID) (time.Duration, bool) {
	if k.o.Core(node) == nil {
		return 0, false
	}
	return k.o.Core(node).Sure(to)
}

func (k known) Nearer(node int, than time.Duration, limit int) []vicinity.Measured {
	if k.o.Core(node) == nil {
		return nil
	}
	return k.o.Core(node).Nearer(than, limit)
}

func (k known) Distance(node int, a, b vicinity.ID) (time.Duration, bool) {
	if k.o.Core(node) == nil {
		return 0, false
	}
	return k.o.Core(node).Distance(a, b)
}

// What an ideal node keeps, as the protocol would.
const (
	idealNear = 6
	idealFar  = 2
	idealMost = 16
	// idealKnown is how many others, drawn at random, it has measured.
	idealKnown = 150
)

// Ideal returns the graph that the vicinity cores tend to, made of the truth in
// a moment: each node is linked to six of the nearest, by chance where none is
// clearly nearer and to who has a link with it already where it can, and to two
// random ones; links have two ends. It has measured its neighbours and 150
// others.
func Ideal(o *Overlay, seed uint64) Graph {
	g := &linked{o: o, links: make([][]int, o.Len())}
	g.measured = func(node, other int) bool {
		return slices.Contains(g.links[node], other) || hash(uint64(node)<<32+uint64(other))%uint64(o.Len()) < idealKnown
	}
	rnd := rand.New(rand.NewPCG(seed, 0x1dea))
	rings := g.rings()
	for _, i := range rnd.Perm(o.Len()) {
		g.near(i, rings[o.Site(i)], rnd)
	}
	for i := range g.links {
		for range idealFar {
			g.link(i, rnd.IntN(o.Len()))
		}
	}
	for i, list := range g.links {
		slices.SortFunc(list, func(a, b int) int { return int(o.RTT(i, a) - o.RTT(i, b)) })
	}
	return g
}

// Linked returns a graph of given links, nearest first, in which distances are the
// true ones, of those others that a node has measured.
func Linked(o *Overlay, links [][]int, measured func(node, other int) bool) Graph {
	return &linked{o, links, measured}
}

type linked struct {
	o        *Overlay
	links    [][]int
	measured func(node, other int) bool
}

// rings lists, for each site, the nodes at it and then those at the others in
// rings of about the same distance.
func (g *linked) rings() [][][]int {
	rtt := g.o.cfg.Layout.RTT
	at := make([][]int, len(rtt))
	for i := range g.o.Len() {
		at[g.o.Site(i)] = append(at[g.o.Site(i)], i)
	}
	rings := make([][][]int, len(rtt))
	for s := range rtt {
		var others []int
		for x := range rtt {
			if x != s {
				others = append(others, x)
			}
		}
		slices.SortFunc(others, func(a, b int) int { return int(rtt[s][a] - rtt[s][b]) })
		rings[s] = [][]int{at[s]}
		first := time.Duration(-1)
		for _, x := range others {
			if first < 0 || first < rtt[s][x]/5*4 {
				first = rtt[s][x]
				rings[s] = append(rings[s], nil)
			}
			last := len(rings[s]) - 1
			rings[s][last] = append(rings[s][last], at[x]...)
		}
	}
	return rings
}

func (g *linked) near(i int, rings [][]int, rnd *rand.Rand) {
	want := idealNear
	for _, ring := range rings {
		for _, k := range g.links[i] {
			if slices.Contains(ring, k) {
				want--
			}
		}
		var free []int
		for _, k := range ring {
			if k != i && !slices.Contains(g.links[i], k) {
				free = append(free, k)
			}
		}
		for want > 0 && len(free) > 0 {
			x := rnd.IntN(len(free))
			if g.link(i, free[x]) {
				want--
			}
			free = slices.Delete(free, x, x+1)
		}
		if want <= 0 {
			return
		}
	}
}

func (g *linked) link(a, b int) bool {
	if a == b || len(g.links[a]) >= idealMost || len(g.links[b]) >= idealMost || slices.Contains(g.links[a], b) {
		return false
	}
	g.links[a], g.links[b] = append(g.links[a], b), append(g.links[b], a)
	return true
}

func (g *linked) Neighbours(node int) []vicinity.ID {
	var ids []vicinity.ID
	for _, k := range g.links[node] {
		ids = append(ids, g.o.ID(k))
	}
	return ids
}

func (g *linked) RTT(node int, to vicinity.ID) (time.Duration, bool) {
	k, ok := g.o.Index(to)
	if !ok || !g.measured(node, k) {
		return 0, false
	}
	return g.o.RTT(node, k), true
}

func (g *linked) Nearer(node int, than time.Duration, limit int) []vicinity.Measured {
	var list []vicinity.Measured
	members := g.o.roster[g.o.Site(node)]
	for k := range g.o.Len() {
		if rtt := g.o.RTT(node, k); rtt < than && k != node && g.measured(node, k) && members.Has(g.o.ID(k)) {
			list = append(list, vicinity.Measured{ID: g.o.ID(k), RTT: rtt})
		}
	}
	slices.SortFunc(list, func(a, b vicinity.Measured) int { return cmp.Or(cmp.Compare(a.RTT, b.RTT), cmp.Compare(a.ID, b.ID)) })
	return list[:min(len(list), limit)]
}

// Distance is wrong by up to a tenth, the same at all nodes.
func (g *linked) Distance(_ int, a, b vicinity.ID) (time.Duration, bool) {
	i, ok := g.o.Index(a)
	k, ok2 := g.o.Index(b)
	if !ok || !ok2 {
		return 0, false
	}
	err := float64(hash(uint64(min(i, k))<<32+uint64(max(i, k)))%2000)/10000 - 0.1
	return time.Duration(float64(g.o.RTT(i, k)) * (1 + err)), true
}
