package main

import (
	"os"
	"path/filepath"
	"testing"

	"zorilla/internal/seeds"
	"zorilla/testnet"
)

// TestJobsOnASmallNetwork runs launch and series on a few nodes.
func TestJobsOnASmallNetwork(t *testing.T) {
	dir := t.TempDir()
	if err := run(testnet.InTest(t), options{only: "jobs", nodes: seeds.Fewer(15, 9), origins: 1, seed: 3, out: dir}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"whole/launch.csv", "whole/series.csv", "whole/rtt.png", "whole/start.png", "whole/messages.png"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Size() < 100 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
}

func TestDeviation(t *testing.T) {
	points := []point{
		{kind: whole, mode: modes[0], workers: 1, start: 10}, {kind: simulated, mode: modes[0], workers: 1, start: 11},
		{kind: whole, mode: modes[0], workers: 2, start: 10}, {kind: simulated, mode: modes[0], workers: 2, start: 7},
		{kind: whole, mode: modes[1], workers: 2, start: 10}, {kind: simulated, mode: modes[1], workers: 4, start: 1},
		{kind: whole, mode: modes[0], workers: 4, start: 0.1}, {kind: simulated, mode: modes[0], workers: 4, start: 0.2},
	}
	most, mean, at := deviation(points, simulated, modes[0], 0.2, func(p point) float64 { return p.start })
	if most > -0.29 || most < -0.31 || mean < 0.13 || mean > 0.14 || at != 2 {
		t.Errorf("%v at most, for %d workers, %v on average; want -0.3, 2 and 0.133", most, at, mean)
	}
}
