package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/placement"
	"zorilla/testnet"
	"zorilla/testnet/sim"
)

// cluster is some hosts of one kind at a site: a row of the paper's table 1.
type cluster struct {
	site, hosts, cores int // cores of all hosts together
}

// grid is what there is, before noise: nodes are numbered cluster by cluster.
type grid struct {
	sites  []string
	rtt    [][]time.Duration
	layout sim.Layout
	site   []int // by node
	slots  []int // likewise
}

// table1 is the testbed of the paper: 350 hosts, 1040 cores. It gives the
// distances from Nancy; those of other sites from each other are
// testnet.Grid5000's.
func table1() *grid {
	return newGrid([]string{"Nancy", "Lyon", "Rennes", "Bordeaux", "Grenoble", "Sophia"}, testnet.Grid5000(), []cluster{
		{0, 60, 240}, // grelon
		{1, 50, 100}, // capricorn
		{2, 90, 180}, // paravent
		{3, 60, 240}, // bordereau
		{4, 8, 16},   // idpot
		{4, 12, 48},  // idcalc
		{5, 32, 64},  // azur
		{5, 38, 152}, // sol
	})
}

func newGrid(sites []string, rtt [][]time.Duration, clusters []cluster) *grid {
	g := &grid{sites: sites, rtt: rtt}
	sizes := make([]int, len(sites))
	for _, c := range clusters {
		sizes[c.site] += c.hosts
		for range c.hosts {
			g.site, g.slots = append(g.site, c.site), append(g.slots, c.cores/c.hosts)
		}
	}
	g.layout = sim.Layout{Sizes: sizes, RTT: rtt}
	return g
}

// cores returns how many there are at a site, and at how many hosts.
func (g *grid) cores(site int) (hosts, cores int) {
	for i, s := range g.site {
		if s == site {
			cores += g.slots[i]
		}
	}
	return g.layout.Sizes[site], cores
}

// kind is how the network behaves.
type kind struct {
	name, title string
	noise       sim.Noise
	once        bool // distances are measured once each, and nothing is run
	drawn       bool // has figures
}

// load is what each way of a packet takes longer on busy hosts, on the average.
const load = 500 * time.Microsecond

func kinds() []kind {
	busy := sim.Usual()
	busy.Queue = load
	return []kind{
		{name: "calm", title: "calm hosts", noise: sim.Usual(), drawn: true},
		{name: "busy", title: "busy hosts", noise: busy},
		{name: "once", title: "busy hosts, measured once each", noise: busy, once: true, drawn: true},
	}
}

// use is what a job takes of each site.
type use struct{ hosts, cores []int }

// place is where one job came to be, beside the ideal.
type place struct {
	kind       kind
	seed       uint64
	strategy   placement.Strategy
	size       int
	got, ideal use
	started    time.Duration // all processes run; 0 = nothing was run
	messages   int           // copies of floods
}

// elsewhere counts the processes that are at another site than ideally.
func (p *place) elsewhere() (n int) {
	for s := range p.got.cores {
		n += max(0, p.got.cores[s]-p.ideal.cores[s])
	}
	return n
}

// limit is how long a job may look for its processes.
const limit = time.Minute

// origin is a host of the first site, Nancy.
const origin = 0

// measure places jobs of all sizes with both strategies, one at a time, in a
// network whose nodes have had a minute to find their neighbours.
func (g *grid) measure(k kind, seed uint64, sizes []int) ([]place, error) {
	cfg := sim.OverlayConfig{Layout: g.layout, Seed: seed, Noise: k.noise}
	idle := cfg
	idle.Idle = true
	var graph sim.Graph
	if !k.once {
		graph = sim.Settled(cfg, time.Minute)
	}
	var list []place
	for _, s := range strategies() {
		for _, n := range sizes {
			o := sim.NewOverlay(idle)
			order := nearest(o, func(i int) time.Duration { return o.Distance(origin, i) })
			p := place{kind: k, seed: seed, strategy: s, size: n, ideal: g.deal(order, s, n)}
			if k.once {
				p.got = g.deal(once(o, seed, k.noise), s, n)
			} else if err := g.play(o, graph, &p); err != nil {
				return nil, err
			}
			list = append(list, p)
		}
	}
	return list, nil
}

// play runs one job.
func (g *grid) play(o *sim.Overlay, graph sim.Graph, p *place) error {
	run := sim.NewGrid(sim.GridConfig{Overlay: o, Graph: graph, Seed: p.seed<<16 + uint64(p.size), Slots: func(i int) int { return g.slots[i] }})
	id, err := run.Start(origin, jobs.Spec{Args: []string{"hostname"}, Min: p.size, Max: p.size, Slots: 1, Strategy: string(p.strategy)}, limit)
	if err != nil {
		return fmt.Errorf("%s, seed %d, %s: %d processes do not start: %w", p.kind.name, p.seed, p.strategy, p.size, err)
	}
	p.started = o.Elapsed()
	run.Pass(time.Second) // copies that are still on their way
	p.messages = run.Cost(id).Sum.Messages
	p.got = g.count(run.Workers(origin, id))
	return nil
}

// nearest lists the nodes in order of their distance.
func nearest(o *sim.Overlay, distance func(i int) time.Duration) []int {
	return testnet.NearestSlots(o.Live(), o.Len(), distance, func(int) int { return 1 })
}

// once lists the nodes in the order in which one measurement of each has them.
func once(o *sim.Overlay, seed uint64, noise sim.Noise) []int {
	rnd := rand.New(rand.NewPCG(seed, 0x0ce))
	seen := make([]time.Duration, o.Len())
	for i := range seen {
		seen[i] = o.Distance(origin, i)
		for range 2 { // there and back
			seen[i] += time.Duration(rnd.ExpFloat64() * float64(noise.Queue))
		}
	}
	return nearest(o, func(i int) time.Duration { return seen[i] })
}

// deal gives processes to the nodes in order as the paper says, written anew
// so that what the program does is compared with something else.
func (g *grid) deal(order []int, s placement.Strategy, processes int) use {
	var workers []int
	for lap := 0; len(workers) < processes; lap++ {
		for _, i := range order {
			more := 1
			if s == placement.Concentrate {
				more = g.slots[i]
			}
			if lap < g.slots[i] {
				for range min(more, processes-len(workers)) {
					workers = append(workers, i)
				}
			}
		}
		if s == placement.Concentrate {
			break
		}
	}
	return g.count(workers)
}

// count sums the nodes of processes up by site.
func (g *grid) count(workers []int) use {
	u := use{make([]int, len(g.sites)), make([]int, len(g.sites))}
	seen := map[int]bool{}
	for _, i := range workers {
		s := g.site[i]
		u.cores[s]++
		if !seen[i] {
			seen[i] = true
			u.hosts[s]++
		}
	}
	return u
}
