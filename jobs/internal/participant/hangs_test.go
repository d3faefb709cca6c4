package participant

import (
	"errors"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/work"
)

// Where the disk does not answer, all that has not begun to run goes back to its origin at once,
// whatever is being done for it, and its room is free when that is done. What runs goes on.
func TestDiskThatHangsGivesBackWhatHasNotBegun(t *testing.T) {
	const claims, lays, tries, waits, starts, begins, runs, all = 0, 1, 2, 3, 4, 5, 6, 7
	h := newHand(t, all)
	if err := h.grant(jobs.Spec{}, 0, all); err != nil {
		t.Fatal(err)
	}
	take[DoClaim](h)
	for rank := lays; rank < all; rank++ {
		h.p.Claimed(h.now, h.id(rank), nil, h.now)
	}
	take[DoLay](h)
	h.p.Laid(h.now, h.id(tries), errors.New("no room"), h.now)
	for rank := waits; rank < all; rank++ {
		h.p.Laid(h.now, h.id(rank), nil, h.now)
	}
	h.start(runs)
	h.p.Started(h.now, &wire.Start{Job: h.job, Size: 8, Ranks: []jobs.RankAttempt{h.id(starts).RankAttempt, h.id(begins).RankAttempt}})
	take[DoRun](h)
	h.report(&wire.Ack{Known: true})
	h.p.Answers(h.now, false)
	for _, w := range h.report(nil).Workers {
		if back := w.State == jobs.WorkerLost && w.Declined && w.Reason == wire.ReasonHangs; back == (w.Rank == runs) {
			t.Errorf("rank %d: %+v", w.Rank, w)
		}
	}
	for rank := range all {
		if h.p.GivenBack(h.id(rank)) == (rank == runs) {
			t.Errorf("rank %d is given back: %v", rank, rank != runs)
		}
	}
	h.used(all)
	h.p.Answers(h.now, true)
	h.p.Claimed(h.now, h.id(claims), nil, h.now)
	h.p.Laid(h.now, h.id(lays), nil, h.now)
	h.p.Tried(h.now, h.id(tries), "")
	h.p.NotBegun(h.now, h.id(starts), "it was given back", h.now)
	h.p.Begun(h.now, h.id(begins), 0)
	if ends := take[DoEnd](h); len(ends) != 1 || ends[0].Worker != h.id(begins) {
		t.Errorf("told to end: %+v", ends)
	}
	h.exits(begins, work.Exit{Cause: work.Stopped})
	for _, e := range take[DoPark](h) {
		h.p.Parked(h.now, e.Worker, nil)
	}
	h.used(1)
	for _, k := range h.p.Works[h.job].Workers {
		if over := k.Phase == PhaseOver && k.State == jobs.WorkerLost && k.Declined; over == (k.Rank == runs) {
			t.Errorf("rank %d: phase %v, %v", k.Rank, k.Phase, k.State)
		}
	}
}

// That output files are being stored is told, also while that waits for a disk.
func TestStoringIsTold(t *testing.T) {
	h := newHand(t, 1)
	h.ready(1)
	h.start(0)
	h.report(&wire.Ack{})
	h.p.Works[h.job].Spec.Outputs = []string{"*"}
	storing := func(want bool) {
		t.Helper()
		h.p.Works[h.job].tell(h.now)
		if w := h.report(&wire.Ack{}).Workers[0]; w.Storing != want || w.State != jobs.WorkerRunning {
			t.Errorf("told %+v, want storing: %v", w, want)
		}
	}
	storing(false)
	h.p.Exited(h.now, h.id(0), work.Exit{Cause: work.Exited}, false, h.now)
	storing(true)
	h.p.Answers(h.now, false)
	storing(true)
}
