package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"zorilla/internal/seeds"
)

func TestSchedulesByHand(t *testing.T) {
	wide := func(n, length int) run { return run{islands: 1, size: n, length: length} }
	for _, c := range []struct {
		clusters               []int
		runs                   []run
		inOrder, easy, optimum int
	}{
		{[]int{4}, nil, 0, 0, 0},
		{[]int{4}, []run{wide(4, 5)}, 5, 5, 5},
		{[]int{4}, []run{wide(2, 5), wide(2, 7)}, 7, 7, 7},
		// 3 for 10, 4 for 10, 1 for 10: only the last fills the hole beside the first.
		{[]int{4}, []run{wide(3, 10), wide(4, 10), wide(1, 10)}, 30, 20, 20},
		// One that would be in the way of the promised start waits: 11 > 10.
		{[]int{4}, []run{wide(3, 10), wide(4, 10), wide(1, 11)}, 31, 31, 21},
		// Two short ones first, then the long one beside both: 2+2, 2+2 instead of a tail of 8.
		{[]int{4}, []run{wide(2, 4), wide(2, 4), wide(2, 8)}, 12, 12, 8},
		// Islands of 3 fit one to a cluster of 4, both or none: a run of two waits for two clusters.
		{[]int{4, 4}, []run{wide(4, 6), {islands: 2, size: 3, length: 5}, wide(3, 6)}, 17, 11, 11},
		// Two islands of 2 may share a cluster.
		{[]int{4, 4}, []run{wide(4, 6), {islands: 2, size: 2, length: 5}}, 6, 6, 6},
	} {
		if a, b, o := inOrder(c.clusters, c.runs), easy(c.clusters, c.runs), optimal(c.clusters, c.runs); a != c.inOrder || b != c.easy || o != c.optimum {
			t.Errorf("%+v take %d in order, %d with EASY, %d at best; want %d, %d, %d", c.runs, a, b, o, c.inOrder, c.easy, c.optimum)
		}
	}
}

// The optimum is that of all starts, minute by minute, and all places.
func TestOptimumOfAllStarts(t *testing.T) {
	seeds.Random(t, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		for range 40 {
			clusters := []int{2 + rnd.IntN(2), 1 + rnd.IntN(2)}
			var runs []run
			for range 3 {
				runs = append(runs, run{1 + rnd.IntN(2), 1, 1 + rnd.IntN(3)})
			}
			s, best := schedule{clusters: clusters}, 99
			var try func(i int)
			try = func(i int) {
				if i == len(runs) {
					best = min(best, s.makespan())
					return
				}
				for at := range 9 {
					for _, uses := range s.ways(runs[i]) {
						if p := (part{at, at + runs[i].length, uses}); s.fits(p) {
							s.add(p)
							try(i + 1)
							s.parts = s.parts[:i]
						}
					}
				}
			}
			try(0)
			if got := optimal(clusters, runs); got != best {
				t.Fatal(fmt.Errorf("seed %d: %+v on %v take %d at best, not %d", seed, runs, clusters, best, got))
			}
		}
	})
}
