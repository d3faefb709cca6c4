package search

import (
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/vicinity"
)

// granted lets time pass until the search takes offers, and returns the nodes and when.
func (h *hunt) granted() (nodes []vicinity.ID, after time.Duration) {
	begin := h.now
	for range 20 {
		n := h.next()
		for _, g := range n.Grant {
			nodes = append(nodes, g.Node)
		}
		if n.Until.IsZero() {
			break
		}
		h.now = n.Until
	}
	return nodes, h.now.Sub(begin)
}

// Offers whose distance is old are measured before the choice: routes change.
func TestOldDistancesAreMeasured(t *testing.T) {
	for name, c := range map[string]struct {
		now  time.Duration // of node 2, 2 ms away when it was measured last; 0 = it cannot be measured
		want int
		most time.Duration // until the choice, after the answers
	}{
		"it is as it was":       {2 * time.Millisecond, 2, 45 * time.Millisecond},
		"it went away":          {50 * time.Millisecond, 4, 50 * time.Millisecond},
		"it cannot be measured": {0, 2, MaxNearerWait},
	} {
		h := begun(1)
		var measured, answered bool
		h.s.Fresh = func(id vicinity.ID) time.Duration {
			switch {
			case id != jobtest.Node(2):
				return 4 * time.Millisecond
			case answered:
				return c.now
			}
			return 0
		}
		h.now = h.now.Add(40 * time.Millisecond)
		h.answer(2, 1, nil)
		h.answer(4, 1, nil)
		n := h.next()
		for _, m := range n.Measure {
			measured = measured || m.From == jobtest.Node(0) && len(m.Nodes) == 1 && m.Nodes[0] == jobtest.Node(2)
		}
		if !measured || len(n.Grant) > 0 || n.Until.IsZero() {
			t.Fatalf("%s: measures %+v, takes %+v", name, n.Measure, n.Grant)
		}
		answered = true
		if nodes, after := h.granted(); len(nodes) != 1 || nodes[0] != jobtest.Node(c.want) || after > c.most {
			t.Errorf("%s: takes %v after %v, want node %d within %v", name, nodes, after, c.want, c.most)
		}
	}
}

// An answer that comes sooner than it could have come from where the node was shows that it
// is nearer.
func TestNearerThanItWas(t *testing.T) {
	h := begun(1)
	fresh := map[vicinity.ID]time.Duration{jobtest.Node(10): 10 * time.Millisecond}
	h.s.Fresh = func(id vicinity.ID) time.Duration { return fresh[id] }
	h.now = h.now.Add(5 * time.Millisecond)
	h.answer(20, 1, nil)
	h.answer(10, 1, nil)
	if nodes, _ := h.granted(); len(nodes) != 1 || nodes[0] != jobtest.Node(20) {
		t.Errorf("takes %v, want node 20, which answered after 5 ms", nodes)
	}
}

// An offer of a node's queue may come before a search has flooded at all: its origin was
// started again. How far away that node is nobody knows then.
func TestOffersBeforeTheFirstFlood(t *testing.T) {
	s := New(jobtest.Node(0), nil)
	if at, exact, _ := s.distance(jobtest.Start, jobtest.Node(1), 0, 0); at != jobs.MaxApart || exact {
		t.Errorf("%v away, exactly: %v", at, exact)
	}
}
