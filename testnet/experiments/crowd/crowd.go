package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/jobs"
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
	warmUp        time.Duration
	moved         time.Duration // since a tenth of the nodes changed places, who submit the jobs; 0 = none did
	seeds         int
}

const (
	slots = 2                // of a node
	limit = 10 * time.Minute // a job that takes longer has failed
)

// kinds lists what is measured of networks of a kind, by the name of the part.
var kinds = map[string]func(t topology, noise string) []crowd{"burst": bursts, "alone": lonely, "change": changes}

// changes lists what is measured of networks that have just changed, or begun.
func changes(t topology, noise string) (list []crowd) {
	one := crowd{topology: t, noise: noise, nodes: 100, jobs: 10, alone: true, apart: time.Second, warmUp: time.Minute, seeds: 5}
	for _, after := range []time.Duration{10 * time.Second, 30 * time.Second, 180 * time.Second} {
		for _, workers := range []int{4, 8} {
			c := one
			c.moved, c.workers = after, workers
			list = append(list, c)
		}
	}
	for _, n := range []int{400, 3000} {
		c := one
		c.nodes, c.workers, c.warmUp = n, 8, 10*time.Second
		c.seeds = max(1, 2000/n)
		list = append(list, c)
	}
	return list
}

// young is what is measured of networks that have just found their neighbours.
func young(t topology, noise string) crowd {
	return crowd{topology: t, noise: noise, nodes: 100, warmUp: 20 * time.Second, seeds: 5}
}

// bursts lists what is measured of jobs that are submitted together.
func bursts(t topology, noise string) (list []crowd) {
	add := func(fill, jobs, workers int, change func(*crowd)) {
		c := young(t, noise)
		c.fill, c.jobs, c.workers = fill, jobs, workers
		if change != nil {
			change(&c)
		}
		list = append(list, c)
	}
	for _, fill := range []int{0, 50} {
		for _, apart := range []time.Duration{0, 300 * time.Millisecond} {
			for _, one := range []bool{true, false} {
				add(fill, 10, 4, func(c *crowd) { c.apart, c.one = apart, one })
			}
		}
	}
	add(0, 8, 8, nil)
	add(50, 20, 2, nil)
	add(50, 20, 2, func(c *crowd) { c.nodes = 400 })
	add(80, 20, 2, nil)
	add(50, 20, 2, func(c *crowd) { c.apart = 10 * time.Second }) // what so full a network costs if they are not at once
	return list
}

// lonely lists what is measured of jobs of which each has ended before the next.
func lonely(t topology, noise string) (list []crowd) {
	for _, fill := range []int{0, 80, 95} {
		c := young(t, noise)
		c.fill, c.jobs, c.workers, c.alone, c.apart = fill, 24, 8, true, 10*time.Second
		list = append(list, c)
	}
	c := young(t, noise) // beside those of twenty nodes at once
	c.fill, c.jobs, c.workers, c.alone, c.apart = 50, 20, 2, true, 10*time.Second
	return append(list, c)
}

// outcome is what came of it in one network.
type outcome struct {
	ratio       float64 // of the sums of all jobs' round trips
	worst       float64 // of one job; where all have one origin it is the ratio
	starts      []time.Duration
	copies      []int
	nearer      []int         // of each job, how many others are clearly nearer than its farthest worker
	whole       time.Duration // start of one job of all workers, where there is one origin
	wholeCopies int
	trips       []float64     // starts, in round trips to the farthest worker
	far         time.Duration // the longest of these
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
	o := sim.NewOverlay(sim.OverlayConfig{Layout: layout, Paths: paths, Seed: seed, Noise: loss, Live: c.live, Guarded: c.guarded(c.nodes, seed)})
	o.Run(c.warmUp)
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
func (c *crowd) run(seed uint64) (r outcome, err error) {
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
		far := slices.Max(o.Distances(origins[i], chosen))
		r.far = max(r.far, far)
		r.nearer = append(r.nearer, c.nearer(o, origins[i], far))
		if far >= time.Millisecond { // else it is not distance that takes time
			r.trips = append(r.trips, float64(r.starts[len(r.starts)-1])/float64(far))
		}
		mine, best = mine+a, best+b
		if !c.one || c.alone {
			r.worst = max(r.worst, float64(a+sim.Resolution)/float64(b+sim.Resolution))
		}
	}
	if called := g.Copies() - sumOf(r.copies); called > 0 { // for several jobs together
		r.copies = append(r.copies, called)
	}
	r.ratio = float64(mine+sim.Resolution) / float64(best+sim.Resolution)
	if c.one && !c.alone {
		r.worst = r.ratio
		return r, c.asOne(seed, origins[0], &r)
	}
	return r, nil
}

// asOne measures one job that has all the workers, in the same network.
func (c *crowd) asOne(seed uint64, origin int, r *outcome) error {
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

// nearer counts the others that are clearly nearer to a node than that: a search that passes over
// nobody who has room asks them all, and one more.
func (c *crowd) nearer(o *sim.Overlay, node int, far time.Duration) (n int) {
	far -= max(far/32, sim.Resolution)
	for k := range c.nodes {
		if k != node && o.Distance(node, k) < far {
			n++
		}
	}
	return n
}

func sum(list []time.Duration) (all time.Duration) {
	for _, d := range list {
		all += d
	}
	return all
}
