package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"zorilla/testnet/chart"
)

// aim is how many times as long as undisturbed the run with losses and checkpoints may take.
const aim = 1.5

// report prints all runs and their ratios, and keeps them. It returns what is wrong.
func report(r *chart.Results, all []trial, o *options) error {
	var wrong []string
	fmt.Fprintf(r, "async -n %d on %d hosts of %d slots at 3 sites, pause %v, checkpoints every %v, a host killed every %v.\n",
		o.n, 3*o.hosts, o.slots, o.pause, o.checkpoint, o.every)
	fmt.Fprintf(r, "The job takes a node for lost that is silent for %s.\n", lostAfter)
	fmt.Fprintln(r, "\n| run | round | solved | seconds | times undisturbed | losses | ranks lost "+
		"| attempts more | from checkpoints | back after | residual | wrong by |\n"+
		"|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, t := range all {
		solved := "yes"
		if !t.Solved {
			solved = "no, slowest rank in iteration " + fmt.Sprint(t.Iteration)
		}
		fmt.Fprintf(r, "| %s | %d | %s | %.1f | %s | %d | %d | %d | %d | %s | %s | %s |\n",
			t.Kind, t.Round, solved, t.Seconds, chart.Number(math.Round(100*t.times(all))/100), len(t.Kills), t.ranksLost(),
			t.Attempts, t.Resumed, t.back(), small(t.Residual), small(t.Wrong))
		if t.Solved && t.Why != "" || !t.Solved && t.Kind != lostAll {
			wrong = append(wrong, fmt.Sprintf("%s, round %d: %s", t.Kind, t.Round, t.Why))
		}
	}
	fmt.Fprintln(r)
	if !o.quick {
		wrong = append(wrong, verdicts(r, all)...)
	}
	keep(r, all)
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return nil
}

// verdicts prints the aim of each round beside what was measured, and returns which were missed.
func verdicts(r *chart.Results, all []trial) (missed []string) {
	for _, t := range all {
		if t.Kind != kept {
			continue
		}
		verdict := "met"
		times := t.times(all)
		if !(t.Solved && t.Why == "" && times <= aim) {
			verdict = "missed"
			missed = append(missed, fmt.Sprintf("round %d: %.2f times the undisturbed run, aim %.1f", t.Round, times, aim))
		}
		fmt.Fprintf(r, "Round %d, aim: solved, in at most %.1f times the undisturbed run: %.2f times with checkpoints, %s", t.Round, aim, times, verdict)
		if i := slices.IndexFunc(all, func(x trial) bool { return x.Kind == lostAll && x.Round == t.Round }); i >= 0 {
			end := "solved"
			if !all[i].Solved {
				end = "then given up"
			}
			fmt.Fprintf(r, "; without %.2f times, %s", all[i].times(all), end)
		}
		fmt.Fprintln(r, ".")
	}
	return missed
}

// times is how many times as long a run took as the undisturbed one of its round, NaN if that is not known.
func (t *trial) times(all []trial) float64 {
	i := slices.IndexFunc(all, func(x trial) bool { return x.Kind == undisturbed && x.Round == t.Round && x.Solved })
	if i < 0 {
		return math.NaN()
	}
	return t.Seconds / all[i].Seconds
}

// ranksLost is how many ranks the hosts had that died.
func (t *trial) ranksLost() (n int) {
	for _, k := range t.Kills {
		n += len(k.Ranks)
	}
	return n
}

// back is how long ranks were away: the median in seconds, with the least and the most.
func (t *trial) back() string {
	var list []float64
	for _, k := range t.Kills {
		for _, l := range k.Ranks {
			if l.Back > 0 {
				list = append(list, l.Back)
			}
		}
	}
	if len(list) == 0 {
		return "-"
	}
	slices.Sort(list)
	return fmt.Sprintf("%.1f s (%.1f to %.1f)", list[len(list)/2], list[0], list[len(list)-1])
}

// small writes a small number, and none for a solution that there is not.
func small(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1e", v)
}

// keep writes all runs, and all losses.
func keep(r *chart.Results, all []trial) {
	var runs, losses [][]any
	for _, t := range all {
		runs = append(runs, []any{t.Kind, t.Round, t.Seed, t.Solved, t.Seconds, t.Done, len(t.Kills), t.ranksLost(), t.Attempts, t.Resumed, t.Iteration,
			small(t.Residual), small(t.Wrong), t.Why})
		for _, k := range t.Kills {
			ranks, back := "", ""
			for i, l := range k.Ranks {
				if i > 0 {
					ranks, back = ranks+" ", back+" "
				}
				ranks, back = ranks+fmt.Sprint(l.Rank), back+fmt.Sprintf("%.1f", l.Back)
			}
			losses = append(losses, []any{t.Kind, t.Round, k.At, k.Host, k.Successor, ranks, back})
		}
	}
	r.CSV("runs.csv", []string{"run", "round", "seed", "solved", "seconds", "done", "losses", "ranks lost", "attempts more", "from checkpoints", "iteration",
		"residual", "wrong by", "why not"}, runs)
	r.CSV("losses.csv", []string{"run", "round", "seconds", "host", "successor", "ranks", "back after"}, losses)
}
