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

func held(n int) func(*wire.Answer) { return func(a *wire.Answer) { a.Held = n } }

// begun is a search that has flooded.
func begun(workers int) *hunt {
	h := newHunt(jobs.Spec{Min: workers, Max: workers, Slots: 1})
	h.next()
	return h
}

// This node's own slots are asked for before anybody hears of the job.
func TestOwnSlotsFirst(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 2, Max: 2, Slots: 1})
	if n := h.s.Next(h.now, h.d); n.Flood.Number != 1 || n.Flood.Radius != 0 || len(h.s.Rounds) != 0 {
		t.Fatalf("begins with %+v, want that it asks this node alone", n.Flood)
	}
	if n := h.s.Next(h.now, h.d); n.Flood.Number != 0 || !n.Until.IsZero() {
		t.Fatalf("then it is %+v, want nothing until it has answered", n)
	}
	if act, refused := h.answer(0, 0, nil); !act || refused || len(h.s.Answers) != 0 {
		t.Fatalf("it goes on: %v; has noted %v", act, h.s.Answers)
	}
	if n := h.s.Next(h.now, h.d); n.Flood.Radius != 1 || n.Flood.Number != 1 || len(h.s.Rounds) != 1 {
		t.Fatalf("then it is %+v, want a flood", n.Flood)
	}
	if n := h.s.Next(h.now, h.d); n.Flood.Number != 0 {
		t.Fatalf("floods again: %+v", n.Flood)
	}
	for _, spec := range []jobs.Spec{{Strategy: "spread"}, {Strategy: "compact"}, {Replicas: 2}, {Search: jobs.Search{Mode: jobs.SearchPaper}}} {
		spec.Min, spec.Max, spec.Slots = 2, 2, 1
		other := newHunt(spec)
		if n := other.s.Next(other.now, other.d); n.Flood.Radius != 1 {
			t.Errorf("%+v begins with %+v, want a flood", spec, n.Flood)
		}
	}
}

// A nearer node that may have room soon is waited for, until it says that it will not, or
// for so long.
func TestNearerRoomIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		then  func(h *hunt)
		nodes []int // that are granted
	}{
		"it has room":      {func(h *hunt) { h.answer(2, 2, nil) }, []int{2}},
		"it has none":      {func(h *hunt) { h.answer(2, 0, nil) }, []int{9}},
		"it says nothing":  {func(h *hunt) { h.now = h.now.Add(MaxHope) }, []int{9}},
		"it has one place": {func(h *hunt) { h.answer(2, 1, nil) }, []int{2, 9}},
	} {
		h := begun(2)
		h.answer(2, 0, held(2))
		h.answer(9, 2, nil)
		h.answer(20, 0, held(2)) // farther: of no use
		h.now = h.now.Add(100 * time.Millisecond)
		if n := h.next(); len(n.Grant) > 0 || n.Until.IsZero() {
			t.Fatalf("%s: takes %+v although a nearer node may have room", name, n.Grant)
		}
		c.then(h)
		var got []int
		for range 5 {
			n := h.next()
			for _, g := range n.Grant {
				for k := range 30 {
					if g.Node == jobtest.Node(k) {
						got = append(got, k)
					}
				}
			}
			if n.Until.IsZero() {
				break
			}
			h.now = n.Until
		}
		if len(got) != len(c.nodes) || got[0] != c.nodes[0] || got[len(got)-1] != c.nodes[len(c.nodes)-1] {
			t.Errorf("%s: takes %v, want %v", name, got, c.nodes)
		}
	}
}

// Room that others may leave is waited for where it is at least a quarter nearer.
func TestHardlyNearerRoomIsNotWaitedFor(t *testing.T) {
	for node, waits := range map[int]bool{14: true, 16: false, 19: false} {
		h := begun(2)
		h.answer(node, 0, held(2))
		h.answer(20, 2, nil)
		h.now = h.now.Add(100 * time.Millisecond)
		if n := h.next(); len(n.Grant) > 0 == waits {
			t.Errorf("with room at 20 ms, and perhaps soon at %d ms: takes %+v", node, n.Grant)
		}
	}
}

// What does not make up the job is given back when a job that goes before wants it; what
// does is granted.
func TestRecalledOffers(t *testing.T) {
	recall := func(a *wire.Answer) { a.Recall = true }
	h := begun(3)
	h.answer(2, 2, nil)
	h.next()
	h.answer(2, 2, recall)
	if n := h.next(); !returns(n, 2) || n.Over {
		t.Fatalf("short of workers it keeps a recalled offer: %+v", n)
	}
	if workers, _ := h.s.hoped(h.now, time.Second); workers != 2 {
		t.Errorf("it hopes for %d workers of those that it gave back, want 2", workers)
	}
	h = begun(2)
	h.answer(1, 0, held(2))
	h.answer(5, 2, nil)
	h.next()
	h.answer(5, 2, recall)
	if n := h.next(); !returns(n, 5) || n.Over {
		t.Fatalf("with as much to hope for at a fifth of the distance it keeps a recalled offer: %+v", n)
	}
	h = begun(2)
	h.answer(1, 0, held(1))
	h.answer(2, 2, nil)
	h.next()
	h.answer(2, 2, recall)
	for range 5 {
		n := h.next()
		if len(n.Release) > 0 {
			t.Fatalf("gives back %+v, which it needs", n.Release)
		}
		if len(n.Grant) == 1 {
			return
		}
		h.now = n.Until
	}
	t.Fatal("keeps an older job waiting, and takes nothing")
}

// What nodes hold for others is asked for once, and no more of it than would be taken.
func TestOnlyWhatWouldBeTakenIsRecalled(t *testing.T) {
	recalled := func(n Next, want ...int) {
		t.Helper()
		if len(n.Recall) != len(want) {
			t.Fatalf("recalls %v, want those of nodes %v", n.Recall, want)
		}
		for i, k := range want {
			if n.Recall[i] != jobtest.Node(k) {
				t.Fatalf("recalls %v, want those of nodes %v", n.Recall, want)
			}
		}
	}
	h := begun(3)
	h.answer(9, 0, held(2))
	h.answer(2, 0, held(1))
	h.answer(7, 0, held(2))
	h.answer(8, 2, nil)
	h.answer(1, 1, nil)
	recalled(h.next(), 2, 7) // nearer than 8, for its two workers
	recalled(h.next())
	h = begun(3)
	h.s.Sent(h.now, 1, flood.Flood{})
	h.now = h.now.Add(9 * time.Millisecond)
	for node, workers := range map[int]int{2: 1, 7: 1, 9: 2} {
		h.answer(node, 0, func(a *wire.Answer) { a.Held, a.Hops = workers, 1 })
	}
	recalled(h.next()) // others may offer
	h.answer(8, 1, nil)
	h.now = h.now.Add(20 * time.Millisecond)
	recalled(h.next(), 2, 7)
}

// Own slots that others may leave are waited for rather than to take those of the nearest
// neighbour.
func TestOwnSlotsAreHopedFor(t *testing.T) {
	h := begun(1)
	h.s.Answered(h.now, vicinity.Member{ID: jobtest.Node(0)}, 1, wire.Answer{Round: 1, Held: 1, Capacity: 1, Reason: wire.ReasonBusy}, false)
	h.s.Answered(h.now, vicinity.Member{ID: jobtest.Node(1)}, 100*time.Microsecond, wire.Answer{Round: 1, Key: 7, Workers: 1, Capacity: 1}, false)
	h.now = h.now.Add(50 * time.Millisecond)
	if n := h.next(); len(n.Grant) > 0 || n.Until.IsZero() {
		t.Fatalf("takes %+v, though own slots may be left", n.Grant)
	}
	h.s.Answered(h.now, vicinity.Member{ID: jobtest.Node(0)}, 1, wire.Answer{Held: 0, Key: 5, Workers: 1, Capacity: 1}, false)
	for range 3 {
		n := h.next()
		if len(n.Grant) == 1 && n.Grant[0].Node == jobtest.Node(0) {
			return
		}
		h.now = n.Until
	}
	t.Fatal("does not take its own slots")
}

// Packets overtake each other.
func TestOvertakenAnswers(t *testing.T) {
	number := func(n uint64) func(*wire.Answer) { return func(a *wire.Answer) { a.Number = n } }
	h := begun(2)
	h.answer(2, 1, number(7))
	if act, refused := h.answer(2, 0, number(6)); act || refused || len(h.s.Offers) != 1 {
		t.Fatalf("a decline from before the offer ends it")
	}
	if h.answer(2, 0, number(8)); len(h.s.Offers) != 0 {
		t.Fatal("a decline from after it does not")
	}
	h.answer(2, 1, number(maxOvertaken+9))
	if h.answer(2, 0, number(9)); len(h.s.Offers) != 0 {
		t.Fatal("a node whose clock was put back is not heard any more")
	}
}

// A job whose own node is not to be used goes on, though no flood has set a time for it.
func TestOwnNodeIsAvoided(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 1, Max: 1, Slots: 1})
	h.s.Avoid(h.now, jobtest.Node(0))
	h.s.Next(h.now, h.d)
	if act, refused := h.answer(0, 1, nil); !act || !refused {
		t.Fatalf("its offer is refused: %v; the search goes on: %v", refused, act)
	}
	if n := h.s.Next(h.now, h.d); n.Flood.Radius != 1 {
		t.Fatalf("got %+v, want a flood", n)
	}
}

// What became of offers, and of slots that were held for others, is told.
func TestFates(t *testing.T) {
	h := begun(2)
	h.answer(1, 0, held(2))
	h.answer(2, 0, held(1))
	h.answer(3, 2, nil)
	h.answer(4, 2, nil)
	h.next()
	want := func(node int, fate string) {
		t.Helper()
		if got := h.s.Answers[jobtest.Node(node)].Fate; got != fate {
			t.Errorf("node %d: %q, want %q", node, got, fate)
		}
	}
	fate := func(node int) string { return h.s.Answers[jobtest.Node(node)].Fate }
	want(1, "held for another job")
	wantRow(t, "held for another job", fate(1))
	want(3, "")
	h.answer(5, 0, held(2))
	h.answer(5, 0, func(a *wire.Answer) { a.Round = 0 })
	want(5, "another job took its slots") // at once
	h.now = h.now.Add(40 * time.Millisecond)
	h.answer(1, 0, func(a *wire.Answer) { a.Round = 0 })
	for range 5 {
		if n := h.next(); n.Until.IsZero() {
			break
		} else {
			h.now = n.Until
		}
	}
	want(1, "another job took its slots, after 40.0 ms")
	wantRow(t, "another job took its slots, after", fate(1))
	want(2, "held for another job, for at least 600 ms")
	wantRow(t, "held for another job, for at least", fate(2))
	want(3, "taken for this job")
	want(4, "given back: not needed")
	h = begun(3)
	h.answer(2, 2, nil)
	h.next()
	h.answer(2, 2, func(a *wire.Answer) { a.Recall = true })
	h.next()
	want(2, "given back: a job that goes before wants it")
	wantRow(t, "given back: a job that goes before wants it", fate(2))
	h.answer(2, 2, nil)
	h.s.Lost(h.now, jobtest.Node(2), wire.ReasonLate)
	want(2, "")
}
