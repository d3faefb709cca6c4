package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"zorilla/jobs"
	"zorilla/testnet/sim"
)

const (
	slots = 2                // of a node
	limit = 10 * time.Minute // a job that takes longer has failed
)

// load returns how many slots of each node are busy, as seen by an origin.
func (w *network) load(fill string, o *sim.Overlay, origin int) (func(node int) int, error) {
	if fill == "idle" {
		return func(int) int { return 0 }, nil
	}
	if fill == "near" {
		return func(node int) int {
			if o.Site(node) == o.Site(origin) {
				return slots
			}
			return 0
		}, nil
	}
	share, err := strconv.Atoi(fill)
	if err != nil || share < 0 || share > 100 {
		return nil, fmt.Errorf("-fill %q: want idle, near or 0 to 100", fill)
	}
	rnd := rand.New(rand.NewPCG(w.seed, uint64(origin)))
	busy := make([]int, o.Len())
	for _, k := range rnd.Perm(o.Len() * slots)[:o.Len()*slots*share/100] {
		busy[k/slots]++
	}
	return func(node int) int { return busy[node] }, nil
}

// trial is one job.
type trial struct {
	cost         sim.Cost
	fill         time.Duration
	ratio, clear float64
	rtt          time.Duration // mean of the workers
	repeat       int           // copies, had it been a new flood for each hop farther
	failed       string
}

// try runs one job in an otherwise idle network.
func (w *network) try(fill string, workers int, mode string, origin int) (t trial, ok bool, err error) {
	o := w.overlay(origin)
	busy, err := w.load(fill, o, origin)
	if err != nil {
		return t, false, err
	}
	best := o.Nearest(origin, workers, func(i int) int { return slots - busy(i) })
	if len(best) < workers {
		return t, false, nil // no room for it
	}
	g := sim.NewGrid(sim.GridConfig{Overlay: o, Graph: w.graph, Seed: w.seed<<32 + uint64(origin), Busy: busy})
	id, err := g.Start(origin, jobs.Spec{Args: []string{"prog"}, Min: workers, Max: workers, Slots: 1, Search: jobs.Search{Mode: mode}}, limit)
	if err != nil {
		t.failed = fmt.Sprintf("seed %d, origin %d: %v", w.seed, origin, err)
		return t, true, nil
	}
	t.fill = o.Elapsed()
	g.Pass(2 * time.Second) // copies that are still on their way
	chosen, ideal := o.Distances(origin, g.Workers(origin, id)), o.Distances(origin, best)
	t.ratio, t.clear = sim.Excess(chosen, ideal)
	for _, d := range chosen {
		t.rtt += d / time.Duration(len(chosen))
	}
	t.cost = g.Cost(id)
	for _, r := range t.cost.Rounds {
		t.repeat += w.repeated(o, origin, r.Radius, r.Reached)
	}
	return t, true, nil
}

// repeated counts the copies of floods with one hop more each, from a radius on
// until so many nodes are reached: every node less than the radius away sends
// one to each neighbour but the one that it came from and the origin.
func (w *network) repeated(o *sim.Overlay, origin, radius, reach int) (copies int) {
	hops := map[int]int{origin: 0}
	edge := []int{origin}
	all := len(w.graph.Neighbours(origin)) // copies of a flood to the edge and one hop on
	for hop := 1; ; hop++ {
		var next []int
		for _, at := range edge {
			near := w.graph.Neighbours(at)
			if at != origin {
				all += len(near) - 1
				if hops[at] > 1 && slices.Contains(near, o.ID(origin)) {
					all--
				}
			}
			for _, id := range near {
				k, _ := o.Index(id)
				if _, seen := hops[k]; !seen {
					hops[k] = hop
					next = append(next, k)
				}
			}
		}
		edge = next
		if hop >= radius {
			copies += all
		}
		if len(edge) == 0 || hop >= radius && len(hops)-1 >= reach {
			return copies
		}
	}
}

// result is what jobs of one kind took, on average.
type result struct {
	nodes, sites, workers int
	fill, mode            string
	jobs, failed          int
	messages, bytes       float64
	duplicates            float64 // share
	reached, rounds       float64
	answers               float64
	repeat                float64
	time, slowest         time.Duration // the median, and the longest
	rtt                   time.Duration
	ratio, clear          float64 // of the means over all jobs
	worst                 float64 // of clear
}

// measure runs jobs of one kind, one after the other, in each network.
func measure(nets []*network, fill string, workers int, mode string, origins int) (result, error) {
	r := result{nodes: nets[0].nodes, sites: nets[0].sites, workers: workers, fill: fill, mode: mode}
	var times []time.Duration
	for _, w := range nets {
		rnd := rand.New(rand.NewPCG(w.seed, 0x0419))
		for range origins {
			t, ok, err := w.try(fill, workers, mode, rnd.IntN(w.nodes))
			if err != nil {
				return r, err
			}
			if !ok {
				continue
			}
			r.jobs++
			if t.failed != "" {
				r.failed++
				fmt.Println("failed:", t.failed)
				continue
			}
			times = append(times, t.fill)
			r.messages += float64(t.cost.Sum.Messages)
			r.bytes += float64(t.cost.Sum.Bytes + t.cost.AnswerBytes)
			r.duplicates += float64(t.cost.Sum.Duplicates)
			r.reached += float64(t.cost.Sum.Reached)
			r.rounds += float64(len(t.cost.Rounds))
			r.answers += float64(t.cost.Answers)
			r.repeat += float64(t.repeat)
			r.ratio += t.ratio
			r.clear += t.clear
			r.worst = max(r.worst, t.clear)
			r.rtt += t.rtt
		}
	}
	if n := float64(len(times)); n > 0 {
		r.duplicates /= max(1, r.messages)
		for _, v := range []*float64{&r.messages, &r.bytes, &r.reached, &r.rounds, &r.answers, &r.repeat, &r.ratio, &r.clear} {
			*v /= n
		}
		slices.Sort(times)
		r.time, r.slowest, r.rtt = times[len(times)/2], times[len(times)-1], r.rtt/time.Duration(len(times))
	}
	return r, nil
}
