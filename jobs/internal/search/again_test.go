package search

import (
	"slices"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// more are the jobs for which more counts than how far each node is by itself.
func more() map[string]jobs.Spec {
	return map[string]jobs.Spec{
		"compact":  {Min: 2, Max: 2, Slots: 1, Strategy: "compact"},
		"max-rtt":  {Min: 2, Max: 2, Slots: 1, Placing: jobs.Placing{MaxRTT: codec.Duration(time.Second)}},
		"replicas": {Min: 1, Max: 1, Slots: 1, Replicas: 2},
		"spread":   {Min: 3, Max: 3, Slots: 1, Strategy: "spread"},
	}
}

// linked is a search that has flooded to so many neighbours, of whom node n is measured to
// be n milliseconds away, and any two others 10.
func linked(t *testing.T, spec jobs.Spec, neighbours int) *hunt {
	t.Helper()
	h := newHunt(spec)
	rtt := map[vicinity.ID]time.Duration{}
	for n := 1; n <= neighbours; n++ {
		rtt[jobtest.Node(n)] = time.Duration(n) * time.Millisecond
	}
	h.s.Measured = func(id vicinity.ID) time.Duration { return rtt[id] }
	h.s.Fresh = h.s.Measured
	h.next()
	h.sent(t, 1, neighbours)
	return h
}

// play lets time pass until the search takes offers; nodes measure what they are asked for.
func (h *hunt) play(note func(Next)) (nodes []vicinity.ID) {
	for range 60 {
		n := h.next()
		note(n)
		for _, g := range n.Grant {
			nodes = append(nodes, g.Node)
		}
		for _, m := range n.Measure {
			if m.From != jobtest.Node(0) {
				rtts := make([]time.Duration, len(m.Nodes))
				for i := range rtts {
					rtts[i] = 10 * time.Millisecond
				}
				h.s.Paired(h.now, m.From, m.Nodes, rtts)
			}
		}
		if len(nodes) > 0 || n.Until.IsZero() {
			break
		}
		if n.Until.After(h.now) {
			h.now = n.Until
		}
	}
	return nodes
}

// Near nodes that have not answered are asked once more, whatever counts for the choice.
func TestTheSilentAreAskedAgainWhateverCounts(t *testing.T) {
	for name, spec := range more() {
		h := linked(t, spec, 8)
		h.now = h.now.Add(9 * time.Millisecond)
		h.answer(7, 1, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
		h.answer(8, spec.Workers()-1, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
		asked := map[vicinity.ID]int{}
		nodes := h.play(func(n Next) {
			for _, r := range n.Extend {
				if asked[r.Node]++; !r.Again {
					t.Errorf("%s: node %v is sent a copy that counts as the first", name, r.Node)
				}
			}
		})
		if len(nodes) != 2 {
			t.Errorf("%s: takes %v, want the two that offer", name, nodes)
		}
		for n := 1; n < 7; n++ {
			if asked[jobtest.Node(n)] == 0 {
				t.Errorf("%s: node %d, which is nearer and silent, is not asked again", name, n)
			}
		}
		if asked[jobtest.Node(7)] > 0 {
			t.Errorf("%s: node 7, which has answered, is asked again", name)
		}
	}
}

// A node that answers when it is asked again is taken as the others are.
func TestAnswersToTheSecondCallCount(t *testing.T) {
	for name, spec := range more() {
		if name == "compact" { // where any two are as far apart as any others
			continue
		}
		h := linked(t, spec, 8)
		h.now = h.now.Add(9 * time.Millisecond)
		h.answer(7, 1, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
		h.answer(8, spec.Workers()-1, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
		answered := false
		nodes := h.play(func(n Next) {
			if len(n.Extend) > 0 && !answered {
				answered = true
				h.now = h.now.Add(time.Millisecond)
				h.answer(1, 1, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
			}
		})
		if !slices.Contains(nodes, jobtest.Node(1)) {
			t.Errorf("%s: takes %v, want node 1 among them, which is the nearest", name, nodes)
		}
	}
}

// Old distances of offers are measured before the choice, whatever counts for it.
func TestOldDistancesAreMeasuredWhateverCounts(t *testing.T) {
	for name, spec := range more() {
		if name == "compact" { // takes what is near each other
			continue
		}
		h := linked(t, spec, 4)
		far, measured := map[vicinity.ID]bool{}, 0
		h.s.Fresh = func(id vicinity.ID) time.Duration {
			switch {
			case id != jobtest.Node(1):
				return h.s.Measured(id)
			case far[id]:
				return 80 * time.Millisecond
			}
			return 0
		}
		h.now = h.now.Add(100 * time.Millisecond)
		for n := range spec.Workers() + 1 {
			h.answer(n+1, 1, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
		}
		nodes := h.play(func(n Next) {
			for _, m := range n.Measure {
				if m.From == jobtest.Node(0) {
					measured += len(m.Nodes)
					far[jobtest.Node(1)] = true
				}
			}
		})
		if measured != 1 {
			t.Errorf("%s: measures %d nodes, want node 1, whose distance is old", name, measured)
		}
		if len(nodes) != spec.Workers() || slices.Contains(nodes, jobtest.Node(1)) {
			t.Errorf("%s: takes %v, and not all but node 1, which is far by now", name, nodes)
		}
	}
}

// How far others are from each other is measured again when it is old, but not of nodes that
// the job has already.
func TestOldPairsAreMeasuredAgain(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 4, Max: 4, Slots: 1, Strategy: "compact"})
	nodes := []vicinity.ID{jobtest.Node(1), jobtest.Node(2), jobtest.Node(3)}
	h.s.learn(h.now, nodes[0], nodes[1:], []time.Duration{time.Millisecond, time.Millisecond})
	h.s.learn(h.now.Add(FreshFor), nodes[1], nodes[2:], []time.Duration{time.Millisecond})
	at := h.now.Add(FreshFor + time.Millisecond)
	for has, want := range map[int]int{0: 2, 2: 1, 3: 0} {
		if pairs, own := h.s.unsure(at, nodes, has, nil); len(pairs) != want || len(own) != 0 {
			t.Errorf("%d of the nodes are the job's: %d pairs are unsure, want %d", has, len(pairs), want)
		}
	}
	if n := h.s.freshPairs(at); n != 1 {
		t.Errorf("%d pairs have been measured of late, want 1", n)
	}
	h.s.learn(at, nodes[0], nodes[1:], []time.Duration{0, 2 * time.Millisecond}) // of the first there was no answer
	for i, want := range []time.Duration{time.Millisecond, 2 * time.Millisecond} {
		if d := h.s.pairs[pairOf(nodes[0], nodes[i+1])].rtt; d != want {
			t.Errorf("the distance to node %d is %v, want %v", i+2, d, want)
		}
	}
}

// A job that is short of workers when all have been asked asks the silent again, rather than to
// wait for the next flood.
func TestWhoIsShortAsksTheSilentAgain(t *testing.T) {
	h := surrounded(t, jobs.Spec{Min: 3, Max: 3, Slots: 1}, 8, 8)
	h.next()
	for n := 2; n <= 8; n++ {
		h.now = jobtest.Start.Add(time.Duration(n) * time.Millisecond)
		workers := 0
		if n == 8 {
			workers = 2
		}
		h.answer(n, workers, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
		h.next()
	}
	again := false
	for range 20 {
		n := h.next()
		for _, r := range n.Extend {
			again = again || r.Again && r.Node == jobtest.Node(1)
		}
		if again || n.Until.IsZero() || !n.Until.Before(jobtest.Start.Add(100*time.Millisecond)) {
			break
		}
		h.now = n.Until
	}
	if !again {
		t.Fatalf("node 1 is not asked again within 100 ms, and one worker is missing")
	}
	h.now = h.now.Add(2 * time.Millisecond)
	h.answer(1, 1, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
	if nodes, after := h.granted(); len(nodes) != 2 || after > MaxNearerWait {
		t.Errorf("takes %v when it has answered, after %v", nodes, after)
	}
}

// A choice waits for those that it asks again until they have had time to answer, and no longer,
// whatever counts for it, and whatever keeps the job from taking what it has.
func TestChoiceWaitsForThoseItAsksAgain(t *testing.T) {
	const (
		late  = 40 * time.Millisecond    // of the answers; those of nodes 1 to 6 are lost
		again = 2 * 6 * time.Millisecond // round trips of the farthest of them
	)
	specs := more()
	specs["nearest"] = jobs.Spec{Min: 2, Max: 2, Slots: 1}
	specs["short of a worker"] = jobs.Spec{Min: 3, Max: 3, Slots: 1}
	specs["too far apart"] = jobs.Spec{Min: 2, Max: 2, Slots: 1, Placing: jobs.Placing{MaxRTT: codec.Duration(time.Millisecond)}}
	for name, spec := range specs {
		h := linked(t, spec, 8)
		h.now = h.now.Add(late)
		offered, want := spec.Workers()-1, late // the others take about as long again as the first
		if name == "short of a worker" {
			offered, want = 1, again // it has waited before it asked
		}
		h.answer(7, 1, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
		h.answer(8, offered, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
		asked := 0
		h.play(func(n Next) {
			if len(n.Extend) == 0 {
				return
			}
			if wait := n.Until.Sub(h.now); wait != want {
				t.Errorf("%s: looks again %v after it has asked %d nodes again, want %v", name, wait, len(n.Extend), want)
			}
			asked, want = asked+1, again
		})
		if asked == 0 {
			t.Errorf("%s: nobody is asked again", name)
		}
	}
}

// A search is paused while its node is alone and has it in its queue; not if that node works for it, since
// the end of a worker takes the job out of the queue.
func TestWhoIsQueuedAloneRests(t *testing.T) {
	for _, c := range []struct {
		members int
		placed  bool
		reason  string
		paused  bool
	}{
		{1, false, wire.ReasonBusy, true},
		{1, true, wire.ReasonBusy, false},
		{2, false, wire.ReasonBusy, false},
		{1, false, wire.ReasonQueueing, false},
	} {
		h := newHunt(jobs.Spec{Min: 1, Max: 2, Slots: 1})
		h.s.Members = func() int { return c.members }
		h.d.Placed = c.placed
		h.s.Next(h.now, h.d)
		h.answer(0, 0, func(a *wire.Answer) { a.Reason = c.reason })
		if n := h.s.Next(h.now, h.d); n.Flood.Radius == 0 || h.s.Paused() != c.paused {
			t.Errorf("%+v: paused is %v after %+v", c, h.s.Paused(), n.Flood)
		}
	}
}
