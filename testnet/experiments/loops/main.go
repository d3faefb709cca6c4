// Loops looks whether jobs get the slots that are nearest when others look for theirs at
// the same time. Nodes and jobs are real, on emulated hosts (testnet/hosts).
//
//	go run ./testnet/experiments/loops
//	go run ./testnet/experiments/loops -rounds 40 -out ''     # as .ci/run does, in less than a minute
//
// In the network "towns" three users run "zorilla run -n 2 hostname" again and again, each
// at a node with two slots, and with room enough at its site. In the network "remote" a job
// of six at a node that is far from all others comes right after a job of six of somebody
// else has ended. It prints where the workers were and when they started, and writes that
// into a folder.
//
// It ends with 1 if a job failed, less than 99 % of the three users' workers were at the
// own site, or a job passed over an idle slot of its own node.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"zorilla/testnet/chart"
	"zorilla/testnet/hosts/lab"
)

// part is one of the experiment's networks with those who use it.
type part struct {
	plan, title string
	workers     int      // of each job
	users       []string // hosts, by their names
	turns       bool     // each waits for the job of the one before; else they do not care
	roomy       bool     // there is room for all at their own sites
}

const slots = 2 // of each host

type options struct {
	out                    string
	rounds, tries, workers int
	// Of the script in the lab:
	plan, found string
}

// parts lists what is to be played.
func (o *options) parts() []part {
	return []part{
		{plan: "towns", title: "three users, each with room at the own site", workers: o.workers, users: []string{"quito-1", "riga-3", "oslo-1"}, roomy: true},
		{plan: "remote", title: "a job at a far node right after one of somebody else", workers: 6, users: []string{"home-1", "far-1"}, turns: true},
	}
}

func main() {
	var o options
	flag.StringVar(&o.out, "out", "docs/experiments/loops", "folder for the results; empty = none")
	flag.IntVar(&o.rounds, "rounds", 200, "jobs of each of the three users")
	flag.IntVar(&o.workers, "workers", 2, "workers of each of these; there is room for six at each of their sites")
	flag.IntVar(&o.tries, "tries", 10, "jobs at the far node")
	flag.StringVar(&o.plan, "plan", "", "in the lab: its name")
	flag.StringVar(&o.found, "found", "", "in the lab: the file for what was found")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if lab.Inside() {
		chart.Exit("loops", play(ctx, &o))
	}
	chart.Exit("loops", chart.Keep(o.out, func(r *chart.Results) error {
		before := lab.Load()
		all, err := collect(ctx, &o)
		if err != nil {
			return err
		}
		err = report(r, o.parts(), all)
		fmt.Fprintf(r, "\nLoad of the machine before and after: %s; %s.\n", before, lab.Load())
		return err
	}))
}

// collect plays each part in a lab of its own.
func collect(ctx context.Context, o *options) (all []job, err error) {
	dir, err := os.MkdirTemp("", "zorilla-loops-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, p := range o.parts() {
		stage, err := lab.Build(ctx, p.plan)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(dir, p.plan)
		err = stage.Play(ctx, "-plan", p.plan, "-found", file, "-rounds", strconv.Itoa(o.rounds),
			"-tries", strconv.Itoa(o.tries), "-workers", strconv.Itoa(o.workers))
		if err = errors.Join(err, stage.Close()); err != nil {
			return nil, err
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var some []job
		if err := json.Unmarshal(b, &some); err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
