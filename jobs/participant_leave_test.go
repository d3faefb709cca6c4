package jobs

import (
	"errors"
	"testing"
	"time"

	"zorilla/jobs/process"
)

// A node that ends its workers when it leaves gives back what has not begun, wherever
// that is; one that leaves them keeps it for its next life.
func TestWorkersOfANodeThatLeaves(t *testing.T) {
	for _, evict := range []bool{false, true} {
		h := newHand(t, 4)
		if err := h.grant(Spec{}, 0, 4); err != nil {
			t.Fatal(err)
		}
		claims := take[doClaim](h)
		for _, e := range claims[:3] {
			h.p.claimed(h.now, e.worker, nil, h.now)
		}
		lays := take[doLay](h)
		h.p.laid(h.now, lays[0].worker, nil, h.now)
		h.p.laid(h.now, lays[1].worker, errors.New("no room"), h.now) // is being looked into
		if evict {
			h.p.evictAll(h.now, reasonLeaving)
		}
		h.p.leave(h.now, time.Minute)
		h.p.laid(h.now, lays[2].worker, errors.New("cancelled"), h.now)
		h.p.claimed(h.now, claims[3].worker, nil, h.now)
		h.p.tried(h.now, take[doTry](h)[0].worker, "cancelled")
		parked := take[doPark](h)
		if want := map[bool]int{false: 0, true: 4}[evict]; len(parked) != want {
			t.Errorf("evicts %v: %d are given back, want %d", evict, len(parked), want)
		}
		for _, k := range h.p.works[h.job].workers {
			if k.declined != evict || evict && k.reason != reasonLeaving || !evict && !k.away {
				t.Errorf("evicts %v: %+v", evict, k)
			}
		}
	}
}

// A node that leaves does not ask to be woken for a trial that it will not make.
func TestNoTrialsWhileLeaving(t *testing.T) {
	w := newWorld(1, 2)
	c := w.nodes[0].core.core
	for range maxMisses {
		c.claims.missed(w.now, "no more processes")
	}
	if c.wake().IsZero() {
		t.Fatal("nothing is tried")
	}
	c.leave(w.now, time.Minute)
	if c.advance(w.now); !c.wake().IsZero() {
		t.Errorf("wants to be woken at %v", c.wake())
	}
}

// What is not written down of a worker is not left to the next life of its node.
func TestUnclaimedWorkersAreNotLeft(t *testing.T) {
	h := newHand(t, 1)
	h.ready(1)
	h.p.evictAll(h.now, reasonDraining)
	h.p.parked(h.now, take[doPark](h)[0].worker, errors.New("disk full"))
	h.p.leave(h.now, time.Minute)
	if k := h.p.works[h.job].workers[0]; k.away || k.lasts() {
		t.Errorf("%+v", k)
	}
}

// What happens at once is told in one report: a grant to a job without inputs with
// that it is ready, an exit without files with how it ended.
func TestWhatFollowsAtOnceIsOneReport(t *testing.T) {
	h := newHand(t, 1)
	if err := h.grant(Spec{}, 0, 1); err != nil {
		t.Fatal(err)
	}
	told := func(want WorkerState) {
		t.Helper()
		list := take[doReport](h)
		if want == "" && len(list) != 0 || want != "" && (len(list) != 1 || list[0].report.Workers[0].State != want) {
			t.Errorf("told %+v, want %q", list, want)
		}
		if len(list) > 0 {
			h.p.acknowledged(h.now, &list[0].report, false, Ack{Known: true})
		}
	}
	told("")
	h.p.claimed(h.now, h.id(0), nil, h.now)
	told("")
	h.p.laid(h.now, h.id(0), nil, h.now)
	told(WorkerReady)
	h.start(0)
	told(WorkerRunning)
	h.p.exited(h.now, h.id(0), process.Exit{}, false, h.now)
	told(WorkerEnded)

	h = newHand(t, 1)
	if err := h.grant(Spec{}, 0, 1); err != nil {
		t.Fatal(err)
	}
	h.now = h.now.Add(reportEvery)
	told(WorkerPreparing)
}
