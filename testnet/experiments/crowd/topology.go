package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"zorilla/testnet/sim"
)

// topology is a kind of network by name.
type topology struct {
	name   string
	layout func(n int, seed uint64) (sim.Layout, sim.Paths)
}

// topologies finds kinds of networks by their names; matrix, if it is not empty, names
// files with round trips that were measured, with commas between.
func topologies(names, matrix string) (list []topology, err error) {
	known := map[string]func(n int, seed uint64) (sim.Layout, sim.Paths){
		"six":  func(n int, _ uint64) (sim.Layout, sim.Paths) { return sim.SixSites(n, false), nil },
		"line": func(n int, _ uint64) (sim.Layout, sim.Paths) { return sim.Line(n, 30, 2*time.Millisecond), nil },
		"home": func(n int, seed uint64) (sim.Layout, sim.Paths) { return sim.Home(n, seed), nil },
	}
	if matrix != "" {
		m, err := readMatrix(strings.Split(matrix, ","))
		if err != nil {
			return nil, err
		}
		known["matrix"] = m.Layout
	}
	for name := range strings.SplitSeq(names, ",") {
		layout := known[name]
		if layout == nil {
			return nil, fmt.Errorf("topology %q: want six, line, home, or matrix with -matrix", name)
		}
		list = append(list, topology{name, layout})
	}
	return list, nil
}

func readMatrix(names []string) (*sim.Matrix, error) {
	var sources []io.Reader
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		sources = append(sources, f)
	}
	m, err := sim.ReadMatrix(sources...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(names, ", "), err)
	}
	return m, nil
}

// noise finds the noise of a network by its name.
func noise(name string) (sim.Noise, error) {
	n := sim.Usual()
	switch name {
	case "lossless":
		n.Loss = 0
	case "usual":
	case "loss2":
		n.Loss = 0.02
	case "loss10":
		n.Loss = 0.1
	case "heavy":
		n = sim.Heavy()
	default:
		return n, fmt.Errorf("noise %q: want lossless, usual, loss2, loss10 or heavy", name)
	}
	return n, nil
}
