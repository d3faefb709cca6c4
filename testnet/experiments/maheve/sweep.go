package main

import (
	"fmt"
	"math"

	"zorilla/testnet/chart"
)

// point is what methods gain with failures at a cost of a far restore.
type point struct {
	far   float64            // seconds
	base  float64            // the default's median
	ratio float64            // that by the default's median without failures
	own   map[string]float64 // medians by method
}

// sweep plays runs with failures for each cost of a far restore, prints the gains and draws them.
func sweep(r *chart.Results, o *options, m *measured) {
	if len(o.far) == 0 {
		return
	}
	fmt.Fprintln(r, "\nWhat a far restore costs: gains with failures over the default, of medians in percent, and the default with failures by without.")
	var rows [][]any
	ratios := chart.Figure{Title: "The default map: with failures by without", X: "far restore, s", Y: "times as long", LegendLeft: true}
	random := chart.Figure{Title: "Gain of MAHEVE with failures at random", X: "far restore, s", Y: "gain over the default, %", LegendLeft: true}
	for i, k := range kinds() {
		trials := o.trials(&k, m)
		end := enough(trials, m)
		base := median(playKind(trials, m, end, never, methods()[:1]))
		for _, failing := range []failures{paced, atRandom} {
			list := methods()
			points := sweepKind(o, trials, m, end, failing, base)
			reportSweep(r, &k, failing, points)
			f := chart.Figure{Title: fmt.Sprintf("Gain with failures, hd = %.2f", k.hd), X: "far restore, s", Y: "gain over the default, %", LegendLeft: true}
			for _, how := range list[1:] {
				s := chart.Series{Name: how.name, Points: true, Dashed: how.name == nearOnly || how.name == mapOnly}
				f.Series = append(f.Series, chart.Line(s, points, func(p point) (x, y float64, ok bool) {
					g := gain(p.base, p.own[how.name])
					rows = append(rows, []any{k.hd, failing, p.far, how.name, p.own[how.name], p.base, g})
					return p.far, g, !math.IsNaN(g) && !math.IsInf(g, 0)
				}))
			}
			s := chart.Series{Name: fmt.Sprintf("hd = %.2f, %s", k.hd, failing), Points: true, Colour: i + 1, Dashed: failing == atRandom}
			ratios.Series = append(ratios.Series, chart.Line(s, points, func(p point) (x, y float64, ok bool) {
				return p.far, p.ratio, !math.IsInf(p.ratio, 0)
			}))
			if failing == paced {
				r.SVG(fmt.Sprintf("gain-%03.0f.svg", 100*k.hd), f)
				continue
			}
			for _, s := range f.Series {
				if s.Name == byMaheve || s.Name == nearOnly {
					s.Name, s.Colour = fmt.Sprintf("hd = %.2f, %s", k.hd, s.Name), i+1
					random.Series = append(random.Series, s)
				}
			}
		}
	}
	r.SVG("random.svg", random)
	r.SVG("ratio.svg", ratios)
	r.CSV("sweep.csv", []string{"hd", "failures", "far restore s", "method", "median s", "default s", "gain %"}, rows)
}

// sweepKind plays the runs of one kind.
func sweepKind(o *options, trials []trial, m *measured, end limits, failing failures, without float64) (points []point) {
	for _, far := range o.far {
		with := *m
		with.RestoreFar.Seconds = far
		all := playKind(trials, &with, end, failing, methods())
		p := point{far: far, own: map[string]float64{}}
		for _, how := range methods() {
			p.own[how.name] = median(pick(all, trials[0].kind.hd, how.name, failing))
		}
		p.base = p.own[byDefault]
		p.ratio = p.base / without
		points = append(points, p)
	}
	return points
}

func reportSweep(r *chart.Results, k *kind, failing failures, points []point) {
	fmt.Fprintf(r, "\n| hd = %.2f, failures: %s; far restore, s | default by without |", k.hd, failing)
	line := "|---|---|"
	for _, how := range methods()[1:] {
		fmt.Fprintf(r, " %s |", how.name)
		line += "---|"
	}
	fmt.Fprintln(r, "\n"+line)
	for _, p := range points {
		fmt.Fprintf(r, "| %s | %s |", chart.Number(p.far), times(p.ratio))
		for _, how := range methods()[1:] {
			fmt.Fprintf(r, " %s |", whole(gain(p.base, p.own[how.name])))
		}
		fmt.Fprintln(r)
	}
}
