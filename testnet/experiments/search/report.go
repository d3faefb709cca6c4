package main

import (
	"fmt"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/testnet/chart"
)

const header = "sites nodes fill workers search    jobs failed | messages   kB  dup%  reached floods answers  repeat " +
	"| start ms  slowest | RTT ms   ratio  clear  worst"

func (r result) String() string {
	return fmt.Sprintf("%5d %5d %-4s %7d %-9s %4d %6d | %8.0f %4.0f %5.0f %8.0f %6.1f %7.0f %7.0f | %8.1f %8.1f | %6.2f %7.3f %6.3f %6.3f",
		r.sites, r.nodes, r.fill, r.workers, r.mode, r.jobs, r.failed, r.messages, r.bytes/1000, 100*r.duplicates, r.reached, r.rounds, r.answers, r.repeat,
		millis(r.time), millis(r.slowest), millis(r.rtt), r.ratio, r.clear, r.worst)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// verdict compares what was measured with the targets.
func verdict(all []result) string {
	var b strings.Builder
	for _, mode := range []string{jobs.SearchPaper, jobs.SearchAdaptive} {
		idle, full, n := 0.0, 0.0, 0
		eight := map[int]float64{}
		for _, r := range all {
			if r.mode != mode {
				continue
			}
			n++
			switch r.fill {
			case "idle":
				idle = max(idle, r.clear)
			case "80":
				full = max(full, r.clear)
			}
			if r.fill == "idle" && r.workers == 8 && r.sites == 6 {
				eight[r.nodes] = r.messages
			}
		}
		if n == 0 {
			continue
		}
		fmt.Fprintf(&b, "%-9s mean RTT over the oracle's, the worst kind of job: idle %s (target 1.02), 80 %% full %s (target 1.10);",
			mode, chart.Number(idle), chart.Number(full))
		fmt.Fprintf(&b, " messages of an 8-worker job, idle, 6 sites, by nodes: %v (target: no more at 10000 than at 100)\n", eight)
	}
	return b.String()
}

// keep keeps the tables and figures.
func keep(w *chart.Results, all []result, bursts []burstResult) {
	var rows [][]any
	for _, r := range all {
		rows = append(rows, []any{r.sites, r.nodes, r.fill, r.workers, r.mode, r.jobs, r.failed,
			r.messages, r.bytes, r.duplicates, r.reached, r.rounds, r.answers, r.repeat,
			millis(r.time), millis(r.slowest), millis(r.rtt), r.ratio, r.clear, r.worst})
	}
	w.CSV("search.csv", strings.Fields("sites nodes fill workers search jobs failed messages bytes duplicates reached floods answers repeat "+
		"start_ms slowest_ms rtt_ms ratio clear worst"), rows)
	rows = nil
	for _, b := range bursts {
		rows = append(rows, []any{b.mode, b.workers, b.jobs, b.done, b.median.Seconds(), b.most.Seconds(), b.all.Seconds(), b.ideal.Seconds(),
			b.messages, b.highest, b.answers, float64(b.busiest) / burstNodes})
	}
	w.CSV("burst.csv", strings.Fields("search workers jobs ended median_s last_s all_s ideal_s messages most answers busiest_second_per_node"), rows)
	w.PNG("messages.png", growth(all, "idle", "messages", "messages per job, idle, 6 sites", func(r result) float64 { return r.messages }))
	w.PNG("start.png",
		growth(all, "80", "start, ms", "time until all workers of a job run, 80 % full, 6 sites", func(r result) float64 { return millis(r.time) }))
}

// growth draws a quantity over the number of nodes, a line for each size of
// job: full for the adaptive search, dashed for the paper's.
func growth(all []result, fill, axis, title string, of func(result) float64) chart.Figure {
	f := chart.Figure{Title: title, X: "nodes", Y: axis, LogX: true, LogY: true}
	for _, mode := range []string{jobs.SearchAdaptive, jobs.SearchPaper} {
		for _, w := range []int{1, 8, 64, 512} {
			s := chart.Series{Name: fmt.Sprintf("%d workers, %s", w, mode), Dashed: mode == jobs.SearchPaper, Points: true}
			f.Series = append(f.Series, chart.Line(s, all, func(r result) (x, y float64, ok bool) {
				return float64(r.nodes), of(r), r.sites == 6 && r.fill == fill && r.mode == mode && r.workers == w && r.failed < r.jobs
			}))
		}
	}
	return f
}
