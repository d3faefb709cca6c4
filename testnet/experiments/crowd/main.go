// Command crowd measures where jobs get their workers, after what time and for how many messages, when the
// network does not make it easy: several jobs at once, lost packets, busy slots, nodes that have changed places,
// distances that are no plane. An oracle that knows everything gives them the nearest free slots, one after the
// other. The networks are simulated, of bare cores.
//
//	go run ./testnet/experiments/crowd                                  writes docs/experiments/crowd
//	go run ./testnet/experiments/crowd -topology matrix -matrix FILE,… -out ''   on round trips that somebody has measured
//	go run ./testnet/experiments/crowd -topology matrix -matrix testnet/sim/testdata/ways-1.txt,testnet/sim/testdata/ways-2.txt -ways -live -nat 20 -out ''
//
// Times are of the network alone: a worker is ready a millisecond after its
// grant, and disks take no time.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"zorilla/testnet/chart"
)

// options is what the command line chooses.
type options struct {
	parts      []string
	topologies []topology
	noises     []string
	seeds      int
	rows       []int
	out        string
}

func main() {
	o, err := parse(os.Args[1:])
	if err == nil {
		err = chart.Keep(o.out, func(w *chart.Results) error { return run(w, o) })
	}
	chart.Exit("crowd", err)
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("crowd", flag.ContinueOnError)
	parts := f.String("part", "burst,alone,change",
		"burst: jobs that are submitted together; alone: one at a time; change: of nodes that have changed places, or begun")
	topos := f.String("topology", "six,line,home", "networks: six sites, line, home, matrix")
	var world measured
	f.StringVar(&world.files, "matrix", "", "files with round trips that were measured, one for each time, for -topology matrix; see sim.ReadMatrix")
	f.BoolVar(&world.ways, "ways", false, "the files hold how long packets take one way")
	f.BoolVar(&world.live, "live", false, "each packet takes as long as at one of the times, at random")
	f.IntVar(&world.nat, "nat", 0, "percent of the nodes that get packets only of whom they have sent one to within a minute")
	noises := f.String("noise", "lossless,usual", "noise: lossless, usual, loss2, loss10, heavy")
	rows := f.String("rows", "", "numbers of the rows of each part, from 1; empty = all")
	f.IntVar(&o.seeds, "seeds", 0, "networks of each kind; 0 = five, but fewer large ones")
	f.StringVar(&o.out, "out", "docs/experiments/crowd", "folder for the results; empty = none")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.parts, o.noises = strings.Split(*parts, ","), strings.Split(*noises, ",")
	for _, part := range o.parts {
		if kinds[part] == nil {
			return o, fmt.Errorf("part %q: want burst, alone or change", part)
		}
	}
	for _, name := range o.noises {
		if _, err := noise(name); err != nil {
			return o, err
		}
	}
	if *rows != "" {
		for s := range strings.SplitSeq(*rows, ",") {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 {
				return o, fmt.Errorf("rows %q: want positive numbers with commas", *rows)
			}
			o.rows = append(o.rows, n)
		}
	}
	o.topologies, err = topologies(*topos, world)
	return o, err
}
