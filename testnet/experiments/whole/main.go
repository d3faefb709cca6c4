// Whole runs whole nodes on memberlist, as many as two processors bear, and asks
// two things of them.
//
// Launch, the largest experiment of Drost et al. on more nodes than they had:
// one job of 600 to 671 workers on 338 nodes with two slots at six sites with
// the distances of Grid'5000, five of which crash while they work.
//
// Series, whether the simulator lies: the same jobs of 1 to 512 workers, one
// after the other, on whole nodes and on the bare cores of testnet/sim.
//
//	go run ./testnet/experiments/whole                        # about 15 minutes and 3 GB
//	go run ./testnet/experiments/whole -nodes 60 -origins 2 -out ''
//
// It prints tables and writes them, with figures, into -out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
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
	nodes, origins int
	seed           uint64
	out            string
}

// modes are compared, in this order.
var modes = []string{jobs.SearchPaper, jobs.SearchAdaptive}

func main() {
	var o options
	flag.IntVar(&o.nodes, "nodes", 338, "whole nodes")
	flag.IntVar(&o.origins, "origins", 8, "jobs of each size in the series, each at another node")
	flag.Uint64Var(&o.seed, "seed", 1, "of all chance but that of memberlist and TLS")
	flag.StringVar(&o.out, "out", "docs/experiments/whole", "folder for the results; '' = none")
	flag.Parse()
	debug.SetGCPercent(300) // collecting garbage was a third of the time
	testnet.Main(func(bubble testnet.Bubble) error { return run(bubble, o) })
}

func run(bubble testnet.Bubble, o options) (err error) {
	w, done, err := chart.Results(o.out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	state, err := os.MkdirTemp("", "whole")
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)
	layout := sim.SixSites(o.nodes, true)
	var launches []launch
	var series []sample
	var made links
	err = bubble(func() error {
		nodes, err := start(w, o, layout, state)
		if err != nil {
			return err
		}
		work := func() error {
			for _, mode := range modes {
				l, err := launchOne(nodes, mode)
				if err != nil {
					return fmt.Errorf("launch, %s search: %w", mode, err)
				}
				launches = append(launches, l)
			}
			var err error
			made = linksOf(nodes)
			series, err = wholeSeries(nodes, o)
			return err
		}
		return errors.Join(work(), nodes.Stop())
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
	if o.out == "" {
		return nil
	}
	return write(o.out, launches, points)
}

// start brings the network up and lets it come to rest.
func start(w io.Writer, o options, layout sim.Layout, state string) (*testnet.Nodes, error) {
	real := testnet.RealTime()
	begun := time.Now()
	nodes, err := testnet.StartNodes(testnet.NodesConfig{
		Sites: testnet.NewSites(layout.Sizes, layout.RTT), Slots: slots, State: state, Seed: o.seed,
		Programs: map[string]testnet.Program{"work": work},
	})
	if err != nil {
		return nil, err
	}
	if err := together(nodes); err != nil {
		return nil, errors.Join(err, nodes.Stop())
	}
	time.Sleep(30 * time.Second)
	fmt.Fprintf(w, "seed %d: %d nodes at sites of %v know each other, %.4f of their neighbours are right: after %v (real: %v)\n",
		o.seed, nodes.Len(), layout.Sizes, nodes.Right(), time.Since(begun).Round(time.Second), (testnet.RealTime() - real).Round(time.Second))
	return nodes, nil
}

// together waits until all nodes that are up know each other.
func together(nodes *testnet.Nodes) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	_, err := nodes.AwaitKnown(ctx, nodes.Up())
	return err
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
