package jobs

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/vicinity"
)

// hunt is a conversation with one search: the test plays the job and the nodes.
type hunt struct {
	s   *search
	now time.Time
	d   demand
}

func newHunt(spec Spec) *hunt {
	s := newSearch(testNode(0), rand.New(rand.NewPCG(1, 2)), flood.Schedule{})
	s.begin(&spec, flood.Schedule{})
	return &hunt{s: s, now: start, d: demand{wanted: spec.Workers(), least: spec.least()}}
}

// next asks the search what to do, and takes it that the job does it.
func (h *hunt) next() next {
	n := h.s.next(h.now, h.d)
	h.d.wanted = n.wanted
	return n
}

// answer lets node n answer the latest round, so many milliseconds away.
func (h *hunt) answer(n, workers int, change func(*Answer)) (act, refused bool) {
	a := Answer{Round: len(h.s.rounds), Key: uint64(n) + 1, Workers: workers, Capacity: 2}
	if workers == 0 {
		a.Reason = reasonBusy
	}
	if change != nil {
		change(&a)
	}
	return h.s.answered(h.now, vicinity.Member{ID: testNode(n), Name: "n"}, time.Duration(n)*time.Millisecond, a, false)
}

func TestSearchSaysWhatIsNext(t *testing.T) {
	h := newHunt(Spec{Min: 3, Max: 3, Slots: 1})
	n := h.next()
	if n.flood.Number != 1 || n.flood.Wanted != 3 || len(n.grant) > 0 {
		t.Fatalf("begins with %+v, want a flood for 3 workers", n)
	}
	// The flood is asked for once; then it waits, as long as others' slots may be held.
	if n = h.next(); n.flood.Number != 0 || !n.until.Equal(start.Add(keepOffers)) || !n.outlook.flood.Equal(start.Add(time.Second)) {
		t.Fatalf("then it is %+v, want nothing until %v", n, start.Add(time.Second))
	}
	if text := n.text(h.s.tally()); text != "looking for 3 workers" {
		t.Errorf("it waits since it is %q", text)
	}
	h.answer(2, 2, nil)
	if n = h.next(); len(n.grant) > 0 || n.room != 2 || !strings.HasSuffix(n.text(h.s.tally()), "together they have room for 2") {
		t.Fatalf("of 3 workers 2 are offered: %+v", n)
	}
	h.answer(4, 2, nil)
	n = h.next()
	if at := start.Add(8 * time.Millisecond); len(n.grant) > 0 || !n.until.Equal(at) {
		t.Fatalf("it decides at %v, want %v: two round trips of the farthest node", n.until, at)
	}
	h.now = n.until
	n = h.next()
	want := []choice{{testNode(2), "n", 3, 2 * time.Millisecond, []int{0, 1}}, {testNode(4), "n", 5, 4 * time.Millisecond, []int{2}}}
	if !slices.EqualFunc(n.grant, want, func(a, b choice) bool {
		return a.node == b.node && a.name == b.name && a.key == b.key && a.rtt == b.rtt && slices.Equal(a.places, b.places)
	}) || n.wanted != 0 || !n.until.IsZero() {
		t.Fatalf("takes %+v, want %+v, and nothing to wait for", n, want)
	}
	// What comes now is given back for good.
	h.answer(6, 1, nil)
	if n = h.next(); !slices.Equal(n.release, []vicinity.ID{testNode(6)}) || !n.over {
		t.Fatalf("an offer too many: %+v", n)
	}
}

func TestSearchDoesNotHoldOthersSlots(t *testing.T) {
	h := newHunt(Spec{Min: 3, Max: 3, Slots: 1})
	h.next()
	h.answer(2, 2, nil)
	h.now = start.Add(keepOffers - time.Millisecond)
	if n := h.next(); len(n.release) > 0 {
		t.Fatalf("gives %v back at once", n.release)
	}
	h.now = start.Add(keepOffers + 500*time.Millisecond)
	n := h.next()
	if n.flood.Number != 2 { // the schedule is due as well, and comes first
		t.Fatalf("got %+v, want the next flood", n)
	}
	h.now = h.now.Add(keepOffers)
	if n = h.next(); !slices.Equal(n.release, []vicinity.ID{testNode(2)}) || n.over {
		t.Fatalf("got %+v, want what is not enough back, for now", n)
	}
}

func TestSearchFollowsUpWhatAQueueOffers(t *testing.T) {
	queue := func(a *Answer) { a.Round = 0 }
	for name, c := range map[string]struct {
		room    int
		reflood bool
	}{
		"together there is room":    {room: 2, reflood: true},
		"together there is no room": {room: 1},
	} {
		h := newHunt(Spec{Min: 3, Max: 3, Slots: 1})
		h.next()
		h.answer(1, 0, func(a *Answer) { a.Capacity = c.room })
		h.answer(2, 1, func(a *Answer) { queue(a); a.Capacity = 1 })
		h.next()
		n := h.s.followUp(h.now, h.d, testNode(2))
		again := h.s.outlook(h.d)
		if c.reflood {
			if len(n.release) > 0 || h.s.refloodAt.Before(start.Add(time.Second)) || h.s.releaseAt.Before(h.s.refloodAt) || again.flood.IsZero() {
				t.Errorf("%s: got %+v, asks again at %v, gives back at %v", name, n, h.s.refloodAt, h.s.releaseAt)
			}
		} else if !slices.Equal(n.release, []vicinity.ID{testNode(2)}) || n.over || !h.s.refloodAt.IsZero() {
			t.Errorf("%s: got %+v, want the offer back for now", name, n)
		}
	}
}

func TestSearchKeepsAwayFromNodes(t *testing.T) {
	h := newHunt(Spec{Min: 1, Max: 1, Slots: 1})
	h.next()
	h.answer(1, 1, nil)
	h.s.failedAt(h.now, testNode(1), "did not answer")
	if a := h.s.answers[testNode(1)]; a.Offered != 0 || a.Reason != "did not answer" {
		t.Errorf("its answer is now %+v", a)
	}
	if act, refused := h.answer(1, 1, nil); act || !refused {
		t.Error("takes an offer of a node that has just failed")
	}
	h.s.forgive(testNode(1))
	if act, refused := h.answer(1, 1, nil); !act || refused {
		t.Error("refuses the offer of a node that is forgiven")
	}
	h.s.shun(h.now, testNode(2))
	h.now = h.now.Add(avoidFor)
	if act, refused := h.answer(2, 1, nil); !act || refused {
		t.Error("refuses the offer of a node for ever")
	}
}

func TestRoomIsThatOfLatestAnswers(t *testing.T) {
	h := newHunt(Spec{Min: 9, Max: 9, Slots: 1})
	h.next()
	for _, capacity := range []int{5, 2, 3} {
		h.answer(1, 0, func(a *Answer) { a.Capacity = capacity })
		h.answer(2, 0, func(a *Answer) { a.Capacity = 1 })
		if n := h.next(); n.room != capacity+1 {
			t.Errorf("room for %d, want %d", n.room, capacity+1)
		}
	}
}
