package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/testnet"
	"zorilla/testnet/sim"
)

// Kinds of nodes that run the series.
const (
	whole     = "whole nodes"
	simulated = "simulator"  // with the links that its own vicinity cores have made
	relinked  = "same links" // the simulator with the links of the whole nodes
)

const (
	workerLength = time.Second // of each worker of the series
	pauseLength  = time.Second // between two jobs, until all slots are free again
	seriesLimit  = 10 * time.Minute
	simulations  = 5
)

// sizes of the jobs in the series.
var sizes = []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}

// trial is one job of the series.
type trial struct {
	workers, origin int
	mode            string
}

// plan lists the jobs: the same for the whole nodes and for the simulator.
func plan(o options) []trial {
	rnd := rand.New(rand.NewPCG(o.seed, 0x5e12e5))
	var list []trial
	for _, n := range sizes {
		if n > slots*o.nodes {
			break
		}
		for range o.origins {
			origin := rnd.IntN(o.nodes)
			for _, mode := range modes {
				list = append(list, trial{n, origin, mode})
			}
		}
	}
	return list
}

func (t trial) spec() jobs.Spec {
	return jobs.Spec{
		Args: []string{"sleep", workerLength.String()}, Min: t.workers, Max: t.workers, Slots: 1,
		Search: jobs.Search{Mode: t.mode},
	}
}

// sample is how one job went.
type sample struct {
	trial
	kind     string
	start    time.Duration // until all workers ran
	messages int           // copies of its floods
	reached  int           // by the last flood
	chosen   []time.Duration
	best     []time.Duration
}

// wholeSeries runs the jobs on whole nodes.
func wholeSeries(nodes *testnet.Nodes, o options) ([]sample, error) {
	var list []sample
	for _, t := range plan(o) {
		s, err := wholeTrial(nodes, t)
		if err != nil {
			return nil, fmt.Errorf("job of %d workers at node %d, %s search: %w", t.workers, t.origin, t.mode, err)
		}
		list = append(list, s)
	}
	return list, nil
}

func wholeTrial(nodes *testnet.Nodes, t trial) (sample, error) {
	s := sample{trial: t, kind: whole}
	ctx, cancel := context.WithTimeout(context.Background(), seriesLimit)
	defer cancel()
	before := nodes.Traffic()
	begun := time.Now()
	id, err := nodes.Submit(ctx, t.origin, t.spec())
	if err != nil {
		return s, err
	}
	st, err := nodes.Await(ctx, t.origin, id, func(st jobs.Status) bool { return st.State == jobs.Running })
	if err != nil {
		return s, err
	}
	s.start = st.Started.Sub(begun)
	for _, w := range st.Workers {
		i, ok := nodes.Index(w.Node)
		if !ok {
			return s, fmt.Errorf("rank %d is nowhere", w.Rank)
		}
		s.chosen = append(s.chosen, nodes.RTT(t.origin, i))
	}
	slices.Sort(s.chosen)
	for _, i := range nodes.Nearest(t.origin, t.workers) {
		s.best = append(s.best, nodes.RTT(t.origin, i))
	}
	if st, err = nodes.Await(ctx, t.origin, id, func(st jobs.Status) bool { return st.State == jobs.Completed }); err != nil {
		return s, err
	}
	if last := len(st.Rounds) - 1; last >= 0 { // else its own node had room
		s.reached = st.Rounds[last].Reached
	}
	time.Sleep(pauseLength)
	s.messages = int(nodes.Traffic().Minus(before).Flood.Count)
	return s, nil
}

// simulatedSeries runs them on bare cores: those of vicinity first, until they
// have found their neighbours, then those of flood and jobs on these. It does so
// for several networks, since that costs little: what is left of chance in the
// comparison is the chance in the one network of whole nodes.
func simulatedSeries(layout sim.Layout, o options) ([]sample, error) {
	var list []sample
	for seed := range uint64(simulations) {
		settled := sim.Settled(sim.OverlayConfig{Layout: layout, Seed: o.seed + seed}, 2*time.Minute)
		more, err := onGrid(simulated, layout, o, seed, func(*sim.Overlay) sim.Graph { return settled })
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// relinkedSeries runs them on cores of flood and jobs with the links of whole
// nodes, so that chance does not make other links.
func relinkedSeries(layout sim.Layout, o options, l links) ([]sample, error) {
	return onGrid(relinked, layout, o, 0, func(ground *sim.Overlay) sim.Graph {
		return sim.Linked(ground, l.neighbours, func(node, other int) bool { return l.measured[node][other] })
	})
}

func onGrid(kind string, layout sim.Layout, o options, seed uint64, graph func(*sim.Overlay) sim.Graph) ([]sample, error) {
	ground := sim.NewOverlay(sim.OverlayConfig{Layout: layout, Seed: o.seed + seed, Idle: true})
	g := sim.NewGrid(sim.GridConfig{
		Overlay: ground, Graph: graph(ground), Seed: o.seed + seed,
		Slots: func(int) int { return slots },
		Fate:  sim.Lasting(time.Microsecond, workerLength), // fake workers of whole nodes take no time either
	})
	var list []sample
	for _, t := range plan(o) {
		s, err := simulatedTrial(ground, g, t)
		if err != nil {
			return nil, fmt.Errorf("simulated job of %d workers at node %d, %s search: %w", t.workers, t.origin, t.mode, err)
		}
		s.kind = kind
		list = append(list, s)
	}
	return list, nil
}

func simulatedTrial(ground *sim.Overlay, g *sim.Grid, t trial) (sample, error) {
	s := sample{trial: t}
	begun := ground.Elapsed()
	id, err := g.Start(t.origin, t.spec(), seriesLimit)
	if err != nil {
		return s, err
	}
	core := g.Jobs(t.origin)
	s.start = ground.Elapsed() - begun
	s.chosen = ground.Distances(t.origin, g.Workers(t.origin, id))
	s.best = ground.Distances(t.origin, ground.Nearest(t.origin, t.workers, func(int) int { return slots }))
	if !g.Run(seriesLimit, func() bool { return core.State(id).Final() }) || core.State(id) != jobs.Completed {
		return s, fmt.Errorf("it is %s", core.State(id))
	}
	g.Pass(pauseLength)
	cost := g.Cost(id)
	s.messages = cost.Sum.Messages
	if last := len(cost.Rounds) - 1; last >= 0 {
		s.reached = cost.Rounds[last].Reached
	}
	return s, nil
}
