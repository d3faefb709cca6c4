package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"zorilla/testnet/sim"
)

// topology is a kind of network by name.
type topology struct {
	name   string
	layout func(n int, seed uint64) (sim.Layout, sim.Paths)
	live   bool // delays are as they were at one of the times at which they were measured
	nat    int  // percent of the nodes to which only answers come in
}

// measured is the files with what somebody has measured, and what of it counts.
type measured struct {
	files string // with commas between; "" = none
	ways  bool   // they hold ways, not round trips
	live  bool
	nat   int
}

// guarded chooses the nodes to which only answers come in; nil = none.
func (t *topology) guarded(n int, seed uint64) func(node int) bool {
	if t.nat == 0 {
		return nil
	}
	behind := make([]bool, n)
	for _, i := range rand.New(rand.NewPCG(seed, 0x4a7)).Perm(n)[:n*t.nat/100] {
		behind[i] = true
	}
	return func(node int) bool { return behind[node] }
}

// topologies finds kinds of networks by their names.
func topologies(names string, world measured) (list []topology, err error) {
	known := map[string]func(n int, seed uint64) (sim.Layout, sim.Paths){
		"six":  func(n int, _ uint64) (sim.Layout, sim.Paths) { return sim.SixSites(n, false), nil },
		"line": func(n int, _ uint64) (sim.Layout, sim.Paths) { return sim.Line(n, 30, 2*time.Millisecond), nil },
		"home": func(n int, seed uint64) (sim.Layout, sim.Paths) { return sim.Home(n, seed), nil },
	}
	if world.nat < 0 || world.nat > 90 {
		return nil, fmt.Errorf("-nat %d: want a share of 0 to 90 percent", world.nat)
	}
	if world.files != "" {
		m, err := readMatrix(strings.Split(world.files, ","), world.ways)
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
		t := topology{name: name, layout: layout, live: world.live, nat: world.nat}
		if t.live {
			t.name += ",live"
		}
		if t.nat > 0 {
			t.name += fmt.Sprintf(",nat%d", t.nat)
		}
		list = append(list, t)
	}
	return list, nil
}

func readMatrix(names []string, ways bool) (*sim.Matrix, error) {
	var sources []io.Reader
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		sources = append(sources, f)
	}
	read := sim.ReadMatrix
	if ways {
		read = sim.ReadWays
	}
	m, err := read(sources...)
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
