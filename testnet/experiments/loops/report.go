package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"zorilla/testnet/chart"
)

// mostTold is of how many jobs that were not as they must be all is told.
const mostTold = 12

// report prints what each user got, keeps all jobs, and returns what is not as it must be.
func report(r *chart.Results, parts []part, all []job) error {
	for _, p := range parts {
		fmt.Fprintf(r, "%s: %s; jobs of %d.\n\n", p.plan, p.title, p.workers)
		fmt.Fprintln(r, "| user at | jobs | workers at the own node | at the own site "+
			"| jobs that passed over idle slots of their node | started again | start: median, ms | worst |\n"+
			"|---|---|---|---|---|---|---|---|")
		for _, user := range append(slices.Clone(p.users), "") {
			t := sum(all, p.plan, user)
			if user == "" {
				user = "all"
			}
			median, worst := spread(t.starts)
			fmt.Fprintf(r, "| %s | %d | %s | %s | %d | %d | %s | %s |\n", user, t.jobs, share(t.here, t.workers), share(t.home, t.workers),
				t.passedOver, t.repeated, chart.Number(median), chart.Number(worst))
		}
		fmt.Fprintln(r)
	}
	var rows [][]any
	told := 0
	for i := range all {
		j := &all[i]
		passed := passedOver(j, all)
		if (j.Failed != "" || passed > 0) && told < mostTold {
			told++
			if j.Failed != "" {
				fmt.Fprintf(r, "Failed: %s at %s: %s\n", j.ID, j.User, j.Failed)
			}
			if passed > 0 {
				fmt.Fprintf(r, "Passed over %d slots of %s: %s ran at %s: %s\n", passed, j.User, j.ID.Short(), j.hosts(), j.Told)
			}
		}
		rows = append(rows,
			[]any{j.Part, j.User, j.Submitted.UTC().Format("15:04:05.000"), ms(j.Started.Sub(j.Submitted)), j.hosts(), passed, j.Attempts, j.Failed})
	}
	r.CSV("loops.csv", []string{"network", "user", "submitted", "start ms", "hosts", "passed over", "attempts", "failed"}, rows)
	err := check(parts, all)
	if err == nil {
		fmt.Fprintf(r,
			"All as it must be: at least %.0f %% of the workers of the three users at the own site, and no job passed over an idle slot of its own node.\n",
			100*wantHome)
	}
	return err
}

// hosts lists where the workers were.
func (j *job) hosts() string {
	var list []string
	for _, w := range j.Workers {
		list = append(list, w.Host)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func ms(d time.Duration) float64 { return math.Round(10*d.Seconds()*1000) / 10 }

// share writes a part of a number in percent.
func share(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

// spread returns the middle and the longest of some times, in ms; NaN of none.
func spread(list []time.Duration) (median, worst float64) {
	if len(list) == 0 {
		return math.NaN(), math.NaN()
	}
	list = slices.Sorted(slices.Values(list))
	return ms((list[(len(list)-1)/2] + list[len(list)/2]) / 2), ms(list[len(list)-1])
}
