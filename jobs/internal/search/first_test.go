package search

import (
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
)

// Each round asks somebody: who has told that it will have room soon may have forgotten the job
// since.
func TestEachRoundAsksWhoIsFreeSoon(t *testing.T) {
	h := surrounded(t, jobs.Spec{Min: 1, Max: 1, Slots: 1}, 3, 3)
	asked := func() int { return len(h.next().Extend) }
	if n := asked(); n != 3 {
		t.Fatalf("asks %d of 3 nodes", n)
	}
	for node := 1; node <= 3; node++ {
		h.answer(node, 0, func(a *wire.Answer) { a.Hops, a.Rim, a.Free = 1, true, 1 })
	}
	for h.now = h.now.Add(time.Minute); len(h.s.Rounds) < 2; h.now = h.now.Add(time.Second) {
		h.next()
	}
	h.sent(t, 2, 0)
	if n := asked(); n != 3 {
		t.Errorf("asks %d of 3 nodes in the second round", n)
	}
}
