package main

import (
	"math"
	"strings"

	"zorilla/testnet/sim"
)

// hubs measures networks in the calm, among them one in which a few nodes are nearest to
// many, and cannot have links with all of them.
func hubs(o options) error {
	header := []string{
		"network", "nodes", "99 % right", "links right", "strict", "known right", "strict", "stretch",
		"calm: B/s a node", "target", "busiest: packets/s", "target",
	}
	var rows [][]any
	for _, n := range o.crowds {
		rows = append(rows, o.onEach(func(g ground) [][]any {
			var when, right, strict, known, knownStrict, stretch, bytes, busiest []float64
			for seed := range o.runs(n) {
				net := g.start(n, seed+1)
				at := until(net, 0.99).Seconds()
				if at < 0 {
					at = math.Inf(1) // never
				}
				net.Run(calmFrom - net.Elapsed())
				before, sent := net.Traffic().Bytes, received(net)
				net.Run(calmTo - net.Elapsed())
				q, d := net.Quality(want), (calmTo - calmFrom).Seconds()
				when, stretch = append(when, at), append(stretch, q.Stretch)
				right, strict = append(right, q.Right), append(strict, q.Strict)
				known, knownStrict = append(known, q.Known), append(knownStrict, q.KnownStrict)
				bytes = append(bytes, float64(net.Traffic().Bytes-before)/float64(n)/d)
				most := 0.0
				for i, now := range received(net) {
					most = max(most, float64(now-sent[i])/d)
				}
				busiest = append(busiest, most)
			}
			return [][]any{{
				g.name, n, strings.ReplaceAll(numbers("%.0f s", when), "+Inf s", "never"), percents(right),
				percents(strict), percents(known), percents(knownStrict), numbers("%.2f", stretch),
				numbers("%.0f", bytes), "250", numbers("%.1f", busiest), "20",
			}}
		})...)
	}
	return o.keep("hubs", header, rows)
}

// received counts the packets of each node.
func received(o *sim.Overlay) []int64 {
	list := make([]int64, o.Len())
	for i := range list {
		list[i] = o.Core(i).Stats().Received
	}
	return list
}
