// Command vicinity measures how soon nodes find the nearest others, and what
// that costs: bare vicinity cores in virtual time, on networks whose true
// distances are known. It prints tables with the targets beside the values and
// keeps figures and data in a folder.
//
//	go run ./testnet/experiments/vicinity                          all of it, half an hour
//	go run ./testnet/experiments/vicinity -quick                   small networks, a minute
//	go run ./testnet/experiments/vicinity -only drift,hubs,young   what changes, crowds, begins; ten minutes
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"zorilla/testnet/chart"
	"zorilla/testnet/sim"
)

// want is how many near neighbours a node wants: the protocol's default.
const want = 6

// network is a layout to be measured, with the time after which 99 % of the
// near neighbours must be right.
type network struct {
	name   string
	layout func(nodes int, seed uint64) sim.Layout
	target time.Duration // at 400 nodes; twice as much at 2000
}

func networks() []network {
	plane := func(sites int) func(int, uint64) sim.Layout {
		return func(n int, seed uint64) sim.Layout { return sim.Plane(n, sites, seed) }
	}
	return []network{
		{"6 equal sites", func(n int, _ uint64) sim.Layout { return sim.SixSites(n, false) }, 10 * time.Second},
		{"6 uneven sites", func(n int, _ uint64) sim.Layout { return sim.SixSites(n, true) }, 15 * time.Second},
		{"40 sites", plane(40), 30 * time.Second},
		{"100 sites", plane(100), 30 * time.Second},
	}
}

// allowed is the target for a number of nodes: between 400 and 2000 it grows
// with the logarithm, to twice as much.
func (w network) allowed(nodes int) time.Duration {
	switch {
	case nodes <= 400:
		return w.target
	case nodes < 2000:
		return w.target * 3 / 2
	}
	return 2 * w.target
}

func (w network) start(nodes int, seed uint64) *sim.Overlay {
	return sim.NewOverlay(sim.OverlayConfig{Layout: w.layout(nodes, seed), Seed: seed, Noise: sim.Usual()})
}

type options struct {
	*chart.Results
	quick                   bool
	seeds                   int
	sizes                   []int
	grounds                 []ground
	drifting, crowds, young []int
}

func main() {
	quick := flag.Bool("quick", false, "small networks and one seed; writes nothing unless -out is given")
	out := flag.String("out", "", "folder for figures and data; docs/experiments/vicinity unless -quick")
	seeds := flag.Int("seeds", 5, "runs of each network of up to 400 nodes; larger ones have one")
	sizes := flag.String("sizes", "400,1000,2000", "how many nodes, for the part find")
	only := flag.String("only", "find,places,trouble,drift,hubs,young", "some parts")
	matrix := flag.String("matrix", "", "files with round trips that were measured, as another network for drift, hubs and young; see sim.ReadMatrix")
	drifting := flag.String("drifting", "100,400,1000", "how many nodes, for the part drift")
	crowds := flag.String("crowds", "100,400", "how many nodes, for the part hubs")
	starting := flag.String("starting", "3000", "how many nodes, for the part young")
	flag.Parse()
	o := options{quick: *quick, seeds: *seeds}
	if o.quick {
		o.seeds, *sizes, *drifting, *crowds, *starting = 1, "120", "120", "120", "120"
	} else if *out == "" {
		*out = "docs/experiments/vicinity"
	}
	for _, list := range []struct {
		words string
		to    *[]int
	}{{*sizes, &o.sizes}, {*drifting, &o.drifting}, {*crowds, &o.crowds}, {*starting, &o.young}} {
		for word := range strings.SplitSeq(list.words, ",") {
			n, err := strconv.Atoi(word)
			if err != nil || n < 2 || n > 20_000 {
				fmt.Fprintf(os.Stderr, "vicinity: %q: want numbers of nodes from 2 to 20000, with commas between\n", list.words)
				os.Exit(2)
			}
			*list.to = append(*list.to, n)
		}
	}
	var err error
	if o.grounds, err = grounds(*matrix); err != nil {
		fmt.Fprintf(os.Stderr, "vicinity: %v\n", err)
		os.Exit(2)
	}
	chart.Exit("vicinity", chart.Keep(*out, func(w *chart.Results) error {
		o.Results = w
		for _, part := range []struct {
			name string
			run  func(options) error
		}{{"find", find}, {"places", places}, {"trouble", trouble}, {"drift", drift}, {"hubs", hubs}, {"young", young}} {
			if !slices.Contains(strings.Split(*only, ","), part.name) {
				continue
			}
			if err := part.run(o); err != nil {
				return err
			}
		}
		return nil
	}))
}

// keep prints a table and writes it to NAME.csv.
func (o options) keep(name string, header []string, rows [][]any) error {
	w := tabwriter.NewWriter(o, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(header, "\t"))
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(chart.Cells(row...), "\t"))
	}
	fmt.Fprintln(w)
	o.CSV(name+".csv", header, rows)
	return w.Flush()
}

func seconds(d time.Duration) string {
	if d < 0 {
		return "never"
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
