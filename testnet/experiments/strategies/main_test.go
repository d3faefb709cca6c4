package main

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/seeds"
	"zorilla/jobs/placement"
	"zorilla/testnet/chart"
)

func TestTable1(t *testing.T) {
	g := table1()
	hosts, cores := 0, 0
	for i := range g.sites {
		h, c := g.cores(i)
		hosts, cores = hosts+h, cores+c
	}
	if hosts != 350 || cores != 1040 || len(g.slots) != 350 {
		t.Errorf("%d hosts (%d), %d cores", hosts, len(g.slots), cores)
	}
}

// What the paper says of its figures holds for the ideal.
func TestIdealIsThePapers(t *testing.T) {
	g := table1()
	order := make([]int, len(g.slots)) // nodes are numbered by site, and these by distance
	for i := range order {
		order[i] = i
	}
	for _, c := range []struct {
		strategy     placement.Strategy
		processes    int
		hosts, cores []int
	}{
		{placement.Concentrate, 200, []int{50, 0, 0, 0, 0, 0}, []int{200, 0, 0, 0, 0, 0}},
		{placement.Concentrate, 250, []int{60, 5, 0, 0, 0, 0}, []int{240, 10, 0, 0, 0, 0}}, // "5 for -n 250"
		{placement.Spread, 250, []int{60, 50, 90, 50, 0, 0}, []int{60, 50, 90, 50, 0, 0}},  // "the four closest sites"
		{placement.Spread, 300, []int{60, 50, 90, 60, 20, 20}, []int{60, 50, 90, 60, 20, 20}},
		{placement.Spread, 400, []int{60, 50, 90, 60, 20, 70}, []int{110, 50, 90, 60, 20, 70}}, // "a stair at 400"
	} {
		if got := g.deal(order, c.strategy, c.processes); !slices.Equal(got.hosts, c.hosts) || !slices.Equal(got.cores, c.cores) {
			t.Errorf("%s %d: %v", c.strategy, c.processes, got)
		}
	}
}

// The experiment itself, small: three sites, and all files that it writes.
func TestSmallGrid(t *testing.T) {
	seeds.OneGoroutine(t)
	rtt := table1().rtt
	g := newGrid([]string{"here", "near", "far"}, [][]time.Duration{
		{0, rtt[0][1], rtt[0][5]}, {rtt[0][1], 0, rtt[1][5]}, {rtt[0][5], rtt[1][5], 0},
	}, []cluster{{0, 6, 24}, {1, 5, 10}, {2, 4, 4}, {2, 3, 12}})
	var text bytes.Buffer
	dir := t.TempDir()
	if err := chart.Keep(dir, func(w *chart.Results) error {
		w.Writer = io.MultiWriter(w.Writer, &text)
		return run(w, g, []int{4, 12, 18, 30, 50}, 1)
	}); err != nil {
		t.Fatal(err)
	}
	if s := text.String(); strings.Count(s, "elsewhere") != 6 || !strings.Contains(s, "spread       calm hosts                          0 of 114, 0.00 %") {
		t.Error(s)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 10 { // and what it has printed
		t.Errorf("%d files, %v", len(files), err)
	}
	list, err := g.measure(kinds()[0], 2, []int{12, 60})
	if err == nil || list != nil {
		t.Errorf("60 processes on 50 cores: %v", list)
	}
}
