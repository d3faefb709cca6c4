// Command floods measures what a node costs its machine, and what its users notice, while others
// flood it: clients that do not know the network's secret, and members that mean harm.
//
//	go run ./testnet/experiments/floods
//	go run ./testnet/experiments/floods -programs ./zorilla-before,./zorilla
//
// writes docs/experiments/floods. Nodes and floods are real, on addresses of the loopback.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"zorilla/testnet/chart"
	"zorilla/testnet/local"
)

type options struct {
	out, programs string
	length        time.Duration
	only          string
}

func main() {
	var o options
	flag.StringVar(&o.out, "out", "docs/experiments/floods", "folder for the results; empty = none")
	flag.StringVar(&o.programs, "programs", "", "the programs that are compared, with commas between; empty = the one that is here")
	flag.DurationVar(&o.length, "length", 20*time.Second, "how long each flood goes on")
	flag.StringVar(&o.only, "only", "", "only the flood of that name")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// The nodes end when the thread that started them does.
	runtime.LockOSThread()
	chart.Exit("floods", chart.Keep(o.out, func(r *chart.Results) error { return run(ctx, r, &o) }))
}

func run(ctx context.Context, r *chart.Results, o *options) error {
	dir, err := os.MkdirTemp("", "zorilla-floods-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	programs := strings.Split(o.programs, ",")
	if o.programs == "" {
		if programs[0], err = local.Build(ctx, dir); err != nil {
			return err
		}
	}
	fmt.Fprintf(r, "Floods of %v at a node that is idle otherwise. CPU: of one core. "+
		"Memory: anonymous, most. Listed: by zorilla nodes, of 2 that are there.\n\n",
		o.length)
	fmt.Fprintf(r, "%-12s %-62s %7s %6s %9s %6s %7s %9s %9s\n", "program", "flood", "sent", "CPU", "memory", "files", "listed", "run", "join")
	for _, f := range floods {
		if o.only != "" && f.name != o.only {
			continue
		}
		for _, p := range programs {
			got, err := try(ctx, filepath.Join(dir, "try"), p, f, o.length)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", filepath.Base(p), f.name, err)
			}
			fmt.Fprintf(r, "%-12s %-62s %s\n", filepath.Base(p), f.what, got)
		}
	}
	return nil
}
