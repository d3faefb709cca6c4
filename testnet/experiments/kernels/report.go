package main

import (
	"fmt"
	"math"
	"slices"

	"zorilla/testnet/chart"
)

// report prints the medians, and keeps a figure for each kernel and all runs.
func report(r *chart.Results, all []trial, rounds int) {
	for _, k := range kernels {
		fmt.Fprintf(r, "%s: median of what the program says it took, in ms, of %d runs (smallest to largest), "+
			"and how many times as long it took at six sites as in one room.\n\n",
			k.title, rounds)
		fmt.Fprintln(r,
			"| processes | strategy | hosts | sites | six sites | "+
				"one room | times | run at six sites, with its start |\n"+
				"|---|---|---|---|---|---|---|---|")
		for _, n := range sizes {
			for _, s := range strategies {
				far, near := pick(all, plans[0].name, k.name, s, n), pick(all, plans[1].name, k.name, s, n)
				hosts, sites := where(far)
				fmt.Fprintf(r, "| %d | %s | %s | %s | %s | %s | %s | %s |\n", n, s, hosts, sites, span(far), span(near),
					chart.Number(math.Round(middle(far)/middle(near)*100)/100), cell(median(far, func(t trial) float64 { return t.Wall })))
			}
		}
		fmt.Fprintln(r)
		r.PNG(k.name+".png", figure(all, k))
	}
	var rows [][]any
	failed := 0
	for _, t := range all {
		rows = append(rows, []any{t.Plan, t.Kernel, t.Strategy, t.Size, t.Round, t.Hosts, t.Sites, t.Seconds, t.Wall, t.Failed})
		if t.Failed != "" {
			failed++
			fmt.Fprintf(r, "Failed: %s, %s of %d by %s: %s\n", t.Plan, t.Kernel, t.Size, t.Strategy, t.Failed)
		}
	}
	r.CSV("kernels.csv", []string{"network", "kernel", "strategy", "processes", "round", "hosts", "sites", "seconds", "wall", "failed"}, rows)
	fmt.Fprintf(r, "%d of %d runs failed.\n", failed, len(all))
}

// pick returns the runs of one kind that have a time.
func pick(all []trial, plan, kernel, strategy string, size int) (some []trial) {
	for _, t := range all {
		if t.Plan == plan && t.Kernel == kernel && t.Strategy == strategy && t.Size == size && t.Failed == "" {
			some = append(some, t)
		}
	}
	return some
}

// median returns the middle one of some runs' values, NaN of none.
func median(some []trial, of func(trial) float64) float64 {
	var list []float64
	for _, t := range some {
		list = append(list, of(t))
	}
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

func middle(some []trial) float64 {
	return median(some, func(t trial) float64 { return t.Seconds })
}

// cell writes seconds as ms.
func cell(seconds float64) string { return chart.Number(math.Round(1000 * seconds)) }

func span(some []trial) string {
	if len(some) == 0 {
		return "-"
	}
	bySeconds := func(a, b trial) int {
		if a.Seconds < b.Seconds {
			return -1
		}
		return 1
	}
	return fmt.Sprintf("%s (%s to %s)", cell(middle(some)), cell(slices.MinFunc(some, bySeconds).Seconds), cell(slices.MaxFunc(some, bySeconds).Seconds))
}

// where reports how many hosts and sites the runs had, which may differ.
func where(some []trial) (hosts, sites string) {
	tell := func(of func(trial) int) string {
		least, most := math.MaxInt, 0
		for _, t := range some {
			least, most = min(least, of(t)), max(most, of(t))
		}
		switch {
		case most == 0:
			return "-"
		case least < most:
			return fmt.Sprintf("%d to %d", least, most)
		}
		return fmt.Sprint(most)
	}
	return tell(func(t trial) int { return t.Hosts }), tell(func(t trial) int { return t.Sites })
}

// figure is a half of figure 4: the time over the number of processes.
func figure(all []trial, k kernel) chart.Figure {
	f := chart.Figure{Title: k.title + " (dashed: all hosts in one room)", X: "processes", Y: "ms", LegendLeft: true}
	for p, plan := range plans {
		for i, s := range strategies {
			f.Series = append(f.Series, chart.Line(chart.Series{Name: s + ", " + plan.title, Colour: i + 1, Dashed: p == 1, Points: true},
				sizes, func(n int) (x, y float64, ok bool) {
					y = 1000 * middle(pick(all, plan.name, k.name, s, n))
					return float64(n), y, !math.IsNaN(y)
				}))
		}
	}
	return f
}
