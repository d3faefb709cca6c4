package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"zorilla/testnet/chart"
)

// name is what a table calls the patience of a job.
func name(patience time.Duration) string {
	if patience == 0 {
		return "-"
	}
	return patience.String()
}

// span is the smallest and the largest of some times in seconds, and how many there are of those that
// could have been.
func span(list []float64, of int) string {
	list = slices.DeleteFunc(slices.Clone(list), func(v float64) bool { return v == 0 })
	if len(list) == 0 {
		return "never"
	}
	text := fmt.Sprintf("%.1f to %.1f s", slices.Min(list), slices.Max(list))
	if len(list) < of {
		text += fmt.Sprintf(" (%d of %d)", len(list), of)
	}
	return text
}

// report prints what was found in the lab.
func (f *found) report(r *chart.Results) {
	fmt.Fprint(r, "Twelve real nodes at six sites: seconds after it was done, shortest and longest.\n\n")
	w := tabwriter.NewWriter(r, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "a node is\t--lost-after\tsuspected\tdead\tnamed by the job\tits rank is lost\truns elsewhere")
	type kind struct {
		deed     string
		patience time.Duration
	}
	var kinds []kind
	for _, t := range f.Trials {
		if k := (kind{t.Deed, t.Patience}); !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	for _, k := range kinds {
		columns := make([][]float64, 5)
		of := 0
		for _, t := range f.Trials {
			if t.Deed == k.deed && t.Patience == k.patience {
				of++
				for i, v := range []float64{t.Suspected, t.Dead, t.Silent, t.Lost, t.Again} {
					columns[i] = append(columns[i], v)
				}
			}
		}
		cells := []string{k.deed, name(k.patience)}
		for _, c := range columns {
			cells = append(cells, span(c, of))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush() // like any print
	if f.Calm > 0 {
		fmt.Fprintf(r, "\n%v beside %d busy loops, three jobs with --lost-after 2s, %d ranks: %d were lost; "+
			"nodes were paused, or too busy to run, for a second %d times.\n", f.Calm, f.Busy, f.Ranks, f.Alarms, f.Paused)
	}
	fmt.Fprintf(r, "Load of the machine before and after: %s; %s.\n\n", f.Before, f.Load)
}
