package main

import (
	"math"
	"testing"
	"time"

	"zorilla/internal/seeds"
)

func TestRandIndex(t *testing.T) {
	for _, x := range []struct {
		a, b           []int
		rand, adjusted float64
	}{
		{[]int{0, 0, 1, 1}, []int{5, 5, 3, 3}, 1, 1},
		{[]int{0, 0, 0, 0}, []int{1, 1, 1, 1}, 1, 1},
		{[]int{0, 0, 1, 1}, []int{0, 1, 0, 1}, 1. / 3, -0.5},
		{[]int{0, 0, 0, 0}, []int{0, 0, 1, 1}, 1. / 3, 0},
		{[]int{0}, []int{1}, 1, 1},
	} {
		rand, adjusted := randIndex(x.a, x.b)
		if math.Abs(rand-x.rand) > 1e-9 || math.Abs(adjusted-x.adjusted) > 1e-9 {
			t.Errorf("%v and %v: %v, %v, want %v, %v", x.a, x.b, rand, adjusted, x.rand, x.adjusted)
		}
	}
}

// The simulator is the referee of the targets: a small network meets them.
func TestSmallNetworksMeetTheirTargets(t *testing.T) {
	seeds.OneGoroutine(t)
	for _, w := range networks() {
		const nodes, seed = 60, 1
		o := w.start(nodes, seed)
		if got := until(o, 0.99); got < 0 || got > w.target {
			t.Errorf("seed %d: %s, %d nodes: right after %v, want %v", seed, w.name, nodes, got, w.target)
		}
		o.Run(time.Minute)
		// Of a hundred random sites two may be as near as one.
		if _, rand, _ := clustered(o, 1); rand < 0.998 {
			t.Errorf("seed %d: %s, %d nodes: the clusters are not the sites, Rand index %.4f", seed, w.name, nodes, rand)
		}
	}
}
