// Survive has machines die under a computation, one every few seconds, and measures how much longer
// it takes for that: with checkpoints, and without.
//
//	go run ./testnet/experiments/survive               # as root, about ten minutes
//	go run ./testnet/experiments/survive -rounds 1 -out ''
//	go run ./testnet/experiments/survive -quick        # less than a minute, one small run
//
// The computation is examples/async, as a malleable job of twelve ranks on twelve emulated hosts at
// three sites (testnet/hosts, plan spares). Every five seconds all processes of one of the hosts, but
// not of the origin, are killed with -9, and at once a node without a past starts on a spare host of
// the same site. Each kind of run has a lab of its own: undisturbed, with losses and checkpoints, and
// with the same losses but no checkpoints. docs/experiments/survive/README.md has more.
//
// The command ends with 1 if a solution is wrong, or an aim was missed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"zorilla/testnet/chart"
	"zorilla/testnet/hosts/lab"
)

// network is the plan of the lab.
const network = "spares"

type options struct {
	out    string
	rounds int
	quick  bool
	slots  int // of each host
	seed   uint64
	scale
	// Of the script in the lab:
	kind  string
	limit time.Duration
}

// scale is how large a run is.
type scale struct {
	hosts             int // of each site that have a node at a time
	min               int // workers to begin with; at most one for each of these hosts
	n                 int // points of the grid in each direction
	pause, every      time.Duration
	checkpoint        time.Duration
	most              int // kills; 0 = until the end
	longest           int // times the undisturbed run
	undisturbedAtMost time.Duration
}

// scales are the experiment, and the one for tests.
var scales = map[bool]scale{
	false: {hosts: 4, min: 6, n: 48, pause: 110 * time.Millisecond, every: 5 * time.Second,
		checkpoint: 2 * time.Second, longest: 3, undisturbedAtMost: 5 * time.Minute},
	true: {hosts: 2, min: 2, n: 24, pause: 50 * time.Millisecond, every: 4 * time.Second,
		checkpoint: time.Second, most: 2, longest: 1, undisturbedAtMost: 2 * time.Minute},
}

func main() {
	var o options
	flag.StringVar(&o.out, "out", "docs/experiments/survive", "folder for the results; empty, or with -quick: none")
	flag.IntVar(&o.rounds, "rounds", 2, "runs of each kind")
	flag.BoolVar(&o.quick, "quick", false, "one small run with losses and checkpoints; the aims are not judged")
	flag.IntVar(&o.slots, "slots", 2, "of each host; with 1 a rank that is lost waits for the new host")
	flag.Uint64Var(&o.seed, "seed", 1, "which hosts are lost; the next round has the next one")
	flag.StringVar(&o.kind, "kind", "", "in the lab: undisturbed, checkpoints or nothing")
	flag.DurationVar(&o.limit, "limit", 0, "in the lab: how long the run may take")
	flag.Parse()
	o.scale = scales[o.quick]
	if o.quick {
		o.out, o.rounds = "", 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if lab.Inside() {
		chart.Exit("survive", play(ctx, &o))
	}
	chart.Exit("survive", chart.Keep(o.out, func(r *chart.Results) error { return experiment(ctx, r, &o) }))
}

// experiment plays all runs, and reports them.
func experiment(ctx context.Context, r *chart.Results, o *options) error {
	before := lab.Load()
	all, err := collect(ctx, o)
	if err != nil {
		return err
	}
	err = report(r, all, o)
	fmt.Fprintf(r, "\nLoad of the machine before and after: %s; %s.\n", before, lab.Load())
	return err
}

// collect plays each run in a lab, after which nothing is left of that.
func collect(ctx context.Context, o *options) (all []trial, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root may give hosts processes of several users: run as root")
	}
	stage, err := lab.Build(ctx, network, "./examples/async")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	kinds := []string{undisturbed, kept, lostAll}
	if o.quick {
		kinds = []string{kept}
	}
	for round := range o.rounds {
		limit := o.undisturbedAtMost
		for _, kind := range kinds {
			var t trial
			if err := stage.Ask(ctx, &t, "-kind", kind, "-quick="+strconv.FormatBool(o.quick), "-slots", strconv.Itoa(o.slots),
				"-seed", strconv.FormatUint(o.seed+uint64(round), 10), "-limit", limit.String()); err != nil {
				return nil, err
			}
			t.Round = round + 1
			all = append(all, t)
			if kind == undisturbed && t.Solved {
				limit = time.Duration(float64(o.longest) * t.Seconds * float64(time.Second))
			}
		}
	}
	return all, nil
}
