package main

import (
	"time"

	"zorilla/testnet"
	"zorilla/testnet/sim"
	"zorilla/vicinity"
)

// links are those of whole nodes, by number, and whose round trips each has
// measured.
type links struct {
	neighbours [][]int
	measured   []map[int]bool
}

func linksOf(nodes *testnet.Nodes) links {
	l := links{make([][]int, nodes.Len()), make([]map[int]bool, nodes.Len())}
	for _, i := range nodes.Up() {
		table := nodes.Vicinity(i)
		for _, nb := range table.Neighbours() {
			if k, ok := nodes.Index(nb.ID); ok {
				l.neighbours[i] = append(l.neighbours[i], k)
			}
		}
		l.measured[i] = map[int]bool{}
		for _, k := range nodes.Up() {
			if _, ok := table.RTT(nodes.ID(k)); ok {
				l.measured[i][k] = true
			}
		}
	}
	return l
}

// lifted gives these links to simulated nodes; a sim.Graph. Who was measured is
// known at its true distance there.
type lifted struct {
	o *sim.Overlay
	l links
}

// Neighbours implements sim.Graph.
func (g lifted) Neighbours(node int) []vicinity.ID {
	var ids []vicinity.ID
	for _, k := range g.l.neighbours[node] {
		ids = append(ids, g.o.ID(k))
	}
	return ids
}

// RTT implements sim.Graph.
func (g lifted) RTT(node int, to vicinity.ID) (time.Duration, bool) {
	k, ok := g.o.Index(to)
	if !ok || !g.l.measured[node][k] {
		return 0, false
	}
	return g.o.RTT(node, k), true
}

// Nearer implements sim.Graph.
func (g lifted) Nearer(node int, than time.Duration, limit int) []vicinity.Measured {
	return sim.NearerOf(g.o, node, than, limit, func(other int) bool { return g.l.measured[node][other] })
}

// Distance implements sim.Graph: no job here asks for it.
func (g lifted) Distance(int, vicinity.ID, vicinity.ID) (time.Duration, bool) { return 0, false }
