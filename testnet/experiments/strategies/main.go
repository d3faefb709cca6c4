// Command strategies repeats the experiment on co-allocation of Genaud and
// Rattanapoka, Large-Scale Experiment of Co-allocation Strategies for
// Peer-to-Peer SuperComputing in P2P-MPI, section 5.1 and figures 2 and 3, on
// simulated nodes: the 350 hosts with 1040 cores of its table 1, at six sites,
// and one job of 100 to 600 processes from Nancy, spread and concentrated.
//
//	go run ./testnet/experiments/strategies
//
// writes docs/experiments/strategies.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"zorilla/jobs/placement"
	"zorilla/testnet/chart"
)

// options is what the command line chooses.
type options struct {
	grid  *grid
	sizes []int // of jobs
	seeds int
	out   string
}

func main() {
	out := flag.String("out", "docs/experiments/strategies", "folder for the results; empty = none")
	seeds := flag.Int("seeds", 5, "networks of each kind")
	flag.Parse()
	w, done, err := chart.Results(*out)
	if err == nil {
		o := options{grid: table1(), seeds: *seeds, out: *out}
		for n := 100; n <= 600; n += 50 {
			o.sizes = append(o.sizes, n)
		}
		err = errors.Join(run(w, o), done())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "strategies:", err)
		os.Exit(1)
	}
}

// run places all jobs in all networks and writes tables and figures.
func run(w io.Writer, o options) error {
	var all []place
	for _, k := range kinds() {
		for seed := range o.seeds {
			list, err := o.grid.measure(k, uint64(seed)+1, o.sizes)
			if err != nil {
				return err
			}
			all = append(all, list...)
		}
	}
	report(w, o, all)
	if o.out == "" {
		return nil
	}
	if err := o.csv(all); err != nil {
		return err
	}
	for _, k := range kinds() {
		if !k.drawn {
			continue
		}
		for _, s := range strategies() {
			for _, hosts := range []bool{true, false} {
				if err := o.figure(all, k, s, hosts); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func strategies() []placement.Strategy {
	return []placement.Strategy{placement.Concentrate, placement.Spread}
}

// csv keeps what every job got at every site.
func (o *options) csv(all []place) error {
	header := []string{"network", "seed", "strategy", "processes", "started_ms", "messages", "elsewhere"}
	for _, s := range o.grid.sites {
		header = append(header, s+"_hosts", s+"_cores", s+"_hosts_ideal", s+"_cores_ideal")
	}
	var rows [][]string
	for _, p := range all {
		row := []string{p.kind.name, fmt.Sprint(p.seed), string(p.strategy), fmt.Sprint(p.size),
			chart.Number(1000 * p.started.Seconds()), fmt.Sprint(p.messages), fmt.Sprint(p.elsewhere())}
		for s := range o.grid.sites {
			row = append(row, fmt.Sprint(p.got.hosts[s]), fmt.Sprint(p.got.cores[s]), fmt.Sprint(p.ideal.hosts[s]), fmt.Sprint(p.ideal.cores[s]))
		}
		rows = append(rows, row)
	}
	return chart.CSV(filepath.Join(o.out, "strategies.csv"), header, rows)
}
