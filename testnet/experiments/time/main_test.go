package main

import (
	"testing"
	"time"

	"zorilla/internal/seeds"
)

// Where small jobs fill all slots a gang that has its start promised gets it within W, and one that has not does not
// start.
func TestGangStartsWhereItsStartIsPromised(t *testing.T) {
	seeds.OneGoroutine(t)
	s := shape{nodes: 10, slots: 1, factor: 1.5}
	g := pursue(s, atOnce, 1)
	first, last := g.late()
	if !g.started || g.wait > longest || g.idle > 0.3 || len(g.promised) == 0 || max(first, last) > time.Minute {
		t.Errorf("it comes to %+v", g)
	}
	if g := pursue(s, never, 1); g.started || len(g.promised) > 0 {
		t.Errorf("without a promise it comes to %+v", g)
	}
}

// Runs that are promised one behind the other all start.
func TestSeries(t *testing.T) {
	seeds.OneGoroutine(t)
	s, err := compare(false, 3)
	if err != nil || s.our > 1.01*s.easy || s.our < s.optimum {
		t.Errorf("%+v, %v", s, err)
	}
}
