package main

import (
	"time"

	"zorilla/testnet"
	"zorilla/testnet/sim"
)

// siteNames are from the one where jobs are submitted on by distance from it.
var siteNames = []string{"Sophia", "Grenoble", "Bordeaux", "Lyon", "Orsay", "Rennes"}

// layout is a grid like that of the paper, which says that the 430 nodes are at
// six sites with 18 workers (two a node) in Grenoble and 356 in Orsay, and that
// Sophia, Orsay and Rennes filled up in this order. All other sizes are chosen
// here. Distances are those of testnet.Grid5000, with Orsay in the place of Nancy.
func layout() sim.Layout {
	grid := testnet.Grid5000()
	order := []int{5, 4, 3, 1, 0, 2} // of its rows
	rtt := make([][]time.Duration, len(order))
	for i, a := range order {
		for _, b := range order {
			rtt[i] = append(rtt[i], grid[a][b])
		}
	}
	return sim.Layout{Sizes: []int{80, 9, 30, 27, 178, 106}, RTT: rtt}
}
