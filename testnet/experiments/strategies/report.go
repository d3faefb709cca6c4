package main

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"zorilla/jobs/placement"
	"zorilla/testnet/chart"
)

// report prints where the jobs of the first network of each kind are, and how
// far all are from the ideal.
func report(w io.Writer, o options, all []place) {
	g := o.grid
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

// figure draws hosts or cores per site over the size of the job, in the first
// network of a kind.
func (o *options) figure(all []place, k kind, s placement.Strategy, hosts bool) error {
	what := "cores"
	if hosts {
		what = "hosts"
	}
	f := chart.Figure{
		Title: fmt.Sprintf("%s: %s used at each site, %s (dashed: nearest first)", s, what, k.title),
		X:     "processes", Y: what, LegendLeft: true,
	}
	for _, ideal := range []bool{false, true} {
		for i, name := range o.grid.sites {
			h, c := o.grid.cores(i)
			line := chart.Series{Name: fmt.Sprintf("%s, %.1f ms, %d hosts, %d cores", name, o.grid.rtt[0][i].Seconds()*1000, h, c), Colour: i + 1, Points: true}
			if ideal {
				line.Name, line.Dashed, line.Points = "", true, false
			}
			for _, p := range all {
				if p.kind.name != k.name || p.strategy != s || p.seed != 1 {
					continue
				}
				u := p.got
				if ideal {
					u = p.ideal
				}
				y := u.cores[i]
				if hosts {
					y = u.hosts[i]
				}
				line.X, line.Y = append(line.X, float64(p.size)), append(line.Y, float64(y))
			}
			f.Series = append(f.Series, line)
		}
	}
	return f.PNG(filepath.Join(o.out, fmt.Sprintf("%s-%s-%s.png", s, what, k.name)))
}
