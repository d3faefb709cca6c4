// Maheve simulates table 1 of R. Couturier, D. Laiymani and S. Miquée, MAHEVE: An Efficient Reliable Mapping of
// Asynchronous Iterative Applications on Volatile and Heterogeneous Environments: 64 tasks iterate
// asynchronously on nodes of four or five clusters, of which two that are in use fail every 20 seconds.
// How much sooner do they converge if tasks are mapped, and failed nodes replaced, by MAHEVE?
//
//	go run ./testnet/experiments/maheve -measure            # as root, six minutes: how long things take
//	go run ./testnet/experiments/maheve                     # some minutes: the table
//	go run ./testnet/experiments/maheve -seeds 3 -out ''    # less than one, keeps nothing
//
// Mappings are those of the program (jobs/placement/mapping); everything else is simulated, with times
// of docs/experiments/maheve/measured.json. These are measured first, with real nodes on emulated hosts
// (testnet/hosts); the file says of each where it is from.
// docs/experiments/maheve/README.md says what is simulated, and how.
package main

import (
	"context"
	"flag"
	"os/signal"
	"syscall"

	"zorilla/testnet/chart"
	"zorilla/testnet/hosts/lab"
)

type options struct {
	out, measured string
	seeds, shapes int
	far           []float64 // seconds that a far restore takes, of which the effect is shown
	measure       bool
	effort
}

func main() {
	o := options{far: []float64{1, 2.5, 5, 7.5, 10, 12.5, 15, 20, 25, 30}}
	flag.StringVar(&o.out, "out", "docs/experiments/maheve", "folder for the results; empty = none")
	flag.StringVar(&o.measured, "measured", "docs/experiments/maheve/measured.json", "file with the times to simulate with")
	flag.IntVar(&o.seeds, "seeds", 20, "runs on each architecture, with graphs, orders of nodes and failures of their own")
	flag.IntVar(&o.shapes, "shapes", 5, "architectures of each degree of heterogeneity")
	flag.BoolVar(&o.measure, "measure", false, "measure the times, and write that file")
	quick := flag.Bool("quick", false, "with -measure: everything once, keeps nothing")
	flag.Parse()
	o.effort = efforts[*quick]
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if lab.Inside() {
		chart.Exit("maheve", watch(ctx, &o.effort))
	}
	if o.measure {
		chart.Exit("maheve", measure(ctx, &o))
	}
	chart.Exit("maheve", chart.Keep(o.out, func(r *chart.Results) error { return experiment(r, &o) }))
}

// experiment plays table 1, and then with failures once more for each cost of a far restore.
func experiment(r *chart.Results, o *options) error {
	m, err := readMeasured(o.measured)
	if err != nil {
		return err
	}
	all := play(o, m)
	reportInputs(r, o, m)
	reportSummary(r, all)
	reportTable(r, all)
	sweep(r, o, m)
	keep(r, all)
	return nil
}
