package main

import (
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"zorilla/testnet"
	"zorilla/testnet/chart"
)

// Growth looks at networks of these sizes, as far as the options allow.
var (
	wholeSizes = []int{100, 200, 300, 338, 430}
	coreSizes  = []int{300, 1000, 3000, 10_000}
)

const (
	warmUp = 2 * time.Minute // until a network that has just come together is calm
	calm   = 3 * time.Minute // is measured then: at least one exchange of whole states by memberlist
	// floodRadius is more than the links between any two nodes.
	floodRadius = 12
)

// row is what was measured of one network.
type row struct {
	kind    string // "memberlist", "directory" or "cores"
	nodes   int
	most    time.Duration // from the last start until 99 % of all pairs know each other
	all     time.Duration // and until all do
	right   time.Duration // from 99 % known until 99 % of the near neighbours are right
	final   float64       // share of right neighbours in the end
	calm    rates
	flood   testnet.FloodReport
	heap    int64         // bytes per node, after garbage collection
	cpu     time.Duration // of the whole network in the calm
	coming  time.Duration // processor time until the calm
	took    time.Duration // real time in all
	virtual time.Duration // how long that was for the nodes
}

// rates are what a calm node sends per second.
type rates struct {
	bytes, packets float64 // on the wire
	vicinity       float64 // bytes of payload among them
}

// growth measures networks of all kinds and sizes, as far as the options allow.
func growth(w *chart.Results, bubble testnet.Bubble, o options) error {
	debug.SetMemoryLimit(6 << 30) // from there on, memory is worth more than time
	defer debug.SetMemoryLimit(math.MaxInt64)
	fmt.Fprintf(w, "seed %d\n%s\n", o.seed, strings.Join(head(), "\t"))
	var rows []row
	for _, kind := range []struct {
		sizes   []int
		most    int
		measure func(nodes int) (row, error)
	}{
		{wholeSizes, o.most, func(n int) (row, error) { return wholeNodes(bubble, n, o.seed) }},
		{coreSizes, o.cores, func(n int) (row, error) { return bareCores(n, o.seed) }},
	} {
		for _, n := range kind.sizes {
			if n > kind.most {
				break
			}
			r, err := kind.measure(n)
			if err != nil {
				return fmt.Errorf("%d nodes: %w", n, err)
			}
			rows = append(rows, r)
			fmt.Fprintln(w, strings.Join(chart.Cells(r.cells()...), "\t"))
			debug.FreeOSMemory()
		}
	}
	if len(rows) > 0 {
		keepGrowth(w, rows)
	}
	return nil
}

// head names the columns.
func head() []string {
	return []string{
		"kind", "nodes", "99% known s", "all known s", "99% right s", "right", "B/s", "packets/s", "vicinity B/s",
		"flood ms", "flood mean ms", "hops", "copies/node", "reached", "heap kB/node", "CPU ms/node/min", "CPU s to calm", "virtual s", "real s",
	}
}

func (r *row) cells() []any {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	s := func(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }
	perNode := func(v float64) float64 { return v / float64(r.nodes) }
	return []any{
		r.kind, r.nodes, s(r.most), s(r.all), s(r.right), r.final,
		fmt.Sprintf("%.0f", r.calm.bytes), fmt.Sprintf("%.2f", r.calm.packets), fmt.Sprintf("%.0f", r.calm.vicinity),
		ms(r.flood.Last), ms(r.flood.Mean()), r.flood.Hops, perNode(float64(r.flood.Messages)), r.flood.Reached,
		r.heap >> 10, perNode(float64(r.cpu.Milliseconds()) / calm.Minutes()), s(r.coming), s(r.virtual), s(r.took),
	}
}

// keepGrowth keeps the table and draws the figures.
func keepGrowth(w *chart.Results, rows []row) {
	var table [][]any
	for _, r := range rows {
		table = append(table, r.cells())
	}
	w.CSV("growth.csv", head(), table)
	draw := func(file, title, axis string, left bool, of func(row) float64) {
		f := chart.Figure{Title: title, X: "nodes", Y: axis, LogX: true, LogY: true, LegendLeft: left}
		for _, kind := range []string{"memberlist", "cores"} {
			s := chart.Line(chart.Series{Name: kind, Points: true}, rows, func(r row) (x, y float64, ok bool) {
				return float64(r.nodes), of(r), r.kind == kind && of(r) > 0
			})
			if len(s.X) > 0 {
				f.Series = append(f.Series, s)
			}
		}
		w.PNG(file, f)
	}
	draw("bytes.png", "What a calm node sends", "bytes a second", false, func(r row) float64 { return r.calm.bytes })
	draw("heap.png", "What a node needs of memory", "kB", true, func(r row) float64 { return float64(r.heap) / 1024 })
}
