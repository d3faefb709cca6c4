package main

import (
	"fmt"
	"io"
	"time"

	"zorilla/jobs/placement"
	"zorilla/testnet/chart"
)

// report prints where the jobs of the first network of each kind are, and how
// far all are from the ideal.
func report(w io.Writer, g *grid, all []place) {
	fmt.Fprintln(w, "hosts/cores at each site; in brackets the ideal where it differs; first network of each kind")
	for _, k := range kinds() {
		for _, s := range strategies() {
			fmt.Fprintf(w, "\n%s, %s\nprocesses", s, k.title)
			for i, name := range g.sites {
				fmt.Fprintf(w, "  %20s", fmt.Sprintf("%s %.1f ms", name, g.rtt[0][i].Seconds()*1000))
			}
			fmt.Fprintln(w, "  elsewhere  started  messages")
			for _, p := range all {
				if p.kind.name != k.name || p.strategy != s || p.seed != 1 {
					continue
				}
				fmt.Fprintf(w, "%9d", p.size)
				for i := range g.sites {
					cell := fmt.Sprintf("%d/%d", p.got.hosts[i], p.got.cores[i])
					if p.got.hosts[i] != p.ideal.hosts[i] || p.got.cores[i] != p.ideal.cores[i] {
						cell += fmt.Sprintf(" (%d/%d)", p.ideal.hosts[i], p.ideal.cores[i])
					}
					fmt.Fprintf(w, "  %20s", cell)
				}
				if k.once {
					fmt.Fprintf(w, "  %9d\n", p.elsewhere())
				} else {
					fmt.Fprintf(w, "  %9d  %4d ms  %8d\n", p.elsewhere(), p.started.Round(time.Millisecond).Milliseconds(), p.messages)
				}
			}
		}
	}
	fmt.Fprintf(w, "\nall networks: processes at another site than ideally\n")
	for _, k := range kinds() {
		for _, s := range strategies() {
			elsewhere, processes, worst := 0, 0, place{}
			for _, p := range all {
				if p.kind.name != k.name || p.strategy != s {
					continue
				}
				elsewhere, processes = elsewhere+p.elsewhere(), processes+p.size
				if p.elsewhere() > worst.elsewhere() {
					worst = p
				}
			}
			fmt.Fprintf(w, "%-12s %-31s %5d of %d, %.2f %%", s, k.title, elsewhere, processes, 100*float64(elsewhere)/float64(max(1, processes)))
			if n := worst.elsewhere(); n > 0 {
				fmt.Fprintf(w, "; at worst %d of %d", n, worst.size)
			}
			fmt.Fprintln(w)
		}
	}
}

// draw draws hosts or cores per site over the size of the job, in the first
// network of a kind.
func (g *grid) draw(w *chart.Results, all []place, k kind, s placement.Strategy, what string, of func(use) []int) {
	f := chart.Figure{
		Title: fmt.Sprintf("%s: %s used at each site, %s (dashed: nearest first)", s, what, k.title),
		X:     "processes", Y: what, LegendLeft: true,
	}
	line := func(series chart.Series, site int, of func(place) []int) {
		f.Series = append(f.Series, chart.Line(series, all, func(p place) (x, y float64, ok bool) {
			return float64(p.size), float64(of(p)[site]), p.kind.name == k.name && p.strategy == s && p.seed == 1
		}))
	}
	for i, name := range g.sites {
		h, c := g.cores(i)
		title := fmt.Sprintf("%s, %.1f ms, %d hosts, %d cores", name, g.rtt[0][i].Seconds()*1000, h, c)
		line(chart.Series{Name: title, Colour: i + 1, Points: true}, i, func(p place) []int { return of(p.got) })
	}
	for i := range g.sites {
		line(chart.Series{Colour: i + 1, Dashed: true}, i, func(p place) []int { return of(p.ideal) })
	}
	w.PNG(fmt.Sprintf("%s-%s-%s.png", s, what, k.name), f)
}
