// Detect measures how soon a node that is gone is missed, and how often one is that is not: by
// the overlay, and by a job that has a rank there, with --lost-after and without.
//
// In the lab (testnet/hosts), twelve real nodes at six sites: a node is killed with -9, a host is
// cut off, a node is paused for one and for three seconds. Then nothing is done to them for a
// while, beside busy loops, and what is lost is a false alarm.
//
// In virtual time (package testnet), 24 whole nodes at the same sites, whose machines fail, with
// and without lost packets; and false alarms there.
//
//	go run ./testnet/experiments/detect                              # as root, about 20 minutes
//	go run ./testnet/experiments/detect -calm 0 -virtual=false -out ''
//	go run ./testnet/experiments/detect -lab=false -out ''           # two minutes
//
// It prints tables and writes them into a folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"zorilla/testnet"
	"zorilla/testnet/chart"
	"zorilla/testnet/hosts/lab"
)

type options struct {
	out          string
	lab, virtual bool
	rounds       int
	calm         time.Duration
	busy         int
	seed         uint64
}

func main() {
	var o options
	flag.StringVar(&o.out, "out", "docs/experiments/detect", "folder for the results; empty = none")
	flag.BoolVar(&o.lab, "lab", true, "play the part in the lab")
	flag.BoolVar(&o.virtual, "virtual", true, "play the part in virtual time")
	flag.IntVar(&o.rounds, "rounds", 3, "lab: times that each thing is done")
	flag.DurationVar(&o.calm, "calm", 10*time.Minute, "lab: how long false alarms are waited for")
	flag.IntVar(&o.busy, "busy", 2*runtime.NumCPU(), "lab: busy loops beside that")
	flag.Uint64Var(&o.seed, "seed", 1, "of the virtual network, and of whom something is done to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if lab.Inside() {
		chart.Exit("detect", play(ctx, &o))
	}
	testnet.Main(func(bubble testnet.Bubble) error {
		return chart.Keep(o.out, func(r *chart.Results) error {
			if o.lab {
				found, err := collect(ctx, &o)
				if err != nil {
					return err
				}
				found.report(r)
			}
			if o.virtual {
				return virtual(r, bubble, o.seed)
			}
			return nil
		})
	})
}

// collect plays the part in the lab.
func collect(ctx context.Context, o *options) (f found, err error) {
	stage, err := lab.Build(ctx, "grid5000")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	err = stage.Ask(ctx, &f, "-rounds", strconv.Itoa(o.rounds), "-calm", o.calm.String(),
		"-busy", strconv.Itoa(o.busy), "-seed", fmt.Sprint(o.seed))
	return f, err
}
