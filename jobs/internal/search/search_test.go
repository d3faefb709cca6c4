package search

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// hunt is a conversation with one search: the test plays the job and the nodes.
type hunt struct {
	s   *Search
	now time.Time
	d   Demand
}

func newHunt(spec jobs.Spec) *hunt {
	s := New(jobtest.Node(0), rand.New(rand.NewPCG(1, 2)))
	s.Begin(&spec)
	return &hunt{s: s, now: jobtest.Start, d: Demand{Wanted: spec.Workers(), Least: spec.Least()}}
}

// next asks the search what to do, and takes it that the job does it. This node itself has
// no room, see TestOwnSlotsFirst.
func (h *hunt) next(behind ...Demand) Next {
	n := h.s.Next(h.now, append([]Demand{h.d}, behind...)...)
	if n.Flood.Number > 0 && n.Flood.Radius == 0 {
		h.answer(0, 0, nil)
		n = h.s.Next(h.now, append([]Demand{h.d}, behind...)...)
	}
	h.d.Wanted = n.Wanted
	return n
}

// answer lets node n answer the latest round, so many milliseconds away.
func (h *hunt) answer(n, workers int, change func(*wire.Answer)) (act, refused bool) {
	a := wire.Answer{Round: len(h.s.Rounds), Key: uint64(n) + 1, Workers: workers, Capacity: 2}
	if workers == 0 {
		a.Reason = wire.ReasonBusy
	}
	if change != nil {
		change(&a)
	}
	return h.s.Answered(h.now, vicinity.Member{ID: jobtest.Node(n), Name: "n"}, time.Duration(n)*time.Millisecond, a, false)
}

// A job that is short of room says how many members it has not heard.
func TestUnheardMembersAreCounted(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 3, Max: 3, Slots: 1})
	h.s.Members = func() int { return 4 }
	for flood := 1; ; flood++ {
		n := h.next()
		for n.Flood.Number == 0 {
			h.now = n.Until
			n = h.next()
		}
		h.answer(2, 2, nil)
		text := h.next().Text(h.s.Tally())
		if got := strings.HasSuffix(text, "room for 2; no answer from 3 other members: 'zorilla doctor' looks for the cause"); got != (flood >= heardBy) {
			t.Fatalf("after flood %d: %s", flood, text)
		}
		if flood == 2*heardBy {
			return
		}
	}
}

func TestSearchSaysWhatIsNext(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 3, Max: 3, Slots: 1})
	n := h.next()
	if n.Flood.Number != 1 || n.Flood.Wanted != 3 || len(n.Grant) > 0 {
		t.Fatalf("begins with %+v, want a flood for 3 workers", n)
	}
	// The flood is asked for once; then it waits, as long as others' slots may be held.
	if n = h.next(); n.Flood.Number != 0 || !n.Until.Equal(jobtest.Start.Add(KeepOffers)) || !n.Outlook.Flood.Equal(jobtest.Start.Add(time.Second)) {
		t.Fatalf("then it is %+v, want nothing until %v", n, jobtest.Start.Add(time.Second))
	}
	if text := n.Text(h.s.Tally()); text != "looking for 3 workers" {
		t.Errorf("it waits since it is %q", text)
	}
	h.answer(2, 2, nil)
	if n = h.next(); len(n.Grant) > 0 || n.room != 2 || !strings.HasSuffix(n.Text(h.s.Tally()), "together they have room for 2") {
		t.Fatalf("of 3 workers 2 are offered: %+v", n)
	}
	h.answer(4, 2, nil)
	n = h.next()
	if at := jobtest.Start.Add(8 * time.Millisecond); len(n.Grant) > 0 || !n.Until.Equal(at) {
		t.Fatalf("it decides at %v, want %v: two round trips of the farthest node", n.Until, at)
	}
	h.now = n.Until
	n = h.next()
	want := []Choice{{0, jobtest.Node(2), "n", 3, 2 * time.Millisecond, []int{0, 1}, nil}, {0, jobtest.Node(4), "n", 5, 4 * time.Millisecond, []int{2}, nil}}
	if !slices.EqualFunc(n.Grant, want, func(a, b Choice) bool {
		return a.Node == b.Node && a.Name == b.Name && a.Key == b.Key && a.RTT == b.RTT && slices.Equal(a.Places, b.Places)
	}) || n.Wanted != 0 || !n.Until.IsZero() {
		t.Fatalf("takes %+v, want %+v, and nothing to wait for", n, want)
	}
	// What comes now is given back for good.
	h.answer(6, 1, nil)
	if n = h.next(); !returns(n, 6) || !n.Over {
		t.Fatalf("an offer too many: %+v", n)
	}
}

func TestSearchDoesNotHoldOthersSlots(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 3, Max: 3, Slots: 1})
	h.next()
	h.answer(2, 2, nil)
	h.now = jobtest.Start.Add(KeepOffers - time.Millisecond)
	if n := h.next(); len(n.Release) > 0 {
		t.Fatalf("gives %v back at once", n.Release)
	}
	h.now = jobtest.Start.Add(KeepOffers + 500*time.Millisecond)
	n := h.next()
	if n.Flood.Number != 2 { // the schedule is due as well, and comes first
		t.Fatalf("got %+v, want the next flood", n)
	}
	h.now = h.now.Add(KeepOffers)
	if n = h.next(); !returns(n, 2) || n.Over {
		t.Fatalf("got %+v, want what is not enough back, for now", n)
	}
}

func TestSearchFollowsUpWhatAQueueOffers(t *testing.T) {
	queue := func(a *wire.Answer) { a.Round = 0 }
	for name, c := range map[string]struct {
		room    int
		reflood bool
		waits   bool // for a shared search: it has not flooded itself
	}{
		"together there is room":                   {room: 2, reflood: true},
		"together there is no room":                {room: 1},
		"together there is room, before its flood": {room: 2, reflood: true, waits: true},
	} {
		h := newHunt(jobs.Spec{Min: 3, Max: 3, Slots: 1})
		next := func() Next { return h.next() }
		if c.waits {
			next = func() (none Next) { return none }
		}
		next()
		h.answer(1, 0, func(a *wire.Answer) { a.Capacity = c.room })
		h.answer(2, 1, func(a *wire.Answer) { queue(a); a.Capacity = 1 })
		next()
		if !c.reflood {
			if n := h.s.FollowUp(h.now, h.d, jobtest.Node(2)); len(n.Release) > 0 {
				t.Errorf("%s: gives %v back before the others have answered", name, n.Release)
			}
			h.s.releaseAt = time.Time{} // they have had the time
		}
		n := h.s.FollowUp(h.now, h.d, jobtest.Node(2))
		again := h.s.Outlook(h.d)
		if c.reflood {
			if len(n.Release) > 0 || h.s.refloodAt.Before(h.s.FloodedAt.Add(time.Second)) || h.s.releaseAt.Before(h.s.refloodAt.Add(KeepOffers)) || again.Flood.IsZero() {
				t.Errorf("%s: got %+v, asks again at %v, gives back at %v", name, n, h.s.refloodAt, h.s.releaseAt)
			}
		} else if !returns(n, 2) || n.Over || !h.s.refloodAt.IsZero() {
			t.Errorf("%s: got %+v, want the offer back for now", name, n)
		}
	}
}

// Jobs that are in each other's way get offers of queues by turns. Each flood because of that which finds
// too little doubles the pause before the next.
func TestFloodsBecauseOfQueuesBecomeRare(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 3, Max: 3, Slots: 1})
	h.next()
	floods, last := []time.Duration{}, h.s.FloodedAt
	for h.now.Before(jobtest.Start.Add(time.Minute)) {
		h.s.schedule.Reset(h.now.Add(time.Hour)) // no others
		h.answer(1, 0, func(a *wire.Answer) { a.Capacity = 2 })
		h.answer(2, 1, func(a *wire.Answer) { a.Round, a.Key = 0, uint64(h.now.UnixNano()) })
		h.next()
		h.s.FollowUp(h.now, h.d, jobtest.Node(2))
		h.now = h.now.Add(50 * time.Millisecond)
		if h.next(); h.s.FloodedAt != last {
			floods, last = append(floods, h.s.FloodedAt.Sub(last).Round(time.Second)), h.s.FloodedAt
		}
	}
	if want := []time.Duration{1, 2, 4, 8, 8, 8, 8, 8, 8, 8}; len(floods) < 7 || len(floods) > len(want) {
		t.Errorf("floods after %v, want pauses of 1, 2, 4, then 8 s", floods)
	} else {
		for i, pause := range floods {
			if pause != want[i]*time.Second {
				t.Errorf("flood %d comes after %v, want %v", i, pause, want[i]*time.Second)
			}
		}
	}
}

func TestSearchKeepsAwayFromNodes(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 1, Max: 1, Slots: 1})
	h.next()
	h.answer(1, 1, nil)
	h.s.Avoid(h.now, jobtest.Node(1))
	h.s.Lost(h.now, jobtest.Node(1), "did not answer")
	if a := h.s.Answers[jobtest.Node(1)]; a.Offered != 0 || a.Reason != "did not answer" {
		t.Errorf("its answer is now %+v", a)
	}
	if act, refused := h.answer(1, 1, nil); act || !refused || len(h.s.Offers) > 0 {
		t.Error("takes an offer of a node that has just failed")
	}
	h.s.Readmit(jobtest.Node(1))
	if act, refused := h.answer(1, 1, nil); act || refused {
		t.Error("takes, or refuses again, an offer that was refused before it was sent")
	}
	if act, refused := h.answer(1, 1, func(a *wire.Answer) { a.Key = 99 }); !act || refused {
		t.Error("refuses the offer of a node that was readmitted")
	}
	h.s.Avoid(h.now, jobtest.Node(2))
	h.now = h.now.Add(AvoidFor)
	if act, refused := h.answer(2, 1, nil); !act || refused {
		t.Error("refuses the offer of a node for ever")
	}
}

func TestRoomIsThatOfLatestAnswers(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 9, Max: 9, Slots: 1})
	h.next()
	for _, capacity := range []int{5, 2, 3} {
		h.answer(1, 0, func(a *wire.Answer) { a.Capacity = capacity })
		h.answer(2, 0, func(a *wire.Answer) { a.Capacity = 1 })
		if n := h.next(); n.room != capacity+1 {
			t.Errorf("room for %d, want %d", n.room, capacity+1)
		}
	}
}

// returns reports whether the offer of a node, and no other, is given back.
func returns(n Next, node int) bool {
	return len(n.Release) == 1 && n.Release[0].Node == jobtest.Node(node) && n.Release[0].Key != 0
}
