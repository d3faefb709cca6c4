package main

import "zorilla/testnet"

// links are those of whole nodes, by number, and whose round trips each has
// measured. A simulator that gets them knows these at their true distances.
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
			_, l.measured[i][k] = table.RTT(nodes.ID(k))
		}
	}
	return l
}
