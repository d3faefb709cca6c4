package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// TestLossOnASmallNetwork runs jobs on a few nodes where packets get lost.
func TestLossOnASmallNetwork(t *testing.T) {
	dir := t.TempDir()
	if err := run(testnet.InTest(t), options{only: "loss", lossy: seeds.Fewer(12, 8), origins: 1, seed: 3, out: dir}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "whole/loss/loss.csv"))
	if err != nil || !strings.HasPrefix(string(text), "workers,jobs,ratio") || !strings.Contains(string(text), "\nall,6,") {
		t.Errorf("%v, %s", err, text)
	}
}

func TestLossyRow(t *testing.T) {
	ms := func(list ...time.Duration) []time.Duration {
		for i := range list {
			list[i] *= time.Millisecond
		}
		return list
	}
	list := []sample{
		{trial: trial{workers: 4}, chosen: ms(10, 10), best: ms(10, 10), start: time.Second, messages: 3},
		{trial: trial{workers: 4}, chosen: ms(30, 30), best: ms(10, 10), start: 2 * time.Second, messages: 5},
		{trial: trial{workers: 8}, chosen: ms(90), best: ms(90), start: 3 * time.Second, messages: 9},
	}
	if row := lossyRow(list, 4); row[1] != 2 || row[2] != "1.995" || row[3] != "2.98" || row[4] != "2000" || row[7] != 5 {
		t.Errorf("got %v", row)
	}
	if row := lossyRow(list, 0); row[0] != "all" || row[1] != 3 || row[2] != "1.307" {
		t.Errorf("got %v", row)
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
