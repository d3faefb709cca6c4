package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"zorilla/testnet/chart"
	"zorilla/testnet/sim"
)

// point sums up the jobs of one size, with one search, of one kind of nodes.
type point struct {
	kind, mode string
	workers    int
	ratio      float64 // mean round trip of the workers over the least possible
	clear      float64 // the same without differences that noise within a site can hide
	start      float64 // ms, the mean
	messages   float64 // the mean
	reached    float64 // the mean
}

func summarize(samples []sample) []point {
	var list []point
	for _, kind := range []string{whole, simulated, relinked} {
		for _, mode := range modes {
			for _, n := range sizes {
				p := point{kind: kind, mode: mode, workers: n}
				var mean, least, told, jobs float64
				for _, s := range samples {
					if s.kind != kind || s.mode != mode || s.workers != n {
						continue
					}
					jobs++
					_, clear := sim.Excess(s.chosen, s.best)
					b := sum(s.best)
					mean, least, told = mean+sum(s.chosen), least+b, told+clear*b
					p.start += millis(s.start)
					p.messages += float64(s.messages)
					p.reached += float64(s.reached)
				}
				if jobs == 0 {
					continue
				}
				p.start, p.messages, p.reached = p.start/jobs, p.messages/jobs, p.reached/jobs
				p.ratio, p.clear = 1, 1
				if least > 0 {
					p.ratio, p.clear = mean/least, told/least
				}
				list = append(list, p)
			}
		}
	}
	return list
}

func sum(list []time.Duration) (s float64) {
	for _, d := range list {
		s += float64(d)
	}
	return s
}

// measures are what is compared. Differences up to a step do not count: a start
// is compared as finely as round trips within a site differ.
var measures = []struct {
	name, file, axis string
	step             float64
	of               func(point) float64
}{
	{"mean RTT / ideal", "rtt.png", "mean RTT of the workers / least possible", 0, func(p point) float64 { return p.ratio }},
	{"start", "start.png", "ms until all workers run, on average", 0.2, func(p point) float64 { return p.start }},
	{"messages", "messages.png", "copies of floods per job", 0, func(p point) float64 { return p.messages }},
}

// deviation returns by how much a kind of simulated nodes is off at most, and on
// average, relative to the whole nodes, and where.
func deviation(points []point, kind, mode string, step float64, of func(point) float64) (most, mean float64, at int) {
	n := 0.0
	for _, w := range points {
		for _, s := range points {
			if w.kind == whole && s.kind == kind && w.mode == mode && s.mode == mode && w.workers == s.workers && of(w) > 0 {
				n++
				if math.Abs(of(s)-of(w)) <= step {
					continue
				}
				d := of(s)/of(w) - 1
				mean += math.Abs(d)
				if math.Abs(d) > math.Abs(most) {
					most, at = d, w.workers
				}
			}
		}
	}
	return most, mean / max(1, n), at
}

func printSeries(w io.Writer, points []point) {
	fmt.Fprintln(w, "\nseries: the same jobs on whole nodes and in the simulator (RTT clear: differences of less than 0.2 ms do not count)")
	fmt.Fprintln(w, "nodes        search    workers  RTT/ideal   clear  start ms  messages  reached")
	for _, p := range points {
		fmt.Fprintf(w, "%-12s %-9s %7d  %9.3f  %6.3f  %8.1f  %8.0f  %7.0f\n", p.kind, p.mode, p.workers, p.ratio, p.clear, p.start, p.messages, p.reached)
	}
	fmt.Fprintln(w, "\nhow far the simulator is off, with links of its own and with those of the whole nodes")
	for _, m := range measures {
		for _, mode := range modes {
			for _, kind := range []string{simulated, relinked} {
				most, mean, at := deviation(points, kind, mode, m.step, m.of)
				fmt.Fprintf(w, "%-16s  %-9s search  %-10s  %+6.1f %% at most, for %d workers; %.1f %% on average\n", m.name, mode, kind, 100*most, at, 100*mean)
			}
		}
	}
}

// keep keeps the tables and draws the figures.
func keep(w *chart.Results, launches []launch, points []point) {
	var rows [][]any
	for _, l := range launches {
		rows = append(rows, []any{l.mode, l.least, l.most, l.started.Seconds(), l.full.Seconds(), l.rounds, l.reached,
			l.messages, l.counted, l.lost, l.replaced, l.recovered.Seconds(), l.done.Seconds(), l.outputs})
	}
	w.CSV("launch.csv", []string{"search", "min", "max", "start_s", "full_s", "floods", "reached",
		"messages", "counted", "lost", "replaced", "recovered_s", "done_s", "outputs"}, rows)
	rows = nil
	for _, p := range points {
		rows = append(rows, []any{p.kind, p.mode, p.workers, p.ratio, p.clear, p.start, p.messages, p.reached})
	}
	w.CSV("series.csv", []string{"nodes", "search", "workers", "rtt_ratio", "rtt_ratio_clear", "start_ms", "messages", "reached"}, rows)
	for _, m := range measures {
		fig := chart.Figure{Title: "The same jobs on whole nodes and in the simulator", X: "workers",
			Y: m.axis, LogX: true, LogY: m.file != "rtt.png", LegendLeft: m.file != "rtt.png"}
		for _, mode := range modes {
			for _, kind := range []string{whole, simulated} {
				s := chart.Series{Name: kind + ", " + mode + " search", Points: true, Dashed: kind == simulated}
				fig.Series = append(fig.Series, chart.Line(s, points, func(p point) (x, y float64, ok bool) {
					return float64(p.workers), max(m.of(p), 1e-3), p.kind == kind && p.mode == mode
				}))
			}
		}
		w.PNG(m.file, fig)
	}
}
