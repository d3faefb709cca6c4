// Command search compares the two searches for workers, that of the paper and
// the adaptive one, on simulated networks of bare cores, with an oracle that
// knows everything: messages per job, time to fill, distance of the workers.
//
//	go run ./testnet/experiments/search          all of it, and writes docs/experiments/search
//	go run ./testnet/experiments/search -quick   small networks, writes nothing
//
// Times are of the network alone: a worker is ready a millisecond after its
// grant, and disks take no time.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/testnet/chart"
	"zorilla/testnet/sim"
)

// options is what the command line chooses.
type options struct {
	nodes, workers, sites []int
	fills, modes          []string
	seeds                 int
	origins               int
	settled               int
	parts                 []string
	out                   string
}

func main() {
	o, err := parse(os.Args[1:])
	if err == nil {
		err = chart.Keep(o.out, func(w *chart.Results) error { return run(w, o) })
	}
	chart.Exit("search", err)
}

func parse(args []string) (options, error) {
	f := flag.NewFlagSet("search", flag.ContinueOnError)
	nodes := f.String("nodes", "100,300,1000,3000,10000", "sizes of networks")
	workers := f.String("workers", "1,8,64,512", "sizes of jobs")
	sites := f.String("sites", "6,40", "numbers of sites")
	fills := f.String("fill", "idle,50,80,near", "load: idle, a share of busy slots in percent, or near: the nearest site is full")
	modes := f.String("search", jobs.SearchPaper+","+jobs.SearchAdaptive, "searches")
	o := options{}
	f.IntVar(&o.seeds, "seeds", 1, "networks of each kind")
	f.IntVar(&o.origins, "origins", 5, "jobs of each kind in each network, one at a time")
	f.IntVar(&o.settled, "settled", 1000,
		"in networks of up to so many nodes these find their neighbours by the vicinity protocol, in its first minute; "+
			"larger ones are made with the graph that it tends to")
	parts := f.String("part", "kinds,burst", "kinds: jobs of all sizes, one at a time; burst: a hundred jobs at a hundred nodes in the same second")
	f.StringVar(&o.out, "out", "docs/experiments/search", "folder for the results; empty = none")
	quick := f.Bool("quick", false, "networks of 100 and 1000 nodes at six sites, no vicinity protocol, no files")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if *quick {
		set := map[string]bool{}
		f.Visit(func(f *flag.Flag) { set[f.Name] = true })
		for name, value := range map[string]string{"nodes": "100,1000", "sites": "6", "seeds": "1", "settled": "0", "out": ""} {
			if !set[name] {
				f.Set(name, value)
			}
		}
	}
	var err error
	for _, list := range []struct {
		text string
		to   *[]int
	}{{*nodes, &o.nodes}, {*workers, &o.workers}, {*sites, &o.sites}} {
		for s := range strings.SplitSeq(list.text, ",") {
			n, perr := strconv.Atoi(s)
			if perr != nil || n < 1 {
				err = fmt.Errorf("%q: want positive numbers with commas", list.text)
			}
			*list.to = append(*list.to, n)
		}
	}
	o.fills, o.modes = strings.Split(*fills, ","), strings.Split(*modes, ",")
	o.parts = strings.Split(*parts, ",")
	return o, err
}

func run(w *chart.Results, o options) error {
	var all []result
	if slices.Contains(o.parts, "kinds") {
		fmt.Fprintln(w, header)
	} else {
		o.sites = nil
	}
	for _, sites := range o.sites {
		for _, n := range o.nodes {
			var nets []*network
			for seed := range o.seeds {
				nets = append(nets, newNetwork(n, sites, uint64(seed)+1, n <= o.settled))
			}
			for _, fill := range o.fills {
				for _, workers := range o.workers {
					for _, mode := range o.modes {
						r, err := measure(nets, fill, workers, mode, o.origins)
						if err != nil {
							return err
						}
						if r.jobs > 0 {
							all = append(all, r)
							fmt.Fprintln(w, r)
						}
					}
				}
			}
		}
	}
	fmt.Fprintln(w)
	var bursts []burstResult
	if slices.Contains(o.parts, "burst") {
		fmt.Fprintln(w, burstHeader)
		for _, mode := range o.modes {
			for _, workers := range []int{1, 2, 4} {
				b, err := burst(workers, mode, o)
				if err != nil {
					return err
				}
				bursts = append(bursts, b)
				fmt.Fprintln(w, b)
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, verdict(all))
	keep(w, all, bursts)
	return nil
}

// layout lays a network out at six equal sites, or at more on a plane.
func layout(n, sites int, seed uint64) sim.Layout {
	if sites == 6 {
		return sim.SixSites(n, false)
	}
	return sim.Plane(n, sites, seed)
}

// network is a network whose nodes have found their neighbours.
type network struct {
	nodes, sites int
	seed         uint64
	layout       sim.Layout
	graph        sim.Graph
}

func newNetwork(n, sites int, seed uint64, warmUp bool) *network {
	w := &network{nodes: n, sites: sites, seed: seed, layout: layout(n, sites, seed)}
	if !warmUp {
		w.graph = sim.Ideal(w.overlay(0), seed)
		return w
	}
	w.graph = sim.Settled(sim.OverlayConfig{Layout: w.layout, Seed: seed, Noise: sim.Usual(), Peers: 256}, time.Minute)
	return w
}

// overlay returns a new network of the same nodes, in which only jobs are
// simulated, with other chance for each number.
func (w *network) overlay(chance int) *sim.Overlay {
	o := sim.NewOverlay(sim.OverlayConfig{Layout: w.layout, Seed: w.seed, Noise: sim.Usual(), Idle: true})
	for range chance {
		o.Rand().Uint64()
	}
	return o
}
