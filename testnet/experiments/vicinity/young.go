package main

import (
	"fmt"
	"time"

	"zorilla/testnet"
	"zorilla/testnet/sim"
)

// wanted is how many nodes a search of the part young looks for.
const wanted = 8

// young measures what a job finds that is submitted soon after all nodes of a network have
// been started together: the nearest of those whom a best-first search over links and
// known members passes, beside the truly nearest.
func young(o options) error {
	ages := []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second}
	header := []string{"network", "nodes"}
	for _, at := range ages {
		header = append(header, seconds(at), "worst", "right", "strictly")
	}
	var rows [][]any
	for _, n := range o.young {
		rows = append(rows, o.onEach(func(g ground) [][]any {
			net := g.start(n, 1)
			row := []any{g.name, n}
			for _, at := range ages {
				net.Run(at - net.Elapsed())
				var found, best, worst float64
				for i := 0; i < n; i += max(1, n/100) {
					mine, least := searched(net, i)
					found, best, worst = found+mine, best+least, max(worst, mine/least)
				}
				q := net.Quality(want)
				row = append(row, fmt.Sprintf("%.2f", found/best), fmt.Sprintf("%.1f", worst),
					fmt.Sprintf("%.1f", 100*q.Right), fmt.Sprintf("%.1f", 100*q.Strict))
			}
			return [][]any{row}
		})...)
	}
	return o.keep("young", header, rows)
}

// searched returns the sum of the round trips from a node to the nearest that a search
// finds, and to the truly nearest: a flood of three hops is carried on beyond nodes nearer
// than the farthest that would be taken, and to members known to be nearer.
func searched(o *sim.Overlay, origin int) (found, best float64) {
	hops := map[int]int{origin: 0}
	rim := []int{origin}
	for hop := 1; hop <= 3; hop++ {
		var next []int
		for _, i := range rim {
			for _, nb := range o.Neighbours(i) {
				if k, _ := o.Index(nb.ID); hops[k] == 0 && k != origin {
					hops[k] = hop
					next = append(next, k)
				}
			}
		}
		rim = next
	}
	nearest := func() (list []time.Duration) {
		all := make([]int, 0, len(hops))
		for k := range hops {
			all = append(all, k)
		}
		return nearestOf(o, origin, all)
	}
	onward := map[int]bool{}
	for grown := true; grown; {
		grown = false
		near := nearest()
		horizon := near[len(near)-1]
		for _, m := range o.Core(origin).Nearer(horizon, 64) {
			if k, _ := o.Index(m.ID); hops[k] == 0 {
				hops[k], grown = 3, true
			}
		}
		for k, hop := range hops {
			if hop < 3 || onward[k] || o.RTT(origin, k) >= horizon {
				continue
			}
			onward[k], grown = true, true
			for _, nb := range o.Neighbours(k) {
				if to, _ := o.Index(nb.ID); hops[to] == 0 && to != origin {
					hops[to] = 3
				}
			}
		}
	}
	for _, d := range nearest() {
		found += d.Seconds()
	}
	for _, d := range nearestOf(o, origin, o.Live()) {
		best += d.Seconds()
	}
	return found, best
}

// nearestOf returns the round trips from a node to the nearest among some.
func nearestOf(o *sim.Overlay, origin int, among []int) []time.Duration {
	return testnet.NearestRTTs(origin, among, wanted, o.RTT)
}
