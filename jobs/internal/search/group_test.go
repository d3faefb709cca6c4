package search

import (
	"slices"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/vicinity"
)

// A job whose nodes are replaced for hours remembers no more distances than are measured for it
// at a time; those between the nodes that it still has outlast all others.
func TestDistancesOfALongJobAreBounded(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 16, Max: 16, Slots: 1, Strategy: "compact"})
	var nodes []vicinity.ID
	next := 1
	fill := func() {
		for ; len(nodes) < 16; next++ {
			nodes = append(nodes, jobtest.Node(next))
		}
	}
	fill()
	kept := pairOf(nodes[0], nodes[1]) // these two are never lost
	measured := 0
	for h.now.Before(jobtest.Start.Add(75 * time.Minute)) {
		h.s.renew() // for another flood
		list, _ := h.s.measurePairs(h.now, nodes, len(h.d.Nodes), nil)
		for _, m := range list {
			measured += len(m.Nodes)
			h.s.Paired(h.now, m.From, m.Nodes, slices.Repeat([]time.Duration{time.Millisecond}, len(m.Nodes)))
		}
		if len(h.s.pairs) > maxPairs {
			t.Fatalf("after %v %d pairs are known, want at most %d", h.now.Sub(jobtest.Start), len(h.s.pairs), maxPairs)
		}
		for i, a := range nodes {
			for _, b := range nodes[:i] {
				if _, sure := h.s.Between(a, b); !sure {
					t.Fatalf("after %v the distance between two of the job's nodes is not known", h.now.Sub(jobtest.Start))
				}
			}
		}
		if at := h.s.pairs[kept].at; !at.Equal(jobtest.Start) {
			t.Fatalf("after %v the distance between nodes that have stayed was measured again", h.now.Sub(jobtest.Start))
		}
		nodes = slices.Delete(nodes, 8, 16)
		h.d.Nodes = slices.Clone(nodes)
		fill()
		h.now = h.now.Add(FreshFor + time.Second)
	}
	if measured < maxPairs*3/2 {
		t.Fatalf("%d pairs have been measured: the test does not test", measured)
	}
}

// What comes when there is no room is not remembered, unless it is about a pair that is known.
func TestLateDistancesAreBounded(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 2, Max: 2, Slots: 1, Strategy: "compact"})
	ids := make([]vicinity.ID, maxPairs+2)
	for i := range ids {
		ids[i] = jobtest.Node(i + 1)
	}
	h.s.learn(h.now, jobtest.Node(0), ids, slices.Repeat([]time.Duration{time.Millisecond}, len(ids)))
	h.s.learn(h.now, jobtest.Node(0), ids[:1], []time.Duration{2 * time.Millisecond})
	if n, first := len(h.s.pairs), h.s.pairs[pairOf(jobtest.Node(0), ids[0])].rtt; n != maxPairs || first != 2*time.Millisecond {
		t.Errorf("%d pairs are known, the first of them %v apart; want %d, 2ms", n, first, maxPairs)
	}
}

// What is measured again is not forgotten meanwhile: there is room for it, and it counts until
// the answer, or where there is none.
func TestRoomForWhatIsMeasuredAgain(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 2, Max: 2, Slots: 1, Strategy: "compact"})
	var nodes []vicinity.ID
	for len(nodes)*(len(nodes)-1)/2+len(nodes) <= maxPairs {
		for _, id := range nodes { // the later a node is, the farther from others
			h.s.pairs[pairOf(jobtest.Node(len(nodes)+1), id)] = apartness{time.Duration(len(nodes)), h.now}
		}
		nodes = append(nodes, jobtest.Node(len(nodes)+1))
	}
	for other := 0; len(h.s.pairs) < maxPairs; other++ { // pairs that do not count, but too few of them
		h.s.pairs[pairOf("other", jobtest.Node(1000+other))] = apartness{1, h.now}
	}
	nodes = append(nodes, jobtest.Node(len(nodes)+1))
	h.now = h.now.Add(FreshFor + time.Second)
	pairs, _ := h.s.unsure(h.now, nodes, 0, nil)
	pairs = pairs[:maxPairs]
	var again []pair
	for _, u := range pairs {
		if _, known := h.s.pairs[u.pair]; known {
			again = append(again, u.pair)
		}
	}
	h.s.makeRoom(h.now, pairs, nodes)
	if room := maxPairs - len(h.s.pairs); room != len(pairs)-len(again) {
		t.Errorf("there is room for %d new pairs, want %d", room, len(pairs)-len(again))
	}
	forgotten := 0
	for _, p := range again {
		if _, known := h.s.pairs[p]; !known {
			forgotten++
		}
	}
	if forgotten > 0 {
		t.Errorf("%d of %d pairs that are measured again are forgotten", forgotten, len(again))
	}
}

// Nodes that never tell how far apart they are are asked a few times, and again after another flood.
func TestMeasurementsAreBounded(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 4, Max: 4, Slots: 1, Strategy: "compact"})
	nodes := []vicinity.ID{jobtest.Node(1), jobtest.Node(2), jobtest.Node(3)}
	for range 2 {
		for i := range 2 * measureRounds {
			list, spent := h.s.measurePairs(h.now, nodes, 0, nil)
			if asks := i < measureRounds; len(list) > 0 != asks || spent == asks {
				t.Errorf("time %d: %d are asked, spent is %v", i+1, len(list), spent)
			}
		}
		h.s.renew()
	}
}
