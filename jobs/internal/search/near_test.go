package search

import (
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// surrounded is a search that has flooded among so many others, of whom node n is n
// milliseconds away.
func surrounded(t *testing.T, spec jobs.Spec, others, measured int) *hunt {
	h := newHunt(spec)
	h.s.Members = func() int { return others + 1 }
	h.s.Fresh = func(vicinity.ID) time.Duration { return 0 }
	h.s.Near = func(than time.Duration, limit int) (list []vicinity.Measured) {
		for n := 1; n <= measured && len(list) < limit && time.Duration(n)*time.Millisecond < than; n++ {
			list = append(list, vicinity.Measured{ID: jobtest.Node(n), RTT: time.Duration(n) * time.Millisecond})
		}
		return list
	}
	h.next()
	h.sent(t, 1, 0)
	return h
}

// sent tells that the flood of a round has been sent to so many neighbours, from node 1 on.
func (h *hunt) sent(t *testing.T, round, neighbours int) {
	t.Helper()
	var links []vicinity.ID
	for n := 1; n <= neighbours; n++ {
		links = append(links, jobtest.Node(n))
	}
	core := flood.NewCore(flood.Config{Self: jobtest.Node(0), Rand: jobtest.Rand(), Neighbours: func() []vicinity.ID { return links }})
	f, _, err := core.Start(h.now, min(1, neighbours), time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.s.Sent(h.now, round, f)
}

func TestAllAreAskedDirectlyWhereAllAreKnown(t *testing.T) {
	plain := jobs.Spec{Min: 3, Max: 3, Slots: 1}
	spread := plain
	spread.Strategy = "spread"
	for name, c := range map[string]struct {
		spec             jobs.Spec
		others, measured int
		directly         bool
	}{
		"all are known":        {plain, 20, 20, true},
		"one is not":           {plain, 20, 19, false},
		"there are too many":   {plain, maxDirect + 1, maxDirect + 1, false},
		"others count as well": {spread, 20, 20, false},
	} {
		h := surrounded(t, c.spec, c.others, c.measured)
		n := h.next()
		if (len(n.Extend) > 0) != c.directly {
			t.Errorf("%s: asks %d nodes", name, len(n.Extend))
		}
		for _, r := range n.Extend {
			if !r.Last {
				t.Errorf("%s: a copy to %v goes on from there", name, r.Node)
			}
		}
	}
}

// A few of whom only bounds are known are asked as well, but not many.
func TestAFewMayBeUnmeasured(t *testing.T) {
	for bounded, directly := range map[int]bool{0: true, 2: true, 3: false} {
		h := newHunt(jobs.Spec{Min: 3, Max: 3, Slots: 1})
		h.s.Members = func() int { return 21 }
		h.s.Near = func(than time.Duration, limit int) (list []vicinity.Measured) {
			for n := 1; n <= min(20, limit); n++ {
				list = append(list, vicinity.Measured{ID: jobtest.Node(n), RTT: time.Duration(n) * time.Millisecond, Least: n <= bounded})
			}
			return list
		}
		if h.next(); (h.s.others != nil) != directly {
			t.Errorf("with bounds of %d of 20 alone all are asked directly: %v, want %v", bounded, h.s.others != nil, directly)
		}
	}
}

// An offer of which only an upper bound is known is taken by what was measured once, if the
// packet of the second time was lost.
func TestWhatWasMeasuredOnceLowersABound(t *testing.T) {
	h := begun(1)
	h.s.Near = func(than time.Duration, limit int) []vicinity.Measured {
		return []vicinity.Measured{{ID: jobtest.Node(2), RTT: 2 * time.Millisecond}, {ID: jobtest.Node(3), RTT: time.Millisecond, Least: true}}
	}
	h.now = h.now.Add(12 * time.Millisecond)
	for n, rtt := range map[int]time.Duration{2: 0, 3: 0, 9: 9 * time.Millisecond} {
		h.s.Answered(h.now, vicinity.Member{ID: jobtest.Node(n)}, rtt, wire.Answer{Round: 1, Key: 7, Workers: 1, Capacity: 1}, false)
	}
	if nodes, _ := h.granted(); len(nodes) != 1 || nodes[0] != jobtest.Node(2) {
		t.Errorf("takes %v, want node 2", nodes)
	}
}

// The choice is made when all who are nearer have answered, and no later.
func TestNobodyElseIsWaitedFor(t *testing.T) {
	h := surrounded(t, jobs.Spec{Min: 3, Max: 3, Slots: 1}, 20, 20)
	reply := func(n, workers int) Next {
		h.now = jobtest.Start.Add(time.Duration(n) * time.Millisecond)
		h.answer(n, workers, func(a *wire.Answer) { a.Hops, a.Rim, a.Onward = 1, true, 8 })
		return h.next()
	}
	h.next()
	reply(1, 2)
	if n := reply(3, 1); len(n.Grant) > 0 || !n.Until.After(h.now) {
		t.Fatalf("takes %+v though node 2 is nearer", n.Grant)
	}
	h.now = jobtest.Start.Add(4 * time.Millisecond)
	h.answer(2, 0, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
	n := h.next()
	if len(n.Grant) != 2 || n.Grant[0].Node != jobtest.Node(1) || n.Grant[1].Node != jobtest.Node(3) {
		t.Fatalf("takes %+v, waits until %v", n.Grant, n.Until.Sub(h.now))
	}
	if len(n.Measure) > 0 {
		t.Errorf("measures %+v who have just answered", n.Measure)
	}
}

// The next flood goes over links if some nodes that were asked directly are silent: others may reach them,
// such as a neighbour to which a node behind a firewall has sent something.
func TestSilentNodesAreFloodedOverLinks(t *testing.T) {
	for silent, links := range map[int]bool{0: false, 4: true} {
		h := surrounded(t, jobs.Spec{Min: 9, Max: 9, Slots: 1}, 5, 5)
		n := h.next()
		if !n.Flood.At.IsZero() && !n.Direct || len(h.s.Rounds) != 1 {
			t.Fatalf("the first round is %+v, direct: %v", n.Flood, n.Direct)
		}
		for node := 1; node <= 5; node++ {
			if node != silent {
				h.answer(node, 0, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
			}
		}
		for len(h.s.Rounds) < 2 {
			h.now = h.now.Add(time.Second)
			n = h.next()
		}
		if n.Direct == links {
			t.Errorf("node %d is silent (0 = none), and the second round asks directly: %v", silent, n.Direct)
		}
	}
}

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
