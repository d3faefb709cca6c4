package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/testnet/sim"
)

// burstResult is what a hundred jobs at a hundred nodes took.
type burstResult struct {
	mode              string
	workers           int
	jobs, done        int
	median, most, all time.Duration // until a job starts; until all have ended
	ideal             time.Duration // if no slot were ever idle
	messages, answers float64       // per job
	highest           int           // messages of one job
	busiest           int           // copies and answers of all jobs in the busiest second
}

const (
	burstNodes   = 100
	burstRuntime = 10 * time.Second
)

// burst submits one job at each of a hundred nodes within a second.
func burst(workers int, mode string, o options) (burstResult, error) {
	b := burstResult{mode: mode, workers: workers}
	starts := []time.Duration{}
	for seed := range max(3, o.seeds) {
		w := newNetwork(burstNodes, 6, uint64(seed)+1, burstNodes <= o.settled)
		ov := w.overlay(0)
		g := sim.NewGrid(sim.GridConfig{Overlay: ov, Graph: w.graph, Seed: w.seed, Fate: sim.Lasting(time.Millisecond, burstRuntime)})
		rnd := rand.New(rand.NewPCG(w.seed, 0xb0))
		ids := make([]jobs.ID, burstNodes)
		var failed error
		for i := range ids {
			ov.Schedule(time.Duration(rnd.Int64N(int64(time.Second))), func() {
				id, err := g.Submit(i, jobs.Spec{Args: []string{"prog"}, Min: workers, Max: workers, Slots: 1, Search: jobs.Search{Mode: mode}})
				if err != nil {
					failed = err
				}
				ids[i] = id
			})
		}
		ended := func() bool {
			for i, id := range ids {
				if id == "" || !g.Jobs(i).State(id).Final() {
					return false
				}
			}
			return true
		}
		sent := 0
		for ov.Elapsed() < limit && (ov.Elapsed() < time.Second || !ended()) {
			g.Pass(time.Second)
			all := 0
			for _, id := range ids {
				c := g.Cost(id)
				all += c.Sum.Messages + c.Answers
			}
			b.busiest, sent = max(b.busiest, all-sent), all
		}
		if failed != nil {
			return b, failed
		}
		b.all = max(b.all, ov.Elapsed())
		for i, id := range ids {
			st, _ := g.Jobs(i).Status(id)
			b.jobs++
			if st.State != jobs.Completed {
				fmt.Printf("failed: seed %d, node %d: %s: %s\n", w.seed, i, st.State, st.Reason)
				continue
			}
			b.done++
			starts = append(starts, st.Started.Sub(st.Submitted))
			c := g.Cost(id)
			b.messages += float64(c.Sum.Messages)
			b.answers += float64(c.Answers)
			b.highest = max(b.highest, c.Sum.Messages)
		}
	}
	b.ideal = time.Duration((burstNodes*workers+burstNodes*slots-1)/(burstNodes*slots)) * burstRuntime
	if len(starts) > 0 {
		slices.Sort(starts)
		b.median, b.most = starts[len(starts)/2], starts[len(starts)-1]
		b.messages /= float64(len(starts))
		b.answers /= float64(len(starts))
	}
	return b, nil
}

const burstHeader = "a hundred jobs at a hundred nodes in the same second, of workers that run for 10 s on 200 slots\n" +
	"search    workers  ended    start: median  last     all ended (ideal)   messages a job (most)  answers a job  packets a node in the busiest second"

func (b burstResult) String() string {
	return fmt.Sprintf("%-9s %7d  %3d/%-3d  %10.2f s  %6.2f s  %8.1f s (%.0f s)  %10.0f (%d) %15.0f %20.0f",
		b.mode, b.workers, b.done, b.jobs, b.median.Seconds(), b.most.Seconds(), b.all.Seconds(),
		b.ideal.Seconds(), b.messages, b.highest, b.answers, float64(b.busiest)/burstNodes)
}
