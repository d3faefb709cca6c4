package main

import (
	"fmt"
	"slices"
	"time"

	"zorilla/testnet/chart"
	"zorilla/testnet/sim"
)

// calmFrom and calmTo bound the time in which a calm network's traffic is
// measured.
const calmFrom, calmTo = 2 * time.Minute, 4 * time.Minute

// course is one run of a network: how it came to its neighbours.
type course struct {
	at      []float64     // seconds
	right   []float64     // percent
	when    time.Duration // 99 % right, and not worse after; < 0: never
	stretch float64
	strict  float64     // percent that are right strictly, in the end
	start   sim.Traffic // of the first minute, all nodes together
	calm    sim.Traffic // of the calm time
	changes int         // near links exchanged in the calm
}

func watch(o *sim.Overlay) course {
	c := course{when: -1}
	for o.Elapsed() < time.Minute {
		o.Run(time.Second)
		q := o.Quality(want)
		c.at, c.right = append(c.at, o.Elapsed().Seconds()), append(c.right, 100*q.Right)
		switch {
		case q.Right < 0.99:
			c.when = -1
		case c.when < 0:
			c.when = o.Elapsed()
		}
	}
	c.start = o.Traffic()
	o.Run(calmFrom - o.Elapsed())
	before, links := o.Traffic(), nearLinks(o)
	o.Run(calmTo - o.Elapsed())
	after := o.Traffic()
	c.calm = sim.Traffic{Packets: after.Packets - before.Packets, Bytes: after.Bytes - before.Bytes}
	c.changes = exchanged(nearLinks(o), links)
	q := o.Quality(want)
	c.stretch, c.strict = q.Stretch, 100*q.Strict
	return c
}

// nearLinks returns the near links of all nodes.
func nearLinks(o *sim.Overlay) map[[2]int]bool {
	links := make(map[[2]int]bool)
	for i := range o.Len() {
		for _, nb := range o.Neighbours(i) {
			if k, _ := o.Index(nb.ID); !nb.Far && i < k {
				links[[2]int{i, k}] = true
			}
		}
	}
	return links
}

// exchanged counts the links that are not among others.
func exchanged(links, others map[[2]int]bool) (n int) {
	for link := range links {
		if !others[link] {
			n++
		}
	}
	return n
}

// find measures how soon all know their nearest.
func find(o options) error {
	header := []string{
		"network", "nodes", "99 % right", "target", "worst seed", "strictly right, %", "stretch",
		"packets a node, 1st min", "kB a node, 1st min",
		"calm: packets/s", "calm: B/s", "target B/s", "links changed a node and min"}
	var rows, data [][]any
	fig := chart.Figure{Title: "Near neighbours that are right", X: "seconds since all know all", Y: "share, %"}
	for _, n := range o.sizes {
		for _, w := range networks() {
			var when []time.Duration
			var last course
			seeds := 1
			if n <= 400 {
				seeds = o.seeds
			}
			for seed := range uint64(seeds) {
				last = watch(w.start(n, seed+1))
				if last.when < 0 {
					last.when = time.Hour
				}
				when = append(when, last.when)
			}
			slices.Sort(when)
			per := func(total int64, d time.Duration) string {
				return fmt.Sprintf("%.1f", float64(total)/float64(n)/d.Seconds())
			}
			rows = append(rows, []any{
				w.name, n, seconds(when[len(when)/2]), seconds(w.allowed(n)), seconds(when[len(when)-1]),
				fmt.Sprintf("%.1f", last.strict), fmt.Sprintf("%.2f", last.stretch),
				fmt.Sprintf("%.0f", float64(last.start.Packets)/float64(n)), fmt.Sprintf("%.0f", float64(last.start.Bytes)/float64(n)/1000),
				per(last.calm.Packets, calmTo-calmFrom), per(last.calm.Bytes, calmTo-calmFrom), "1000",
				fmt.Sprintf("%.3f", 2*float64(last.changes)/float64(n)/(calmTo-calmFrom).Minutes()),
			})
			fmt.Fprintln(o, rows[len(rows)-1]...)
			if n == o.sizes[0] || n == 2000 {
				s := chart.Series{Name: fmt.Sprintf("%s, %d nodes", w.name, n), X: last.at[:40], Y: last.right[:40], Dashed: n == 2000}
				fig.Series = append(fig.Series, s)
				for i := range s.X {
					data = append(data, []any{s.Name, s.X[i], s.Y[i]})
				}
			}
		}
	}
	o.CSV("right.csv", []string{"network", "seconds", "percent right"}, data)
	o.PNG("right.png", fig)
	return o.keep("find", header, rows)
}
