package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"zorilla/testnet/sim"
)

// ground is a kind of network for the parts drift, hubs and young.
type ground struct {
	name   string
	layout func(n int, seed uint64) (sim.Layout, sim.Paths)
}

func (g ground) start(nodes int, seed uint64) *sim.Overlay {
	layout, paths := g.layout(nodes, seed)
	return sim.NewOverlay(sim.OverlayConfig{Layout: layout, Paths: paths, Seed: seed, Noise: sim.Usual()})
}

// grounds returns a kind of network with real distances, if files with some are named,
// and three that are made up.
func grounds(matrix string) ([]ground, error) {
	list := []ground{
		{"six sites", func(n int, _ uint64) (sim.Layout, sim.Paths) { return sim.SixSites(n, false), nil }},
		{"line", func(n int, _ uint64) (sim.Layout, sim.Paths) { return sim.Line(n, 30, 2*time.Millisecond), nil }},
		{"home", func(n int, seed uint64) (sim.Layout, sim.Paths) { return sim.Home(n, seed), nil }},
	}
	if matrix == "" {
		return list, nil
	}
	var sources []io.Reader
	for name := range strings.SplitSeq(matrix, ",") {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		sources = append(sources, f)
	}
	m, err := sim.ReadMatrix(sources...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", matrix, err)
	}
	return append(list, ground{"matrix", m.Layout}), nil
}

// onEach measures all kinds of networks at the same time, and returns the rows in their
// order.
func (o options) onEach(measure func(ground) [][]any) (rows [][]any) {
	parts := make([][][]any, len(o.grounds))
	var all sync.WaitGroup
	for i, g := range o.grounds {
		all.Go(func() { parts[i] = measure(g) })
	}
	all.Wait()
	return slices.Concat(parts...)
}

// runs returns how many runs there are of a network.
func (o options) runs(nodes int) uint64 {
	if nodes > 400 {
		return 1
	}
	return uint64(o.seeds)
}

// percents writes the median of some shares, and the least.
func percents(shares []float64) string {
	slices.Sort(shares)
	return fmt.Sprintf("%.1f / %.1f", 100*shares[(len(shares)-1)/2], 100*shares[0])
}

// numbers writes the median of some values, and the largest.
func numbers(format string, values []float64) string {
	slices.Sort(values)
	return fmt.Sprintf(format+" / "+format, values[len(values)/2], values[len(values)-1])
}
