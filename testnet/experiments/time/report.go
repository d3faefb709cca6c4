package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"zorilla/testnet/chart"
)

// row is gangs that differ in their seeds alone.
type row struct {
	shape
	policy policy
	seeds  int
}

func header(w io.Writer) {
	fmt.Fprintf(w, "A gang of %.0f %% of the slots, W = %v; as many small jobs as a fifth of the slots always wait.\n", 100*gangShare, longest)
	fmt.Fprint(w, "Targets: wait at most 1.00 W, idle at most 0.30 of all slots x W at 1.5 x\n\n")
	fmt.Fprintln(w, "promised  nodes x slots  walltimes  started   wait/W median, worst   idle median, worst   start - first promise, - last one, at worst")
}

func (r *row) report(w io.Writer, list []gang) {
	var waits, idle []float64
	var first, last time.Duration
	started := 0
	for i := range list {
		g := &list[i]
		if g.started {
			started++
		}
		waits, idle = append(waits, float64(g.wait)/float64(longest)), append(idle, g.idle)
		f, l := g.late()
		if i == 0 {
			first, last = f, l
		}
		first, last = max(first, f), max(last, l)
	}
	late := fmt.Sprintf("%v, %v", first.Round(time.Millisecond), last.Round(time.Millisecond))
	if started == 0 {
		late = "-"
	}
	fmt.Fprintf(w, "%-8s  %6d x %d  %8.1f x  %2d of %2d   %10.2f, %.2f %17.2f, %.2f           %s\n", r.policy.name, r.nodes, r.slots, r.factor,
		started, len(list), median(waits), slices.Max(waits), median(idle), slices.Max(idle), late)
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

var gangHeader = []string{
	"promised", "nodes", "slots", "factor", "seed", "started", "wait_w", "idle_w", "free_before", "promised_after_s", "promises", "late_first_s", "late_last_s",
}

func gangRows(all []gang) (rows [][]any) {
	for i := range all {
		g := &all[i]
		first, last := g.late()
		rows = append(rows, []any{g.policy.name, g.shape.nodes, g.shape.slots, g.shape.factor, g.seed, g.started, float64(g.wait) / float64(longest), g.idle,
			g.idleThen, g.searched.Seconds(), len(g.promised), first.Seconds(), last.Seconds()})
	}
	return rows
}

// figure draws for each kind of walltimes what gangs have waited for, shortest first.
func figure(all []gang) chart.Figure {
	f := chart.Figure{Title: "Gangs of 90 of 100 slots that small jobs fill, start promised at once", X: "gangs, in order", Y: "wait / W", LegendLeft: true}
	for _, factor := range []float64{1, 1.5, 3} {
		s := chart.Series{Name: fmt.Sprintf("walltimes of small jobs %.1f x their length", factor), Points: true}
		for i := range all {
			if g := &all[i]; g.policy.name == atOnce.name && g.shape.slots == 1 && g.shape.factor == factor {
				s.X, s.Y = append(s.X, float64(len(s.X)+1)), append(s.Y, float64(g.wait)/float64(longest))
			}
		}
		slices.Sort(s.Y)
		f.Series = append(f.Series, s)
	}
	return f
}

// behind is by how much a makespan may be longer than another one before it counts: searches take a moment.
const behind = 0.01

func reportSeries(w io.Writer, islands bool, list []series) {
	kind := "gangs anywhere"
	if islands {
		kind = "islands in clusters"
	}
	fmt.Fprintf(w, "\nSeries of %d runs, %s, on clusters of %v slots, in makespans of the shortest possible. Targets: ours at most 1.10, never behind EASY\n",
		runsOfSeries, kind, clusters)
	after := 0
	for _, s := range list {
		if s.our > s.easy*(1+behind) {
			after++
		}
	}
	for _, c := range []struct {
		name string
		of   func(*series) float64
	}{
		{"first come, first served", func(s *series) float64 { return s.inOrder }},
		{"EASY backfilling", func(s *series) float64 { return s.easy }},
		{"ours, promised at once", func(s *series) float64 { return s.our }},
	} {
		var ratios []float64
		sum, within := 0.0, 0
		for i := range list {
			r := c.of(&list[i]) / list[i].optimum
			if ratios, sum = append(ratios, r), sum+r; r <= 1.10 {
				within++
			}
		}
		fmt.Fprintf(w, "%-25s median %.3f, mean %.3f, worst %.3f; %d of %d at most 1.10\n", c.name, median(ratios), sum/float64(len(list)), slices.Max(ratios),
			within, len(list))
	}
	fmt.Fprintf(w, "ours is behind EASY in %d of %d\n", after, len(list))
}

var seriesHeader = []string{"islands", "seed", "runs", "fcfs_min", "easy_min", "optimum_min", "ours_min"}

func seriesRows(all []series) (rows [][]any) {
	for _, s := range all {
		text := ""
		for _, r := range s.runs {
			text += fmt.Sprintf("%dx%d:%d ", r.islands, r.size, r.length)
		}
		rows = append(rows, []any{s.islands, s.seed, text[:len(text)-1], s.inOrder, s.easy, s.optimum, s.our})
	}
	return rows
}
