package main

import (
	"time"

	"zorilla/testnet/sim"
)

// driftAt are the times after a change at which neighbours are looked at.
var driftAt = []time.Duration{time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second, 60 * time.Second, 2 * time.Minute}

// drift measures how soon nodes notice that distances have changed: a tenth of them
// change places with each other, after a minute.
func drift(o options) error {
	header := []string{"network", "nodes", "who", "of", "before"}
	for _, at := range driftAt {
		header = append(header, seconds(at))
	}
	header = append(header, "B/s a node, 1st min")
	var rows [][]any
	for _, n := range o.drifting {
		rows = append(rows, o.onEach(func(g ground) (rows [][]any) {
			at := map[[2]string][][]float64{} // by who and what, for each time the values of the seeds
			var bytes []float64
			for seed := range o.runs(n) {
				bytes = append(bytes, drifted(g.start(n, seed+1), at))
			}
			for _, who := range []string{"moved", "others"} {
				for _, what := range []string{"links", "links strict", "known", "known strict"} {
					row := []any{g.name, n, who, what}
					for _, values := range at[[2]string{who, what}] {
						row = append(row, percents(values))
					}
					rows = append(rows, append(row, numbers("%.0f", bytes)))
				}
			}
			return rows
		})...)
	}
	return o.keep("drift", header, rows)
}

// drifted adds what becomes of one network, and returns what its nodes sent in the first
// minute.
func drifted(o *sim.Overlay, at map[[2]string][][]float64) (bytes float64) {
	o.Run(time.Minute)
	order := o.Rand().Perm(o.Len())
	count := max(2, o.Len()/20*2)
	moved, others := order[:count], order[count:]
	look := func(i int) {
		for who, nodes := range map[string][]int{"moved": moved, "others": others} {
			q := o.Quality(want, nodes...)
			for what, share := range map[string]float64{"links": q.Right, "links strict": q.Strict, "known": q.Known, "known strict": q.KnownStrict} {
				key := [2]string{who, what}
				for len(at[key]) <= i {
					at[key] = append(at[key], nil)
				}
				at[key][i] = append(at[key][i], share)
			}
		}
	}
	look(0)
	for i := 0; i < count; i += 2 {
		o.Swap(moved[i], moved[i+1])
	}
	before, start := o.Traffic().Bytes, o.Elapsed()
	for i, after := range driftAt {
		o.Run(start + after - o.Elapsed())
		look(i + 1)
		if after == time.Minute {
			bytes = float64(o.Traffic().Bytes-before) / float64(o.Len()) / 60
		}
	}
	return bytes
}
