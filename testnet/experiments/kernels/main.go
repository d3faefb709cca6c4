// Kernels runs two parallel programs on emulated hosts at six sites: figure 4 of Genaud
// and Rattanapoka, the run times of a kernel that only computes (EP) and of one that sends
// most of what it has to all others (IS), on hosts that --strategy spread and concentrate
// have chosen.
//
//	go run ./testnet/experiments/kernels                # as root, about seven minutes
//	go run ./testnet/experiments/kernels -rounds 1 -out ''
//
// The nodes are real, with four slots each, and so are the programs, those of
// examples/mpi: "zorilla run --mpi -n N --strategy S". What they send between sites the
// lab delays (testnet/hosts), once with the distances of Grid'5000, and once, to compare,
// with all twelve hosts in one room. Each program checks its result, and says itself how
// long it took without the start.
//
// It needs root, Open MPI's compiler and make. It prints tables and writes them, with a
// figure for each kernel, into a folder.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"zorilla/testnet/chart"
	"zorilla/testnet/hosts/lab"
)

// kernel is a program of examples/mpi with what it is given.
type kernel struct {
	name, title string
	args        []string
}

var kernels = []kernel{
	{"ep", "EP, 2^24 pairs", []string{"24"}},
	{"is", "IS, 2^18 keys, ten times", []string{"18", "10"}},
}

// strategies are compared, in this order.
var strategies = []string{"concentrate", "spread"}

// plans are the networks, with what a figure calls them.
var plans = []struct{ name, title string }{{"grid5000", "six sites"}, {"room", "one room"}}

// sizes are how many processes a job has; all twelve hosts have 48 slots.
var sizes = []int{2, 4, 8, 12, 16, 24, 32}

const slots = 4 // of each host

// trial is one run of a kernel.
type trial struct {
	Plan, Kernel, Strategy string
	Size, Round            int
	Seconds                float64 // as the program says
	Wall                   float64 // of zorilla run, seconds
	Hosts, Sites           int
	Failed                 string // "" or why there is no time
}

type options struct {
	out    string
	rounds int
	// Of the script in the lab:
	plan, programs, trials string
}

func main() {
	var o options
	flag.StringVar(&o.out, "out", "docs/experiments/kernels", "folder for the results; empty = none")
	flag.IntVar(&o.rounds, "rounds", 7, "runs of each kind, of which the median counts")
	flag.StringVar(&o.plan, "plan", "", "in the lab: its name")
	flag.StringVar(&o.programs, "programs", "", "in the lab: where the kernels are")
	flag.StringVar(&o.trials, "trials", "", "in the lab: the file for what was found")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if lab.Inside() {
		chart.Exit("kernels", play(ctx, &o))
	}
	chart.Exit("kernels", chart.Keep(o.out, func(r *chart.Results) error {
		before := lab.Load()
		all, err := collect(ctx, &o)
		if err == nil {
			report(r, all, o.rounds)
			fmt.Fprintf(r, "\nLoad of the machine before and after: %s; %s.\n", before, lab.Load())
		}
		return err
	}))
}

// collect plays the experiment in one lab after the other.
func collect(ctx context.Context, o *options) (all []trial, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root may share processors among ranks as it is meant: run as root")
	}
	dir, err := os.MkdirTemp("", "zorilla-kernels-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if out, err := exec.CommandContext(ctx, "make", "-s", "-C", "examples/mpi", "OUT="+dir, "MPIS=openmpi", "all").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the kernels: %w: %.500s: start me in the root of the repository, after .ci/tools mpi", err, out)
	}
	for _, p := range plans {
		stage, err := lab.Build(ctx, p.name)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(dir, p.name)
		err = stage.Play(ctx, "-plan", p.name, "-programs", dir, "-trials", file, "-rounds", strconv.Itoa(o.rounds))
		if err = errors.Join(err, stage.Close()); err != nil {
			return nil, err
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var some []trial
		if err := json.Unmarshal(b, &some); err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
