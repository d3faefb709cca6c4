package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"zorilla/testnet/chart"
)

// The aims: several sites by one.
const (
	islandAim = 1.10
	bodyAim   = 1.20
)

// report prints the medians and the ratios, and keeps figures and all runs. It returns what is wrong.
func report(r *chart.Results, cases []one, all []trial, quick bool) error {
	wrong := check(cases, all)
	missed := append(reportIslands(r, cases, all), reportBodies(r, cases, all)...)
	keep(r, all)
	repeated := 0
	for _, t := range all {
		for _, why := range t.Failed {
			repeated++
			fmt.Fprintf(r, "Repeated: %s %s of %d: %.200s\n", t.Program, t.Arrangement, t.Size, strings.Join(strings.Fields(why), " "))
		}
	}
	fmt.Fprintf(r, "%d runs, and %d that failed and were repeated. Ranks of %d runs, or their results, were not what they were to be.\n",
		len(all), repeated, len(wrong))
	if !quick {
		wrong = append(wrong, missed...)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return nil
}

// check returns in which runs ranks were at wrong sites, or found something else than others of their
// program and size.
func check(cases []one, all []trial) (wrong []string) {
	results := map[string]string{}
	for _, t := range all {
		name := fmt.Sprintf("%s %s of %d", t.Program, t.Arrangement, t.Size)
		i := slices.IndexFunc(cases, func(c one) bool {
			return c.program == t.Program && c.arrangement == t.Arrangement && c.spec.Max == t.Size
		})
		if why := cases[i].misplaced(t.Sites); why != "" {
			wrong = append(wrong, name+": "+why)
			continue
		}
		kind := fmt.Sprint(t.Program, t.Size)
		if results[kind] = cmp.Or(results[kind], t.Result); results[kind] != t.Result {
			wrong = append(wrong, fmt.Sprintf("%s: found %q, and %q before", name, t.Result, results[kind]))
		}
	}
	return wrong
}

// reportIslands is figure 5. It returns which aims were missed.
func reportIslands(r *chart.Results, cases []one, all []trial) (missed []string) {
	fmt.Fprintf(r, "Islands: median seconds (smallest to largest). Aim: good at most %.2f of single, bad - good about constant.\n\n", islandAim)
	fmt.Fprintln(r, "| processes | good | bad | single | good / single | bad / single | bad - good, ms an iteration |\n|---|---|---|---|---|---|---|")
	for _, n := range sizes(all, "islands") {
		good, bad, single := pick(all, "islands", "good", n), pick(all, "islands", "bad", n), pick(all, "islands", "single", n)
		ratio := middle(good) / middle(single)
		i := slices.IndexFunc(cases, func(c one) bool { return c.program == "islands" && c.spec.Max == n })
		fmt.Fprintf(r, "| %d | %s | %s | %s | %s | %.2f | %.1f |\n", n, span(good), span(bad), span(single), verdict(ratio, islandAim),
			middle(bad)/middle(single), 1000*(middle(bad)-middle(good))/float64(cases[i].iterations))
		if ratio > islandAim {
			missed = append(missed, fmt.Sprintf("islands of %d: good is %.3f of single, aim %.2f", n, ratio, islandAim))
		}
	}
	fmt.Fprintln(r)
	r.PNG("islands.png", figure(all, "islands", "Islands (figure 5)", "good", "bad", "single"))
	return missed
}

// reportBodies is figure 6. It returns which aims were missed.
func reportBodies(r *chart.Results, cases []one, all []trial) (missed []string) {
	fmt.Fprintf(r, "N-body: median seconds (smallest to largest). Aim: several sites at most %.2f of the slowest one, Orsay.\n\n", bodyAim)
	fmt.Fprintln(r, "| processes | at | several sites | slowest alone | ratio |\n|---|---|---|---|---|")
	for _, n := range sizes(all, "nbody") {
		several, alone := pick(all, "nbody", "sites", n), pick(all, "nbody", "slowest", n)
		ratio := middle(several) / middle(alone)
		i := slices.IndexFunc(cases, func(c one) bool { return c.program == "nbody" && c.spec.Max == n })
		fmt.Fprintf(r, "| %d | %s | %s | %s | %s |\n", n, list(cases[i].sites), span(several), span(alone), verdict(ratio, bodyAim))
		if ratio > bodyAim {
			missed = append(missed, fmt.Sprintf("nbody of %d: several sites are %.3f of the slowest, aim %.2f", n, ratio, bodyAim))
		}
	}
	fmt.Fprintln(r)
	r.PNG("nbody.png", figure(all, "nbody", "N-body (figure 6)", "sites", "slowest"))
	return missed
}

// verdict writes a ratio; the third digit shows why 1.104 is more than 1.10.
func verdict(ratio, aim float64) string {
	if ratio > aim {
		return fmt.Sprintf("**%.3f: missed**", ratio)
	}
	return fmt.Sprintf("**%.3f**", ratio)
}

// keep writes all runs.
func keep(r *chart.Results, all []trial) {
	var rows [][]any
	for _, t := range all {
		rows = append(rows, []any{t.Program, t.Arrangement, t.Size, t.Round, t.Seconds, t.Wall, list(t.Sites), len(t.Failed), t.Result})
	}
	r.CSV("topology.csv", []string{"program", "arrangement", "processes", "round", "seconds", "with its start", "sites", "failed before", "result"}, rows)
}

// list writes how many ranks are at each site.
func list(sites []string) string {
	n := count(sites)
	var parts []string
	for _, site := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%d %s", n[site], site))
	}
	return strings.Join(parts, ", ")
}

// sizes lists the sizes of a program's runs.
func sizes(all []trial, program string) (list []int) {
	for _, t := range all {
		if t.Program == program && !slices.Contains(list, t.Size) {
			list = append(list, t.Size)
		}
	}
	slices.Sort(list)
	return list
}

// pick returns the seconds of runs of one kind, in order.
func pick(all []trial, program, arrangement string, size int) (seconds []float64) {
	for _, t := range all {
		if t.Program == program && t.Arrangement == arrangement && t.Size == size {
			seconds = append(seconds, t.Seconds)
		}
	}
	slices.Sort(seconds)
	return seconds
}

// middle is the median of sorted numbers, NaN of none.
func middle(sorted []float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func span(sorted []float64) string {
	if len(sorted) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", middle(sorted), sorted[0], sorted[len(sorted)-1])
}

func figure(all []trial, program, title string, arrangements ...string) chart.Figure {
	f := chart.Figure{Title: title, X: "processes", Y: "s", LegendLeft: true}
	for _, a := range arrangements {
		f.Series = append(f.Series, chart.Line(chart.Series{Name: a, Points: true}, sizes(all, program), func(n int) (x, y float64, ok bool) {
			y = middle(pick(all, program, a, n))
			return float64(n), y, !math.IsNaN(y)
		}))
	}
	return f
}
