package search

import (
	"testing"
	"time"

	"zorilla/docs/tables"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Who was asked and says nothing is named, so that nobody wonders why it was passed over.
func TestSilentNodesAreNamed(t *testing.T) {
	h := surrounded(t, jobs.Spec{Min: 3, Max: 3, Slots: 1}, 20, 20)
	h.s.Measured = func(id vicinity.ID) time.Duration {
		if id == jobtest.Node(4) {
			return 0
		}
		return time.Millisecond
	}
	asked := len(h.next().Extend)
	h.answer(2, 1, func(a *wire.Answer) { a.Hops, a.Rim = 1, true })
	list := h.s.Silent()
	if asked < 4 || len(list) != asked-2 {
		t.Fatalf("%d of %d were asked and are silent: %+v", len(list), asked, list)
	}
	for _, a := range list {
		if a.Node == jobtest.Node(2) || a.Node == jobtest.Node(4) || !a.At.IsZero() || a.RTT == 0 {
			t.Errorf("%+v", a)
		}
		wantRow(t, "has not answered", a.Reason)
	}
}

func wantRow(t *testing.T, name, reason string) {
	t.Helper()
	if err := tables.Check("../../../docs/exit-codes.md", name, tables.Seen{Reason: reason}); err != nil {
		t.Error(err)
	}
}

// A job counts on no room of nodes that are gone, and says of nodes that it lost, or that it
// gave back for the sake of another, what became of them.
func TestLostNodesAreNotCountedOn(t *testing.T) {
	h := begun(2)
	h.answer(2, 1, nil)
	h.answer(3, 1, nil)
	h.next()
	before := h.s.roomFor
	h.s.fate(jobtest.Node(2), taken)
	h.s.fate(jobtest.Node(3), taken)
	h.s.Gone(jobtest.Node(2))
	h.s.Lost(h.now, jobtest.Node(2), "lost")
	if _, known := h.s.room[jobtest.Node(2)]; known || h.s.roomFor >= before {
		t.Errorf("room for %d, %d before", h.s.roomFor, before)
	}
	h.s.Ungranted([]vicinity.ID{jobtest.Node(2), jobtest.Node(3)}, "n2: lost")
	if a := h.s.Answers[jobtest.Node(2)]; a.Why() != "lost" || a.Offered != 0 {
		t.Errorf("%+v", a)
	}
	if a := h.s.Answers[jobtest.Node(3)]; a.Why() != "given back: n2: lost" {
		t.Errorf("%+v", a)
	}
	wantRow(t, "given back: …", h.s.Answers[jobtest.Node(3)].Fate)
	h.answer(2, 1, nil)
	if h.s.roomFor != before {
		t.Errorf("room for %d when it is back, %d before", h.s.roomFor, before)
	}
}
