package search

import (
	"slices"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// What a node said before the grant reached it must not take the grant back.
func TestOffersBesideAGrantAreKept(t *testing.T) {
	h := begun(2)
	a := wire.Answer{Round: 1, Key: 3, Workers: 2, Capacity: 2}
	if _, refused := h.s.Answered(h.now, vicinity.Member{ID: jobtest.Node(2)}, time.Millisecond, a, true); refused || len(h.s.Offers) != 0 {
		t.Errorf("refused: %v; counted on: %v", refused, h.s.Offers)
	}
}

// What a node says of an offer before it has heard what jobs that share a search took of it leaves no more
// of it than there is.
func TestOffersAreTakenOnce(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 1, Max: 1, Slots: 1})
	h.s.Shared = true
	other := Demand{Wanted: 9, Least: 9}
	h.next(other)
	says := func(key uint64, workers, lent int) int {
		h.answer(2, workers, func(a *wire.Answer) { a.Key, a.Lent = key, lent })
		return h.s.Offers[jobtest.Node(2)].workers
	}
	for _, c := range []struct{ workers, lent, left int }{
		{3, 0, 3}, {2, 0, 2}, // its owner took one
	} {
		if left := says(7, c.workers, c.lent); left != c.left {
			t.Fatalf("%d are offered: %d are left", c.workers, left)
		}
	}
	n := h.next(other)
	for range 5 {
		if len(n.Grant) > 0 {
			break
		}
		h.now = n.Until
		n = h.next(other)
	}
	if len(n.Grant) != 1 || h.s.Offers[jobtest.Node(2)].workers != 1 {
		t.Fatalf("%+v is granted, %+v left", n.Grant, h.s.Offers)
	}
	for _, c := range []struct{ workers, lent, left int }{
		{2, 0, 1},                       // it has not heard of the grant
		{1, 1, 1},                       // it has
		{0, 0, 0}, {1, 0, 0}, {3, 1, 3}, // more has become free
	} {
		if left := says(7, c.workers, c.lent); left != c.left {
			t.Errorf("%d are offered, %d lent: %d are left, want %d", c.workers, c.lent, left, c.left)
		}
	}
	h.now = h.now.Add(heardWithin)
	if left := says(7, 2, 0); left != 2 {
		t.Errorf("of a grant that the node never heard of: %d are left", left)
	}
	if left := says(8, 2, 0); left != 2 {
		t.Errorf("of another offer %d are left", left)
	}
}

// Near nodes that have not answered are asked once more before the choice.
func TestSilentNodesAreAskedAgainBeforeTheChoice(t *testing.T) {
	h := surrounded(t, jobs.Spec{Min: 3, Max: 3, Slots: 1}, 20, 20)
	h.s.Measured = func(id vicinity.ID) time.Duration {
		for n := range 21 {
			if jobtest.Node(n) == id {
				return time.Duration(n) * time.Millisecond
			}
		}
		return 0
	}
	asked := map[vicinity.ID]int{}
	note := func(n Next) {
		for _, r := range n.Extend {
			asked[r.Node]++
		}
	}
	note(h.next())
	h.now = h.now.Add(100 * time.Millisecond)
	h.answer(9, 3, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
	granted := 0
	for range 100 {
		n := h.next()
		note(n)
		if granted += len(n.Grant); granted > 0 || n.Until.IsZero() {
			break
		}
		h.now = n.Until
	}
	if granted != 1 {
		t.Fatalf("takes %d offers", granted)
	}
	for n := 1; n < 9; n++ {
		if asked[jobtest.Node(n)] < 2 {
			t.Errorf("node %d, which is nearer, was asked %d times", n, asked[jobtest.Node(n)])
		}
	}
}

// The nearest that may have room for all are asked for it, and nobody else.
func TestAsManyAreRecalledAsAreUsed(t *testing.T) {
	h := begun(3)
	h.answer(1, 0, held(3))
	h.answer(2, 0, held(3))
	h.answer(9, 3, nil)
	if n := h.next(); len(n.Recall) != 1 || n.Recall[0] != jobtest.Node(1) {
		t.Errorf("recalls from %v, want node 1 alone, which has room for all", n.Recall)
	}
}

// Offers that no rank would use are given back while nearer room is waited for.
func TestSpareOffersGoBackWhileRoomIsWaitedFor(t *testing.T) {
	h := begun(2)
	h.answer(1, 0, held(2))
	h.answer(9, 2, nil)
	h.answer(12, 2, nil)
	if n := h.next(); !returns(n, 12) || returns(n, 9) {
		t.Errorf("gives back %+v, want what node 12 offers", n.Release)
	}
}

// What nodes held for others in an earlier round is not waited for in the next.
func TestHopesEndWithTheRound(t *testing.T) {
	h := begun(2)
	h.answer(1, 0, held(2))
	h.d.Wanted = 2
	h.s.flood(h.now, 1, &h.d, new(Next))
	if workers, _ := h.s.hoped(h.now, time.Second); workers != 0 {
		t.Errorf("hopes for %d workers", workers)
	}
}

// A search for several jobs asks those who are too far for the first one, for the others, while it
// waits for a nearer node whose answer was lost.
func TestSearchesForSeveralJobsLookAhead(t *testing.T) {
	asked := func(behind int) int {
		demands := slices.Repeat([]Demand{{Wanted: 1, Least: 1}}, 1+behind)
		h := surrounded(t, jobs.Spec{Min: 1, Max: 1, Slots: 1}, 40, 40)
		answers := map[int]time.Time{} // when nodes that were asked answer
		for {
			n := h.next(demands[1:]...)
			for _, r := range n.Extend {
				for k := 1; k <= 40; k++ {
					if jobtest.Node(k) == r.Node && (k > 1 || r.Again) {
						answers[k] = h.now.Add(time.Duration(k) * time.Millisecond)
					}
				}
			}
			if len(n.Grant) > 0 {
				return len(answers)
			}
			first, at := 0, n.Until
			for k, answer := range answers {
				if answer.After(h.now) && (at.IsZero() || answer.Before(at)) {
					first, at = k, answer
				}
			}
			if at.IsZero() {
				t.Fatal("the search waits for nothing")
			}
			if h.now = at; first == 2 { // all others are busy
				h.answer(first, 1, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
			} else if first > 0 {
				h.answer(first, 0, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
			}
		}
	}
	if alone, ahead := asked(0), asked(5); alone > 8 || ahead < 16 {
		t.Errorf("asks %d nodes for one worker, and %d if five more are wanted by others", alone, ahead)
	}
}
