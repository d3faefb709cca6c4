package participant

import (
	"errors"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/work"
)

// A node that ends its workers when it leaves gives back what has not begun, wherever
// that is; one that leaves them keeps it for its next life.
func TestWorkersOfANodeThatLeaves(t *testing.T) {
	for _, evict := range []bool{false, true} {
		h := newHand(t, 4)
		if err := h.grant(jobs.Spec{}, 0, 4); err != nil {
			t.Fatal(err)
		}
		laid := take[DoClaim](h)
		for _, e := range laid[:3] {
			h.p.Claimed(h.now, e.Worker, nil, h.now)
		}
		lays := take[DoLay](h)
		h.p.Laid(h.now, lays[0].Worker, nil, h.now)
		h.p.Laid(h.now, lays[1].Worker, errors.New("no room"), h.now) // is being looked into
		if evict {
			h.p.EvictAll(h.now, WantEvict, wire.ReasonLeaving)
		}
		h.p.Leave(h.now, time.Minute)
		h.p.Laid(h.now, lays[2].Worker, errors.New("cancelled"), h.now)
		h.p.Claimed(h.now, laid[3].Worker, nil, h.now)
		h.p.Tried(h.now, take[DoTry](h)[0].Worker, "cancelled")
		parked := take[DoPark](h)
		if want := map[bool]int{false: 0, true: 4}[evict]; len(parked) != want {
			t.Errorf("evicts %v: %d are given back, want %d", evict, len(parked), want)
		}
		for _, k := range h.p.Works[h.job].Workers {
			if k.Declined != evict || evict && k.reason != wire.ReasonLeaving || !evict && !k.Detached {
				t.Errorf("evicts %v: %+v", evict, k)
			}
		}
	}
}

// What is not written down of a worker is not left to the next life of its node.
func TestUnclaimedWorkersAreNotLeft(t *testing.T) {
	h := newHand(t, 1)
	h.ready(1)
	h.p.EvictAll(h.now, WantEvict, wire.ReasonDraining)
	h.p.Parked(h.now, take[DoPark](h)[0].Worker, errors.New("disk full"))
	h.p.Leave(h.now, time.Minute)
	if k := h.p.Works[h.job].Workers[0]; k.Detached || k.Lasts() {
		t.Errorf("%+v", k)
	}
}

// What happens at once is told in one report: a grant to a job without inputs with
// that it is ready, an exit without files with how it ended.
func TestWhatFollowsAtOnceIsOneReport(t *testing.T) {
	h := newHand(t, 1)
	if err := h.grant(jobs.Spec{}, 0, 1); err != nil {
		t.Fatal(err)
	}
	told := func(want jobs.WorkerState) {
		t.Helper()
		list := take[DoReport](h)
		if want == "" && len(list) != 0 || want != "" && (len(list) != 1 || list[0].Report.Workers[0].State != want) {
			t.Errorf("told %+v, want %q", list, want)
		}
		if len(list) > 0 {
			h.p.Acknowledged(h.now, &list[0].Report, false, wire.Ack{Known: true})
		}
	}
	told("")
	h.p.Claimed(h.now, h.id(0), nil, h.now)
	told("")
	h.p.Laid(h.now, h.id(0), nil, h.now)
	told(jobs.WorkerReady)
	h.start(0)
	told(jobs.WorkerRunning)
	h.exits(0, work.Exit{})
	told(jobs.WorkerEnded)

	h = newHand(t, 1)
	if err := h.grant(jobs.Spec{}, 0, 1); err != nil {
		t.Fatal(err)
	}
	h.now = h.now.Add(wire.ReportEvery)
	told(jobs.WorkerPreparing)
}
