package participant

import (
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/work"
)

// reporting is a participant with one worker that runs, whose report is on its way.
func reporting(t *testing.T) (*hand, []DoReport) {
	t.Helper()
	h := newHand(t, 1)
	h.ready(1)
	h.report(&wire.Ack{})
	h.start(0)
	list := take[DoReport](h)
	if len(list) != 1 {
		t.Fatalf("%d reports", len(list))
	}
	return h, list
}

// What the origin says beside its answers counts more than the answer to a report that was
// on its way then: the bytes below it may be freed.
func TestHeldOvertakesAnAnswer(t *testing.T) {
	h, list := reporting(t)
	w, ra := h.p.Works[h.job], h.id(0).RankAttempt
	answer := func(n int64) {
		h.p.Acknowledged(h.now, &list[0].Report, false, wire.Ack{Known: true, Workers: []wire.WorkerAck{{RankAttempt: ra, Stdout: n}}})
	}
	h.p.Held(h.now, h.job, []wire.Held{{RankAttempt: ra, Have: wire.Written{Stdout: 9}, Safe: wire.Written{Stdout: 8}}}, true)
	if acks := take[DoAck](h); len(acks) != 1 || acks[0].Safe.Stdout != 8 {
		t.Errorf("acknowledged: %+v", acks)
	}
	answer(5)
	if at, known := w.Acked(ra); !known || at.Stdout != 9 {
		t.Errorf("goes on at %d, %t; want 9", at.Stdout, known)
	}
	if list = take[DoReport](h); len(list) != 1 || list[0].Readings[0].From.Stdout != 9 {
		t.Fatalf("reports after the whole: %+v", list)
	}
	answer(5) // it has lost some of it since
	if at, _ := w.Acked(ra); at.Stdout != 5 {
		t.Errorf("goes on at %d, want 5", at.Stdout)
	}
}

// A report that was begun before the origin told of more, and finds that freed, misses
// nothing; a worker whose origin wants what was freed is lost.
func TestWhatWasFreedMeanwhileIsNotMissed(t *testing.T) {
	h, _ := reporting(t)
	k := h.p.Works[h.job].Workers[0]
	h.p.Held(h.now, h.job, []wire.Held{{RankAttempt: k.RankAttempt, Have: wire.Written{Stdout: 9}, Safe: wire.Written{Stdout: 8}}}, false)
	h.p.Unreadable(h.now, k.id(), work.Stdout, 0)
	if k.State == jobs.WorkerLost {
		t.Error("lost, though the origin has what was freed")
	}
	for has := range int64(2) { // words of it may have overtaken each other; to have more ends all doubts
		h.p.Held(h.now, h.job, []wire.Held{{RankAttempt: k.RankAttempt, Have: wire.Written{Stdout: 9 + has}}}, false)
		for range maxDoubts - 1 {
			h.p.Unreadable(h.now, k.id(), work.Stdout, 9+has)
			if _, known := k.work.Acked(k.RankAttempt); k.State == jobs.WorkerLost || known {
				t.Fatalf("it is %s at once, and the origin is not asked anew: %v", k.State, known)
			}
		}
	}
	h.p.Unreadable(h.now, k.id(), work.Stdout, 10)
	if k.State != jobs.WorkerLost {
		t.Error("not lost, though the origin wants what was freed")
	}
}
