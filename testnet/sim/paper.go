package sim

import (
	"slices"
	"time"

	"zorilla/testnet"
)

// PaperSites names the sites of Paper, from the one where jobs are submitted on
// by distance from it.
func PaperSites() []string {
	return []string{"Sophia", "Grenoble", "Bordeaux", "Lyon", "Orsay", "Rennes"}
}

// Paper is a grid like those of Drost et al., Simple Locality-Aware
// Co-allocation in Peer-to-Peer Supercomputing, section 4: 430 nodes for the
// experiment on scheduling, 338 for the one that runs a program; other numbers
// are refused with a panic. The paper says that the 430 are at six sites with 18
// workers (two a node) in Grenoble and 356 in Orsay, and that Sophia, Orsay and Rennes filled
// up in this order. All other sizes are chosen here. Distances are those of
// testnet.Grid5000, with Orsay in the place of Nancy.
func Paper(nodes int) Layout {
	sizes := map[int][]int{
		430: {80, 9, 30, 27, 178, 106},
		338: {60, 9, 25, 28, 130, 86},
	}[nodes]
	if sizes == nil {
		panic("the paper has 338 or 430 nodes")
	}
	grid := testnet.Grid5000()
	order := []int{5, 4, 3, 1, 0, 2} // of its rows
	rtt := make([][]time.Duration, len(order))
	for i, a := range order {
		for _, b := range order {
			rtt[i] = append(rtt[i], grid[a][b])
		}
	}
	return Layout{Sizes: slices.Clone(sizes), RTT: rtt}
}
