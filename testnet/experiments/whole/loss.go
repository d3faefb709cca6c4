package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/testnet"
	"zorilla/testnet/chart"
	"zorilla/testnet/sim"
)

// The part loss: whether jobs get the nearest nodes where packets are lost.
const (
	lossShare = 0.1
	lossCalm  = time.Minute     // from when all know all until the first job
	lossPause = 5 * time.Second // between jobs: offers that got lost hold slots for so long
	lossRatio = 1.03            // target, of all jobs
	lossWorst = 1.3             // target, of one
)

// lossyJobs are the sizes of the jobs.
var lossyJobs = []int{4, 8}

// loss runs jobs one after the other on whole nodes at internet distances, a tenth of whose
// packets is lost.
func loss(w *chart.Results, bubble testnet.Bubble, o options) error {
	state, err := os.MkdirTemp("", "whole")
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)
	var list []sample
	err = bubble(func() error {
		nodes, err := testnet.StartNodes(testnet.NodesConfig{
			Sites: testnet.Internet(o.lossy, o.seed), Slots: slots, Noise: testnet.Noise{Loss: lossShare}, State: state, Seed: o.seed,
		})
		if err != nil {
			return err
		}
		if err = together(nodes); err == nil {
			time.Sleep(lossCalm)
			list, err = lossySeries(nodes, o)
		}
		if stop := nodes.Stop(); err == nil {
			err = stop
		}
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "seed %d: %d nodes at internet distances, %.0f %% of all packets lost, jobs one at a time; "+
		"target: %.2f of the least possible round trips, %.1f for the worst job\n\n",
		o.seed, o.lossy, 100*lossShare, lossRatio, lossWorst)
	header := []string{"workers", "jobs", "ratio", "worst job", "start ms: median", "worst", "copies a job: median", "most"}
	var rows [][]any
	for _, n := range append(slices.Clone(lossyJobs), 0) {
		rows = append(rows, lossyRow(list, n))
	}
	fmt.Fprintf(w, "| %s |\n%s|\n", strings.Join(header, " | "), strings.Repeat("|---", len(header)))
	for _, row := range rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(chart.Cells(row...), " | "))
	}
	w.CSV("loss.csv", header, rows)
	return nil
}

func lossySeries(nodes *testnet.Nodes, o options) (list []sample, err error) {
	rnd := rand.New(rand.NewPCG(o.seed, 0x1055))
	for range 3 * o.origins {
		for _, n := range lossyJobs {
			s, err := wholeTrial(nodes, trial{n, rnd.IntN(nodes.Len()), jobs.SearchAdaptive})
			if err != nil {
				return nil, fmt.Errorf("job of %d workers at node %d: %w", n, s.origin, err)
			}
			list = append(list, s)
			time.Sleep(lossPause)
		}
	}
	return list, nil
}

// ratio is how far away a job ran, over how near it could have.
func (s *sample) ratio() float64 {
	var chosen, best time.Duration
	for _, d := range s.chosen {
		chosen += d
	}
	for _, d := range s.best {
		best += d
	}
	return float64(chosen+sim.Resolution) / float64(best+sim.Resolution)
}

// lossyRow sums up the jobs of one size, or all of them for 0.
func lossyRow(list []sample, workers int) []any {
	var all sample
	var starts []time.Duration
	var copies []int
	worst, name := 0.0, fmt.Sprint(workers)
	for i := range list {
		if s := &list[i]; workers == 0 || s.workers == workers {
			all.chosen, all.best = append(all.chosen, s.chosen...), append(all.best, s.best...)
			starts, copies, worst = append(starts, s.start), append(copies, s.messages), max(worst, s.ratio())
		}
	}
	if workers == 0 {
		name = "all"
	}
	slices.Sort(starts)
	slices.Sort(copies)
	n := len(starts)
	return []any{
		name, n, fmt.Sprintf("%.3f", all.ratio()), fmt.Sprintf("%.2f", worst),
		fmt.Sprintf("%.0f", millis(starts[n/2])), fmt.Sprintf("%.0f", millis(starts[n-1])), copies[n/2], copies[n-1],
	}
}
