package search

import (
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// failedAt is a job of one worker in a network of so many members whose program has just failed at node 1.
func failedAt(t *testing.T, members int) *hunt {
	t.Helper()
	h := newHunt(jobs.Spec{Min: 1, Max: 2, Slots: 1})
	h.d = Demand{Wanted: 1, Least: 1}
	h.s.Members = func() int { return members }
	h.next()
	h.sent(t, 1, 0)
	h.s.Demote(h.now, jobtest.Node(1))
	return h
}

func flooded(n int) func(*wire.Answer) { return func(a *wire.Answer) { a.Hops, a.Round = 1, n } }

// A node at which the job's program has failed comes after the others.
func TestOthersComeFirst(t *testing.T) {
	h := failedAt(t, 3)
	h.answer(1, 0, nil)
	_, refused := h.answer(1, 1, flooded(1))
	if a := h.s.Answers[jobtest.Node(1)]; !refused || a.Fate != failedThere || a.Reason != "" || a.Offered != 1 {
		t.Fatalf("its offer is refused: %v, as told: %+v", refused, a)
	}
	wantRow(t, "given back: the program failed there, and others come first", h.s.Answers[jobtest.Node(1)].Fate)
	for range 2 {
		if n := h.next(); n.Flood.Number > 0 {
			t.Fatal("it is asked again before another node has answered")
		}
	}
	h.answer(2, 1, flooded(1))
	for range 9 {
		if n := h.next(); len(n.Grant) > 0 {
			if n.Grant[0].Node != jobtest.Node(2) {
				t.Fatalf("took %v", n.Grant[0].Node)
			}
			return
		}
		h.now = h.now.Add(MaxNearerWait)
	}
	t.Fatal("nobody is taken")
}

// It is asked once more as soon as all others have said that they have no room.
func TestItIsAskedAgainOnceOthersHaveNoRoom(t *testing.T) {
	h := failedAt(t, 3)
	h.answer(2, 0, flooded(1))
	if act, refused := h.answer(1, 1, flooded(1)); !act || !refused {
		t.Fatalf("refused: %v, goes on: %v", refused, act)
	}
	n := h.next()
	if n.Until.After(h.now) {
		t.Fatalf("waits until %v", n.Until.Sub(h.now))
	}
	if n = h.next(); n.Flood.Number != 2 {
		t.Fatalf("got %+v, want a flood", n)
	}
	if _, refused := h.answer(1, 1, flooded(2)); refused {
		t.Fatal("its offer is refused again")
	}
}

// Where not all answer it is asked again with the next flood.
func TestItIsAskedAgainWithTheNextFlood(t *testing.T) {
	h := failedAt(t, 9)
	h.answer(1, 1, flooded(1))
	h.next()
	if h.now = h.now.Add(time.Second); h.next().Flood.Number != 2 {
		t.Fatal("no flood after a second")
	}
	if _, refused := h.answer(1, 1, flooded(2)); refused {
		t.Fatal("its offer is refused again")
	}
}

// What this node says before others are asked does not count: they come first.
func TestOwnAnswerBeforeTheFloodDoesNotCount(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 1, Max: 2, Slots: 1})
	h.d = Demand{Wanted: 1, Least: 1}
	h.s.Members = func() int { return 2 }
	h.s.Demote(h.now, jobtest.Node(0))
	if n := h.s.Next(h.now, h.d); n.Flood.Radius != 0 {
		t.Fatalf("got %+v, want a question to this node", n)
	}
	h.answer(0, 1, func(a *wire.Answer) { a.Round = 1 })
	if n := h.s.Next(h.now, h.d); n.Flood.Number != 1 {
		t.Fatalf("got %+v, want a flood", n)
	}
	if _, refused := h.answer(0, 1, func(a *wire.Answer) { a.Round = 1 }); !refused {
		t.Error("takes its own slots before others have answered")
	}
}

// What keeps a job from a node for its own sake is not shortened by a program that fails there.
func TestMachinesFaultsWeighMore(t *testing.T) {
	h := failedAt(t, 1)
	h.s.Avoid(h.now, jobtest.Node(2))
	h.s.Demote(h.now, jobtest.Node(2))
	h.answer(2, 1, flooded(1))
	if h.s.lastResort() {
		t.Error("it is asked again")
	}
	h.s.resort()
	if h.answer(2, 1, func(a *wire.Answer) { a.Key = 99 }); len(h.s.Offers) > 0 {
		t.Error("its offer is taken")
	}
}

// Answers name offers that were given back while they were on their way.
func TestWhatWasGivenBackIsNotTaken(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 2, Max: 2, Slots: 1})
	h.next()
	h.answer(1, 1, nil)
	h.s.GiveBack(notEnough)
	if act, refused := h.answer(1, 1, nil); act || refused || len(h.s.Offers) > 0 || h.s.Answers[jobtest.Node(1)].Fate != "given back: "+notEnough {
		t.Errorf("takes what it has given back: %+v, %+v", h.s.Offers, h.s.Answers[jobtest.Node(1)])
	}
	if act, _ := h.answer(1, 0, nil); !act {
		t.Error("does not hear that its room is gone")
	}
	h.s.over = true
	h.answer(1, 1, nil)
	if a := h.s.Answers[jobtest.Node(1)]; a.Reason != wire.ReasonBusy || a.Fate != "" {
		t.Errorf("once the search is over it tells %+v", a)
	}
	h.s.over = false
	h.answer(1, 1, func(a *wire.Answer) { a.Key, a.Round = 99, 0 })
	if len(h.s.Offers) != 1 {
		t.Error("does not take the next offer")
	}
	h.s.GiveBack(notEnough)
	h.now = h.now.Add(time.Second)
	h.next()
	if h.answer(1, 1, func(a *wire.Answer) { a.Key = 99 }); len(h.s.Rounds) != 2 || len(h.s.Offers) != 1 {
		t.Errorf("does not take what is offered again to round %d", len(h.s.Rounds))
	}
}

// What a node sent before it knew of a grant is no offer that was passed over.
func TestAnswersBeforeAGrantAreNoOffers(t *testing.T) {
	h := failedAt(t, 2)
	a := wire.Answer{Round: 1, Hops: 1, Key: 2, Workers: 1, Capacity: 2}
	if _, refused := h.s.Answered(h.now, vicinity.Member{ID: jobtest.Node(1)}, time.Millisecond, a, true); refused || h.s.lastResort() {
		t.Errorf("refused: %v, to be asked again: %v", refused, h.s.lastResort())
	}
}
