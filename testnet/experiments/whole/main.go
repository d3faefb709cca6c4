// Whole runs whole nodes, as many as two processors bear, and asks four things of
// them.
//
// Growth, what one more node costs everybody: whole nodes, and the bare cores of
// vicinity and flood, at six sites with the distances of Grid'5000.
//
// Launch, the largest experiment of Drost et al. on more nodes than they had:
// one job of 600 to 671 workers on 338 nodes with two slots at these sites, five
// of which crash while they work.
//
// Series, whether the simulator lies: the same jobs of 1 to 512 workers, one
// after the other, on the whole nodes of the launch and on the bare cores of
// testnet/sim.
//
// Loss, whether jobs get the nearest nodes where a tenth of all packets is lost, at internet
// distances.
//
//	go run ./testnet/experiments/whole                        # all, about 40 minutes and 6 GB
//	go run ./testnet/experiments/whole -only growth -max 100 -cores 1000 -out ''
//	go run ./testnet/experiments/whole -only jobs -nodes 60 -origins 2 -out ''
//	go run ./testnet/experiments/whole -only loss
//
// It prints tables and writes them, with figures, into folders of -out.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/testnet"
	"zorilla/testnet/chart"
	"zorilla/testnet/sim"
)

// slots of each node.
const slots = 2

type options struct {
	only           string // "growth", "jobs" (launch and series), "loss" or ""
	most, cores    int    // the largest networks of growth
	nodes, origins int    // of launch and series
	lossy          int    // whole nodes of loss
	seed           uint64
	out            string
}

// modes are compared, in this order.
var modes = []string{jobs.SearchPaper, jobs.SearchAdaptive}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "growth; jobs: launch and series; or loss")
	flag.IntVar(&o.most, "max", 300, "growth: most whole nodes")
	flag.IntVar(&o.cores, "cores", 10_000, "growth: most bare cores")
	flag.IntVar(&o.nodes, "nodes", 338, "jobs: whole nodes")
	flag.IntVar(&o.origins, "origins", 8, "jobs: of each size in the series, each at another node; loss: three times as many")
	flag.IntVar(&o.lossy, "lossy", 50, "loss: whole nodes, at most 256")
	flag.Uint64Var(&o.seed, "seed", 1, "of all chance but that of memberlist and TLS")
	flag.StringVar(&o.out, "out", "docs/experiments", "where folders for the results are; '' = nowhere")
	flag.Parse()
	if o.only != "" && o.only != "growth" && o.only != "jobs" && o.only != "loss" {
		fmt.Fprintf(os.Stderr, "whole: -only %q: want growth, jobs or loss\n", o.only)
		os.Exit(2)
	}
	debug.SetGCPercent(300) // collecting garbage was a third of the time
	testnet.Main(func(bubble testnet.Bubble) error { return run(bubble, o) })
}

// run plays the parts, each with a folder of its own.
func run(bubble testnet.Bubble, o options) error {
	for _, part := range []struct {
		name, folder string
		run          func(w *chart.Results, bubble testnet.Bubble, o options) error
	}{{"growth", "growth", growth}, {"jobs", "whole", launchAndSeries}, {"loss", "whole/loss", loss}} {
		if o.only != "" && o.only != part.name {
			continue
		}
		dir := ""
		if o.out != "" {
			dir = filepath.Join(o.out, part.folder)
		}
		if err := chart.Keep(dir, func(w *chart.Results) error { return part.run(w, bubble, o) }); err != nil {
			return err
		}
	}
	return nil
}

// launchAndSeries runs jobs in one network of whole nodes, and in simulated ones.
func launchAndSeries(w *chart.Results, bubble testnet.Bubble, o options) error {
	layout := sim.SixSites(o.nodes, true)
	var launches []launch
	var series []sample
	var made links
	err := bubble(func() error {
		r := row{nodes: o.nodes}
		return r.gather(layout, testnet.NodesConfig{Slots: slots, Seed: o.seed, Programs: map[string]testnet.Program{"work": work}},
			func(nodes *testnet.Nodes) (err error) {
				fmt.Fprintf(w, "seed %d: %d nodes at sites of %v know each other %v after the last start; "+
					"99 %% of their neighbours are right %v after 99 %% were known, %.4f in the end\n",
					o.seed, o.nodes, layout.Sizes, r.all, r.right, nodes.Right())
				for _, mode := range modes {
					l, err := launchOne(nodes, mode)
					if err != nil {
						return fmt.Errorf("launch, %s search: %w", mode, err)
					}
					launches = append(launches, l)
				}
				made = linksOf(nodes)
				series, err = wholeSeries(nodes, o)
				return err
			})
	})
	if err != nil {
		return err
	}
	own, err := simulatedSeries(layout, o)
	if err != nil {
		return err
	}
	same, err := relinkedSeries(layout, o, made)
	if err != nil {
		return err
	}
	points := summarize(slices.Concat(series, own, same))
	printLaunches(w, launches)
	printSeries(w, points)
	keep(w, launches, points)
	return nil
}

// together waits until all nodes that are up know each other.
func together(nodes *testnet.Nodes) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	_, err := nodes.AwaitKnown(ctx, nodes.Up())
	return err
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
