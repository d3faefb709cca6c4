package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/testnet/sim"
)

// Three clusters run a series of runs that are submitted one after the other.

const (
	runsOfSeries = 6
	unit         = 5 * time.Minute // lengths of runs are so many of these, up to an hour
	apart        = 10 * time.Millisecond
)

var clusters = []int{8, 6, 4} // slots

// series is how long the runs took, from the first submission to the last end.
type series struct {
	islands                     bool // else each run is one gang, anywhere
	seed                        uint64
	runs                        []run
	inOrder, easy, optimum, our float64 // minutes
}

// ofIslands draws runs of islands in clusters.
func ofIslands(rnd *rand.Rand) (runs []run) {
	for range runsOfSeries {
		r := run{islands: 1 + rnd.IntN(4), size: 1 + rnd.IntN(4)}
		r.length = int(unit.Minutes()) * (1 + rnd.IntN(12))
		runs = append(runs, r)
	}
	return runs
}

// plain draws gangs that may be anywhere.
func plain(rnd *rand.Rand) (runs []run) {
	for range runsOfSeries {
		runs = append(runs, run{islands: 3 + rnd.IntN(13), size: 1, length: int(unit.Minutes()) * (1 + rnd.IntN(12))})
	}
	return runs
}

// compare runs a series, and says what others would make of it.
func compare(islands bool, seed uint64) (series, error) {
	s, rnd := series{islands: islands, seed: seed}, rand.New(rand.NewPCG(seed, 0x5e7))
	on := []int{18}
	if s.runs = plain(rnd); islands {
		s.runs, on = ofIslands(rnd), clusters
	}
	s.inOrder, s.easy, s.optimum = float64(inOrder(on, s.runs)), float64(easy(on, s.runs)), float64(optimal(on, s.runs))
	var err error
	s.our, err = s.play(rnd)
	return s, err
}

// play has our nodes run a series: one slot each, at three sites.
func (s *series) play(rnd *rand.Rand) (minutes float64, err error) {
	rtt := make([][]time.Duration, len(clusters))
	for i := range rtt {
		rtt[i] = []time.Duration{apart, apart, apart}
		rtt[i][i] = 0
	}
	o := sim.NewOverlay(sim.OverlayConfig{Layout: sim.Layout{Sizes: clusters, RTT: rtt}, Seed: s.seed, Noise: sim.Usual(), Idle: true})
	l := &load{}
	g := sim.NewGrid(sim.GridConfig{Overlay: o, Graph: sim.Ideal(o, s.seed), Seed: s.seed, Slots: func(int) int { return 1 }, Fate: l.fate})
	type submitted struct {
		at int
		id jobs.ID
	}
	var list []submitted
	for _, r := range s.runs {
		at := rnd.IntN(o.Len())
		id, err := g.Submit(at, s.spec(r))
		if err != nil {
			return 0, err
		}
		list = append(list, submitted{at, id})
		g.Pass(time.Second)
	}
	g.Run(24*time.Hour, func() bool {
		for _, j := range list {
			if !g.Jobs(j.at).State(j.id).Final() {
				return false
			}
		}
		return true
	})
	for _, j := range list {
		st, _ := g.Jobs(j.at).Status(j.id)
		if st.State != jobs.Completed {
			return 0, fmt.Errorf("series %d: a run is %s: %s", s.seed, st.State, st.Reason)
		}
		minutes = math.Max(minutes, st.Ended.Sub(time.Unix(0, 0)).Minutes())
	}
	return minutes, nil
}

// spec is a run as a job whose start is promised at once.
func (s *series) spec(r run) jobs.Spec {
	n := r.islands * r.size
	spec := jobs.Spec{Args: []string{"run"}, Min: n, Max: n, Slots: 1, Walltime: codec.Duration(time.Duration(r.length) * time.Minute)}
	spec.Search.After(0)
	if s.islands {
		for i := range r.islands {
			name := fmt.Sprintf("i%d", i)
			spec.Groups = append(spec.Groups, groups.Group{Name: name, Min: r.size, Max: r.size})
			spec.Links = append(spec.Links, groups.Link{Name: "in-" + name, Groups: []string{name}, MaxRTT: codec.Duration(apart / 2)})
		}
	}
	return spec
}
