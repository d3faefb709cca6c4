package main

import (
	"fmt"
	"math"
	"time"

	"zorilla/testnet/sim"
	"zorilla/vicinity"
)

// places measures what a node knows of the distances between others, and
// whether the clusters it finds are the sites.
func places(o options) error {
	header := []string{"network", "nodes", "after", "pairs known", "median error", "90 % below", "clusters", "sites", "Rand index", "adjusted"}
	var rows [][]any
	one := func(n int, _ uint64) sim.Layout { return sim.OneSite(n) }
	three := func(n int, seed uint64) sim.Layout { return sim.Plane(n, 3, seed) }
	list := append(networks()[:3], network{name: "3 sites", layout: three}, network{name: "one LAN", layout: one})
	sizes := []int{100, 400}
	if o.quick {
		sizes = sizes[:1]
	}
	for _, n := range sizes {
		for _, w := range list {
			net := w.start(n, 1)
			for _, after := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute} {
				net.Run(after - net.Elapsed())
				rows = append(rows, append([]any{w.name, n, seconds(after)}, viewed(net)...))
			}
		}
	}
	return o.keep("places", header, rows)
}

// viewed returns what some nodes know, on average, of the distances between
// all others, and the worst of their clusterings.
func viewed(o *sim.Overlay) []any {
	var errors []float64
	pairs, known := 0, 0
	clusters, rand, adjusted := 0, 1.0, 2.0
	for viewer := 0; viewer < o.Len(); viewer += max(1, o.Len()/8) {
		c := o.Core(viewer)
		for a := range o.Len() {
			for b := range a {
				pairs++
				d, ok := c.Distance(o.ID(a), o.ID(b))
				if !ok {
					continue
				}
				known++
				truth := o.RTT(a, b)
				errors = append(errors, math.Abs(float64(d-truth))/float64(truth+time.Millisecond))
			}
		}
		g, r, adj := clustered(o, viewer)
		if adj < adjusted {
			clusters, rand, adjusted = g, r, adj
		}
	}
	sites := make(map[int]bool)
	for i := range o.Len() {
		sites[o.Site(i)] = true
	}
	return []any{
		fmt.Sprintf("%.0f %%", 100*float64(known)/float64(pairs)),
		fmt.Sprintf("%.1f %%", 100*quantile(errors, 0.5)), fmt.Sprintf("%.1f %%", 100*quantile(errors, 0.9)),
		clusters, len(sites), fmt.Sprintf("%.4f", rand), fmt.Sprintf("%.4f", adjusted),
	}
}

// clustered compares the clusters that a node finds with the sites of the
// nodes whose place it knows.
func clustered(o *sim.Overlay, viewer int) (clusters int, rand, adjusted float64) {
	c := o.Core(viewer)
	var ids []vicinity.ID
	var sites []int
	for i := range o.Len() {
		if _, ok := c.Coordinate(o.ID(i)); ok {
			ids, sites = append(ids, o.ID(i)), append(sites, o.Site(i))
		}
	}
	groups := vicinity.Group(len(ids), func(a, b int) time.Duration {
		d, _ := c.Distance(ids[a], ids[b])
		return d
	})
	found := make([]int, len(ids))
	for g, members := range groups {
		for _, i := range members {
			found[i] = g
		}
	}
	rand, adjusted = randIndex(found, sites)
	return len(groups), rand, adjusted
}

// randIndex compares two groupings: the share of pairs on which they agree,
// and that share adjusted so that chance makes 0 of it.
func randIndex(a, b []int) (rand, adjusted float64) {
	pairs := func(n int) float64 { return float64(n) * float64(n-1) / 2 }
	both, inA, inB := map[[2]int]int{}, map[int]int{}, map[int]int{}
	for i := range a {
		both[[2]int{a[i], b[i]}]++
		inA[a[i]]++
		inB[b[i]]++
	}
	var together, ofA, ofB float64
	for _, n := range both {
		together += pairs(n)
	}
	for _, n := range inA {
		ofA += pairs(n)
	}
	for _, n := range inB {
		ofB += pairs(n)
	}
	all := pairs(len(a))
	if all == 0 {
		return 1, 1
	}
	rand = (all + 2*together - ofA - ofB) / all
	chance, most := ofA*ofB/all, (ofA+ofB)/2
	if most == chance {
		return rand, 1
	}
	return rand, (together - chance) / (most - chance)
}
