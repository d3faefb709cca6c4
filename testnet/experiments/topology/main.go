// Topology runs two MPI programs as jobs of groups on emulated hosts at three sites: figures 5 and 6 of
// Kravtsov et al., Topology-aware job mapping (QosCosGrid). Is a program that says how its parts hang
// together almost as quick on several sites as on one?
//
//	go run ./testnet/experiments/topology              # as root, about ten minutes
//	go run ./testnet/experiments/topology -quick       # less than a minute, without figures
//
// Nodes and programs are real (examples/mpi, with Open MPI); what is sent between sites the lab delays
// (testnet/hosts, plan qoscosgrid). Both programs wait for most of what they would compute, since all
// hosts share the processors of this machine: docs/experiments/topology/README.md.
//
// islands, four of them, talk in every iteration inside, and in every tenth between: "good" is where
// Zorilla puts islands that are not to be split when they fill Orsay and Bordeaux; "bad" has half of
// each island at either; "single" has all in Orsay. nbody has its particles at three sites, or all at the
// slowest of them.
//
// A run that fails, as launches of many processes on a busy machine may, is repeated, and that is
// counted. The command ends with 1 if a run failed three times, ranks were elsewhere than they were
// to be, a result depends on the place, or, unless -quick, an aim was missed.
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

// network is the plan of the lab.
const network = "qoscosgrid"

type options struct {
	out          string
	rounds, most int
	quick        bool
	// Of the script in the lab:
	programs, trials string
}

func main() {
	var o options
	flag.StringVar(&o.out, "out", "docs/experiments/topology", "folder for the results; empty, or with -quick: none")
	flag.IntVar(&o.rounds, "rounds", 3, "runs of each kind, of which the median counts")
	flag.IntVar(&o.most, "most", 64, "the most processes of a run, up to 128")
	flag.BoolVar(&o.quick, "quick", false, "one short run of each kind, of 16 processes; the aims are not judged")
	flag.StringVar(&o.programs, "programs", "", "in the lab: where the programs are")
	flag.StringVar(&o.trials, "trials", "", "in the lab: the file for what was found")
	flag.Parse()
	if o.quick {
		o.out, o.rounds = "", 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if lab.Inside() {
		chart.Exit("topology", play(ctx, &o))
	}
	chart.Exit("topology", chart.Keep(o.out, func(r *chart.Results) error { return experiment(ctx, r, &o) }))
}

// experiment plays all runs in a lab, and reports them.
func experiment(ctx context.Context, r *chart.Results, o *options) error {
	before := lab.Load()
	all, err := collect(ctx, o)
	if err != nil {
		return err
	}
	err = report(r, o.cases(), all, o.quick)
	fmt.Fprintf(r, "\nLoad of the machine before and after: %s; %s.\n", before, lab.Load())
	return err
}

// collect plays the script in a lab, after which nothing is left of that.
func collect(ctx context.Context, o *options) (all []trial, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root may share processors among ranks as it is meant: run as root")
	}
	dir, err := os.MkdirTemp("", "zorilla-topology-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	build := exec.CommandContext(ctx, "make", "-s", "-C", "examples/mpi", "OUT="+dir, "PROGRAMS=groups islands nbody", "all")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the programs: %w: %.500s: start me in the root of the repository, after .ci/tools mpi", err, out)
	}
	stage, err := lab.Build(ctx, network)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "trials")
	err = stage.Play(ctx, "-programs", dir, "-trials", file, "-rounds", strconv.Itoa(o.rounds), "-most", strconv.Itoa(o.most),
		"-quick="+strconv.FormatBool(o.quick))
	if err = errors.Join(err, stage.Close()); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(b, &all)
}
