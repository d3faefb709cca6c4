package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/testnet/chart"
	"zorilla/testnet/sim"
)

// crowd is several jobs that look for workers at the same time, or one soon after the
// other, in a network that has just found its neighbours.
type crowd struct {
	topology
	noise         string
	nodes, fill   int // fill in percent
	jobs, workers int
	one           bool          // all are submitted at one node
	apart         time.Duration // between two submissions
	alone         bool          // each has ended before the next is submitted
	settle        time.Duration
	moved         time.Duration // since a tenth of the nodes changed places, who submit the jobs; 0 = none did
	seeds         int
}

// changes lists what is measured of networks that have just changed, or begun.
func changes(t topology, noise string) (list []crowd) {
	one := crowd{topology: t, noise: noise, nodes: 100, jobs: 10, alone: true, apart: time.Second, settle: time.Minute, seeds: 5}
	for _, after := range []time.Duration{10 * time.Second, 30 * time.Second, 180 * time.Second} {
		for _, workers := range []int{4, 8} {
			c := one
			c.moved, c.workers = after, workers
			list = append(list, c)
		}
	}
	for _, n := range []int{400, 3000} {
		c := one
		c.nodes, c.workers, c.settle = n, 8, 10*time.Second
		c.seeds = max(1, 2000/n)
		list = append(list, c)
	}
	return list
}

// crowds lists what is measured, for networks of a kind.
func crowds(t topology, noise string) (list []crowd) {
	add := func(c crowd) {
		c.topology, c.noise, c.settle, c.seeds = t, noise, 20*time.Second, 5
		if c.nodes == 0 {
			c.nodes = 100
		}
		list = append(list, c)
	}
	for _, fill := range []int{0, 50} {
		for _, apart := range []time.Duration{0, 300 * time.Millisecond} {
			add(crowd{fill: fill, jobs: 10, workers: 4, one: true, apart: apart})
			add(crowd{fill: fill, jobs: 10, workers: 4, apart: apart})
		}
	}
	add(crowd{jobs: 8, workers: 8})
	add(crowd{fill: 50, jobs: 20, workers: 2})
	add(crowd{fill: 50, jobs: 20, workers: 2, nodes: 400})
	add(crowd{fill: 80, jobs: 20, workers: 2})
	for _, fill := range []int{0, 80, 95} {
		add(crowd{fill: fill, jobs: 24, workers: 8, alone: true, apart: 10 * time.Second})
	}
	return list
}

// crowdSeed is what came of it in one network.
type crowdSeed struct {
	ratio       float64 // of the sums of all jobs' round trips
	worst       float64 // of one job; where all have one origin it is the ratio
	starts      []time.Duration
	copies      []int
	whole       time.Duration // start of one job of all workers, where there is one origin
	wholeCopies int
	far         time.Duration // round trip to the farthest worker
	failed      int
}

// network returns a settled network with so much load, and how many slots are free at
// each node.
func (c *crowd) network(seed uint64) (*sim.Overlay, []int, error) {
	loss, err := noise(c.noise)
	if err != nil {
		return nil, nil, err
	}
	layout, paths := c.layout(c.nodes, seed)
	o := sim.NewOverlay(sim.OverlayConfig{Layout: layout, Paths: paths, Seed: seed, Noise: loss})
	o.Run(c.settle)
	if c.moved > 0 {
		moved := c.origins(seed)[:c.nodes/10]
		for i := 0; i+1 < len(moved); i += 2 {
			o.Swap(moved[i], moved[i+1])
		}
		o.Run(c.moved)
	}
	free := make([]int, c.nodes)
	for i := range free {
		free[i] = slots
	}
	rnd := rand.New(rand.NewPCG(seed, 0xf111))
	for _, k := range rnd.Perm(c.nodes * slots)[:c.nodes*slots*c.fill/100] {
		free[k/slots]--
	}
	return o, free, nil
}

// origins are the nodes in the order in which they submit jobs.
func (c *crowd) origins(seed uint64) []int {
	list := rand.New(rand.NewPCG(seed, 0x0419)).Perm(c.nodes)
	if c.one {
		for i := range list {
			list[i] = list[0]
		}
	}
	return list
}

func (c *crowd) grid(o *sim.Overlay, free []int, seed uint64) *sim.Grid {
	cfg := sim.GridConfig{Overlay: o, Seed: seed, Busy: func(i int) int { return slots - free[i] }}
	if c.alone {
		cfg.Fate = sim.Lasting(time.Millisecond, 100*time.Millisecond)
	}
	return sim.NewGrid(cfg)
}

func (c *crowd) spec(workers int) jobs.Spec {
	return jobs.Spec{Args: []string{"prog"}, Min: workers, Max: workers, Slots: 1}
}

// run submits the jobs of one network and waits for all to start.
func (c *crowd) run(seed uint64) (r crowdSeed, err error) {
	o, free, err := c.network(seed)
	if err != nil {
		return r, err
	}
	origins := c.origins(seed)
	g := c.grid(o, free, seed)
	ids := make([]jobs.ID, c.jobs)
	for i := range ids {
		o.Schedule(time.Duration(i)*c.apart, func() {
			if ids[i], err = g.Submit(origins[i], c.spec(c.workers)); err != nil {
				panic(err)
			}
		})
	}
	started := func(i int) bool {
		if ids[i] == "" {
			return false
		}
		st, _ := g.Jobs(origins[i]).Status(ids[i])
		return !st.Started.IsZero()
	}
	g.Run(limit, func() bool {
		for i := range ids {
			if !started(i) {
				return false
			}
		}
		return true
	})
	g.Pass(2 * time.Second)
	left := slices.Clone(free)
	var mine, best time.Duration
	for i, id := range ids {
		ideal := o.Nearest(origins[i], c.workers, func(k int) int { return left[k] })
		for _, k := range ideal {
			if !c.alone {
				left[k]--
			}
		}
		if !started(i) {
			r.failed++
			continue
		}
		st, _ := g.Jobs(origins[i]).Status(id)
		r.starts = append(r.starts, st.Started.Sub(st.Submitted))
		r.copies = append(r.copies, g.Cost(id).Sum.Messages)
		chosen := g.Workers(origins[i], id)
		a, b := sum(o.Distances(origins[i], chosen)), sum(o.Distances(origins[i], ideal))
		r.far = max(r.far, o.Distance(origins[i], ideal[len(ideal)-1]))
		mine, best = mine+a, best+b
		if !c.one || c.alone {
			r.worst = max(r.worst, float64(a+sim.Resolution)/float64(b+sim.Resolution))
		}
	}
	r.ratio = float64(mine+sim.Resolution) / float64(best+sim.Resolution)
	if c.one && !c.alone {
		r.worst = r.ratio
		return r, c.asOne(seed, origins[0], &r)
	}
	return r, nil
}

// asOne measures one job that has all the workers, in the same network.
func (c *crowd) asOne(seed uint64, origin int, r *crowdSeed) error {
	o, free, err := c.network(seed)
	if err != nil {
		return err
	}
	g := c.grid(o, free, seed)
	at := o.Elapsed()
	id, err := g.Start(origin, c.spec(c.jobs*c.workers), limit)
	if err != nil {
		return err
	}
	r.whole = o.Elapsed() - at
	g.Pass(2 * time.Second)
	r.wholeCopies = g.Cost(id).Sum.Messages
	return nil
}

func sum(list []time.Duration) (all time.Duration) {
	for _, d := range list {
		all += d
	}
	return all
}

const crowdHeader = "network noise     nodes fill jobs x workers  apart  origins         | ratio: median  worst seed, job | start ms: median  p90   worst  (one job of all)  RTT | copies a job: median   most    all  (one job of all) failed"

// measure runs a crowd in several networks and returns a line.
func (c *crowd) measure() (string, error) {
	var ratios []float64
	var starts, wholes []time.Duration
	var copies, alone []int
	worst, far, failed := 0.0, time.Duration(0), 0
	for seed := range c.seeds {
		r, err := c.run(uint64(seed) + 1)
		if err != nil {
			return "", err
		}
		ratios, starts, copies = append(ratios, r.ratio), append(starts, r.starts...), append(copies, r.copies...)
		wholes, alone = append(wholes, r.whole), append(alone, r.wholeCopies)
		worst, far, failed = max(worst, r.worst), max(far, r.far), failed+r.failed
	}
	slices.Sort(ratios)
	slices.Sort(starts)
	slices.Sort(copies)
	slices.Sort(wholes)
	slices.Sort(alone)
	origins := "many"
	if c.alone {
		origins = "alone"
	}
	if c.one {
		origins = "one"
	}
	if c.moved > 0 {
		origins = fmt.Sprintf("moved %g s ago", c.moved.Seconds())
	} else if c.settle <= 10*time.Second {
		origins = fmt.Sprintf("all %g s old", c.settle.Seconds())
	}
	if len(starts) == 0 {
		return "none started", nil
	}
	all := 0
	for _, n := range copies {
		all += n
	}
	at := func(list []time.Duration, share float64) float64 {
		return millis(list[int(share*float64(len(list)-1))])
	}
	return fmt.Sprintf("%-7s %-9s %5d %4d %4d x %-7d %6d  %-15s | %13.3f %11.3f %5.2f | %16.0f %6.0f %6.0f %15.0f %6.0f | %20d %6d %7d %15d %6d",
		c.name, c.noise, c.nodes, c.fill, c.jobs, c.workers, c.apart.Milliseconds(), origins,
		ratios[len(ratios)/2], ratios[len(ratios)-1], worst,
		at(starts, 0.5), at(starts, 0.9), at(starts, 1), at(wholes, 0.5), millis(far),
		copies[len(copies)/2], copies[len(copies)-1], all/c.seeds, alone[len(alone)/2], failed), nil
}

// crowded prints a line for each kind of crowd.
func crowded(w *chart.Results, o options, list func(t topology, noise string) []crowd) error {
	fmt.Fprintln(w, crowdHeader)
	for _, t := range o.topologies {
		for _, noise := range o.noises {
			for _, c := range list(t, noise) {
				c.seeds = max(c.seeds, o.seeds)
				line, err := c.measure()
				if err != nil {
					return err
				}
				fmt.Fprintln(w, line)
			}
		}
	}
	fmt.Fprintln(w)
	return nil
}
