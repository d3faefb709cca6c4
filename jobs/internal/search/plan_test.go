package search

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
)

// ahead lists steps: from which second on there is room for how many workers of a slot.
func ahead(kinds bool, pairs ...int) (list []wire.Step) {
	for i := 0; i < len(pairs); i += 2 {
		s := wire.Step{In: int64(pairs[i]) * 1000, Workers: pairs[i+1]}
		if kinds && s.Workers > 0 {
			s.Room = &wire.Room{Slots: s.Workers}
		}
		list = append(list, s)
	}
	return list
}

// starts says when what is wanted could begin, and where, as "60: 1x2 2x1".
func starts(h *hunt, from, until time.Duration) string {
	var end time.Time
	if until > 0 {
		end = h.now.Add(until)
	}
	at, parts := Forecast{h.s, h.now, h.d}.Earliest(h.now.Add(from), end)
	if at.IsZero() {
		return "never"
	}
	text := fmt.Sprintf("%v:", at.Sub(h.now).Seconds())
	for _, p := range parts {
		n := 0
		for jobtest.Node(n) != p.Node {
			n++
		}
		text += fmt.Sprintf(" %dx%d", n, p.Workers)
	}
	return text
}

func TestEarliestStart(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 3, Max: 3, Slots: 1})
	h.s.Members = func() int { return 4 }
	h.s.Plan.Ask()
	n := h.next()
	for !n.Plan {
		h.now = n.Until
		n = h.next()
	}
	h.s.Sent(h.now, len(h.s.Rounds), flood.Flood{})
	if done, until := (Forecast{h.s, h.now, h.d}).Ready(); done || until != h.now.Add(planWait) {
		t.Fatal("nobody has answered")
	}
	busy := func(steps ...int) func(*wire.Answer) {
		return func(a *wire.Answer) { a.Key, a.Reason, a.Steps = 0, wire.ReasonBusy, ahead(false, steps...) }
	}
	h.answer(1, 0, busy(0, 0, 60, 2))
	h.answer(2, 0, busy(0, 1, 30, 0, 90, 2, 600, 9))
	if got := starts(h, 0, 0); got != "90: 1x2 2x1" {
		t.Errorf("it begins at %s", got)
	}
	h.answer(3, 0, busy(20, 1, 50, 0))
	if done, _ := (Forecast{h.s, h.now.Add(planWait), h.d}).Ready(); !done {
		t.Error("answers are still waited for")
	}
	for _, tt := range []struct {
		from, until time.Duration
		want        string
	}{
		{0, 0, "90: 1x2 2x1"}, {2 * time.Minute, 0, "120: 1x2 2x1"}, {0, 89 * time.Second, "never"}, {0, 90 * time.Second, "90: 1x2 2x1"},
	} {
		if got := starts(h, tt.from, tt.until); got != tt.want {
			t.Errorf("from %v until %v: %s, want %s", tt.from, tt.until, got, tt.want)
		}
	}
	h.answer(2, 0, busy(0, 1, 90, 2)) // it has room at once
	if got := starts(h, 0, 0); got != "60: 1x2 2x1" {
		t.Errorf("it begins at %s", got)
	}
	h.s.Avoid(h.now, jobtest.Node(1)) // for a while
	if got := starts(h, 0, 0); got == "60: 1x2 2x1" {
		t.Errorf("it begins at %s, where it keeps away", got)
	}
	h.s.Gone(jobtest.Node(2))
	if got := starts(h, 0, 0); got != "never" {
		t.Errorf("it begins at %s, with a node that is gone", got)
	}
}

// A start is promised only where links hold, and no more than the job begins with.
func TestEarliestStartOfGroups(t *testing.T) {
	s := newSites(t, near(5, groups.Group{Min: 4, Max: 8}))
	s.s.Plan.Ask()
	s.s.Plan.begin(s.now)
	say := func(steps []wire.Step, nodes ...int) {
		for _, n := range nodes {
			s.says(n, wire.Answer{Round: len(s.s.Rounds), Reason: wire.ReasonBusy, Capacity: 8, Fits: 1<<jobs.MaxKinds - 1, Steps: steps})
		}
	}
	say(ahead(true, 10, 2), 10, 20)
	say(ahead(true, 60, 2), 11)
	say(ahead(true, 30, 9), 30)
	if got := starts(s.hunt, 0, 0); got != "30: 30x4" {
		t.Errorf("it begins at %s", got)
	}
	say(ahead(true, 900, 9), 30)
	if got := starts(s.hunt, 0, 0); got != "60: 10x2 11x2" {
		t.Errorf("it begins at %s", got)
	}
	_, parts := Forecast{s.s, s.now, s.d}.Earliest(s.now, time.Time{})
	if !slices.Equal(parts, []Part{{jobtest.Node(10), "n10", 2, wire.Room{Slots: 2}}, {jobtest.Node(11), "n11", 2, wire.Room{Slots: 2}}}) {
		t.Errorf("parts %v", parts)
	}
}
