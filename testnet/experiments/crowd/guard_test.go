package main

import (
	"slices"
	"testing"
	"time"

	"zorilla/internal/seeds"
)

// What the results promise, in one network of each kind: many jobs of one node, many jobs of
// many nodes, and one at a time where packets get lost.
func TestCrowdsKeepTheirBounds(t *testing.T) {
	seeds.OneGoroutine(t)
	line, err := topologies("line", measured{})
	if err != nil {
		t.Fatal(err)
	}
	alone := crowd{jobs: 10, workers: 8, alone: true, apart: 5500 * time.Millisecond} // holds of others' lost offers have ended
	lossy := alone
	lossy.fill = 80
	for _, c := range []struct {
		name  string
		noise string
		seed  uint64
		crowd crowd
		ratio float64 // of all jobs' round trips to the least possible
		worst float64 // of one job
		start float64 // the slowest tenth, in round trips to the farthest worker
		each  int     // copies of a job, median
		most  int     // of one, or of a call for several
	}{
		{"10 jobs of 4 of one node", "lossless", 1, crowd{jobs: 10, workers: 4, one: true}, 1.01, 1.01, 10, 30, 90},
		{"the same, half full", "lossless", 4, crowd{fill: 50, jobs: 10, workers: 4, one: true}, 1.01, 1.01, 8, 30, 110}, // where it shows that the others need what one job leaves
		{"the same, half full, 2 % lost", "loss2", 2, crowd{fill: 50, jobs: 10, workers: 4, one: true}, 1.01, 1.01, 20, 30, 120},
		{"20 jobs of 2 of 20 nodes, half full", "lossless", 1, crowd{fill: 50, jobs: 20, workers: 2}, 1.05, 20, 6, 15, 30},
		{"one at a time, 2 % lost", "loss2", 1, alone, 1.01, 1.1, 20, 20, 60},
		{"one at a time, a tenth lost", "loss10", 1, alone, 1.03, 1.3, 120, 25, 80}, // a request that is lost is sent again after 200 ms, 95 round trips
		{"the same, 80 % full", "loss10", 2, lossy, 1.03, 1.3, 150, 60, 120},
	} {
		c.crowd.topology, c.crowd.noise, c.crowd.nodes, c.crowd.warmUp, c.crowd.seeds = line[0], c.noise, 100, 20*time.Second, 1
		r, err := c.crowd.run(c.seed)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(r.trips)
		slices.Sort(r.copies)
		start, each, most := at(r.trips, 0.9), at(r.copies, 0.5), at(r.copies, 1)
		t.Logf("%s: ratio %.3f, worst job %.2f, start %.1f round trips, %d copies, %d at most", c.name, r.ratio, r.worst, start, each, most)
		if c.crowd.one {
			last, all := slices.Max(r.starts), sumOf(r.copies)
			t.Logf("the last start is %.1f times that of one job of all workers, with %.1f times the copies", float64(last)/float64(r.whole), float64(all)/float64(r.wholeCopies))
			if c.noise == "lossless" && (last > 2*r.whole || all > 2*r.wholeCopies) {
				t.Errorf("%s: the last starts after %v, all take %d copies; one job of all workers %v, %d; want at most twice as much", c.name, last, all, r.whole, r.wholeCopies)
			}
		}
		if r.failed > 0 || r.ratio > c.ratio || r.worst > c.worst || start > c.start || each > c.each || most > c.most {
			t.Errorf("%s: ratio %.3f, worst job %.2f, start %.1f round trips, %d copies a job, %d at most, %d jobs failed; want no more than %.2f, %.2f, %.0f, %d, %d, 0",
				c.name, r.ratio, r.worst, start, each, most, r.failed, c.ratio, c.worst, c.start, c.each, c.most)
		}
	}
}

// A job starts within ten seconds where there is room for it, if only at nodes that get no packet of its
// origin: a fifth of all are behind firewalls, packets get lost, and nineteen of twenty slots are taken. Its
// advertisement is sent a thousand times at most.
func TestJobsFindRoomBehindFirewalls(t *testing.T) {
	seeds.OneGoroutine(t)
	line, err := topologies("line", measured{nat: 20})
	if err != nil {
		t.Fatal(err)
	}
	c := crowd{topology: line[0], noise: "loss2", nodes: 100, fill: 95, jobs: 10, workers: 8, alone: true, apart: 10 * time.Second, warmUp: 20 * time.Second, seeds: 1}
	r, err := c.run(1)
	if err != nil {
		t.Fatal(err)
	}
	last, most := slices.Max(r.starts), slices.Max(r.copies)
	t.Logf("the slowest of %d starts after %v, the most copies are %d", len(r.starts), last, most)
	if r.failed > 0 || last > 10*time.Second || most > 1000 {
		t.Errorf("%d jobs failed, the slowest of the others started after %v, with %d copies at most; want none, 10 s and 1000", r.failed, last, most)
	}
}
