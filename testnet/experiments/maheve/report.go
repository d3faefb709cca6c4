package main

import (
	"fmt"
	"math"
	"slices"

	"zorilla/testnet/chart"
)

// reportInputs prints what the simulation was told.
func reportInputs(r *chart.Results, o *options, m *measured) {
	m.report(r)
	fmt.Fprintf(r, "\n%d architectures of each hd, %d runs on each. Times are medians in seconds (first to third quartile).\n", o.shapes, o.seeds)
	fmt.Fprintln(r, "A gain is how much less time than the default's median; in brackets the first to third quartile of runs,")
	fmt.Fprintln(r, "each against the default on the same architecture, graph and failures.")
	fmt.Fprintln(r, "A run that does not converge, for want of free nodes or within an hour, counts as longer than all others.")
}

// reportSummary prints the gains alone, which the README has, too.
func reportSummary(r *chart.Results, all []result) {
	fmt.Fprintln(r, "\nGains of medians over the default in percent, the paper's in brackets,\n"+
		"and how many times as long as without failures the default takes:")
	fmt.Fprint(r, "\n| hd | failures |")
	line := "|---|---|"
	for _, how := range methods()[1:] {
		fmt.Fprintf(r, " %s |", how.name)
		line += "---|"
	}
	fmt.Fprintln(r, " the default |\n"+line+"---|")
	for _, k := range kinds() {
		calm := median(pick(all, k.hd, byDefault, never))
		for i, failing := range []failures{never, paced, atRandom} {
			base := median(pick(all, k.hd, byDefault, failing))
			fmt.Fprintf(r, "| %.2f | %s |", k.hd, failing)
			for _, how := range methods()[1:] {
				text := whole(gain(base, median(pick(all, k.hd, how.name, failing))))
				if failing != atRandom && k.gain(how.name, i) != "" {
					text += " (" + k.gain(how.name, i) + ")"
				}
				fmt.Fprintf(r, " %s |", text)
			}
			ratio := times(base / calm)
			if failing == paced {
				ratio += fmt.Sprintf(" (%.2f)", k.paper[byDefault][1]/k.paper[byDefault][0])
			}
			fmt.Fprintf(r, " %s |\n", ratio)
		}
	}
}

// reportTable prints table 1 beside what is found here.
func reportTable(r *chart.Results, all []result) {
	for _, k := range kinds() {
		fmt.Fprintf(r, "\nhd = %.2f: %d nodes in %d clusters at %d sites\n\n", k.hd, k.nodes, k.clusters, k.sites)
		fmt.Fprint(r, "| method | no failures, s | gain, % | paper's | two every 20 s, s | gain, % | paper's | of them far | not converged |")
		fmt.Fprintln(r, " at random, s | gain, % | not converged |\n|---|---|---|---|---|---|---|---|---|---|---|---|")
		for _, how := range methods() {
			ff, wf, random := pick(all, k.hd, how.name, never), pick(all, k.hd, how.name, paced), pick(all, k.hd, how.name, atRandom)
			failed, far := 0.0, 0.0
			for _, w := range wf {
				failed, far = failed+float64(w.failed)/float64(len(wf)), far+float64(w.far)/float64(len(wf))
			}
			fmt.Fprintf(r, "| %s | %s | %s | %s | %s | %s | %s | %.1f of %.1f | %s | %s | %s | %s |\n", how.name,
				span(ff), gainText(pick(all, k.hd, byDefault, never), ff), k.gain(how.name, 0),
				span(wf), gainText(pick(all, k.hd, byDefault, paced), wf), k.gain(how.name, 1), far, failed, lost(wf),
				span(random), gainText(pick(all, k.hd, byDefault, atRandom), random), lost(random))
		}
		base := median(pick(all, k.hd, byDefault, never))
		paper := k.paper[byDefault]
		fmt.Fprintf(r, "\nThe default with failures by without: %s, at random %s; in the paper %.2f.\n", times(median(pick(all, k.hd, byDefault, paced))/base),
			times(median(pick(all, k.hd, byDefault, atRandom))/base), paper[1]/paper[0])
		fmt.Fprintf(r, "Fastest without failures: %s; with two every 20 s: %s; at random: %s.\n",
			fastest(all, k.hd, never), fastest(all, k.hd, paced), fastest(all, k.hd, atRandom))
	}
}

// lost is how many runs did not converge.
func lost(list []result) string {
	n := 0
	for _, x := range list {
		if math.IsInf(x.seconds, 1) {
			n++
		}
	}
	return fmt.Sprintf("%d of %d", n, len(list))
}

// gain is that of the paper, if it has the method: in percent of the seconds that it prints.
func (k *kind) gain(method string, failing int) string {
	own, ok := k.paper[method]
	if !ok || method == byDefault {
		return ""
	}
	return fmt.Sprintf("%.0f", 100*(1-own[failing]/k.paper[byDefault][failing]))
}

// fastest names the method of the shortest median.
func fastest(all []result, hd float64, failing failures) string {
	best, least := "none", math.Inf(1)
	for _, how := range methods() {
		if t := median(pick(all, hd, how.name, failing)); t < least {
			best, least = how.name, t
		}
	}
	return best
}

// pick returns the runs of a kind, in the order of architectures and seeds.
func pick(all []result, hd float64, method string, failing failures) (list []result) {
	for _, x := range all {
		if x.hd == hd && x.method == method && x.failures == failing {
			list = append(list, x)
		}
	}
	return list
}

func sortedSeconds(list []result) (seconds []float64) {
	for _, x := range list {
		seconds = append(seconds, x.seconds)
	}
	slices.Sort(seconds)
	return seconds
}

// quantile is the least of sorted numbers that so much of them do not exceed; +Inf are fine.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func median(list []result) float64 { return quantile(sortedSeconds(list), 0.5) }

func span(list []result) string {
	s := sortedSeconds(list)
	return fmt.Sprintf("%s (%s to %s)", whole(quantile(s, 0.5)), whole(quantile(s, 0.25)), whole(quantile(s, 0.75)))
}

func whole(v float64) string {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.0f", math.Round(v)+0) // without the sign of -0
}

func times(v float64) string {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

// gain is that of the medians, in percent: 100 if only the base did not converge, -Inf if only the other did
// not, NaN if neither did.
func gain(base, own float64) float64 { return 100 * (1 - own/base) }

// gainText is the gain of the medians, and quartiles of those of single runs.
func gainText(base, own []result) string {
	if len(own) == 0 || own[0].method == byDefault {
		return ""
	}
	var pairs []float64
	for i := range own {
		if g := gain(base[i].seconds, own[i].seconds); !math.IsNaN(g) {
			pairs = append(pairs, g)
		}
	}
	slices.Sort(pairs)
	return fmt.Sprintf("**%s** (%s to %s)", whole(gain(median(base), median(own))), whole(quantile(pairs, 0.25)), whole(quantile(pairs, 0.75)))
}

// keep writes all runs.
func keep(r *chart.Results, all []result) {
	var rows [][]any
	for _, x := range all {
		rows = append(rows, []any{x.hd, x.shape, x.seed, x.method, x.failures, x.seconds, x.failed, x.far})
	}
	r.CSV("maheve.csv", []string{"hd", "architecture", "seed", "method", "failures", "seconds", "failed nodes", "far restores"}, rows)
}
