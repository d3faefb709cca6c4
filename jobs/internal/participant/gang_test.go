package participant

import (
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
)

// A gang that cannot go on takes its own ranks along, of that start alone, and soon; how a
// rank had ended by itself goes before it.
func TestGangLost(t *testing.T) {
	h := newHand(t, 2)
	if err := h.grant(jobs.Spec{Min: 2, Max: 2, Access: jobs.Access{MPI: true}}, 0, 2); err != nil {
		t.Fatal(err)
	}
	start := &wire.Start{Job: h.job, Size: 2, Epoch: 3}
	for rank := range 2 {
		h.p.Claimed(h.now, h.id(rank), nil, h.now)
		h.p.Laid(h.now, h.id(rank), nil, h.now)
		start.Ranks = append(start.Ranks, jobs.RankAttempt{Rank: rank, Attempt: 1})
	}
	h.p.Started(h.now, start)
	for rank := range 2 {
		h.p.Begun(h.now, h.id(rank), 3)
	}
	take[DoEnd](h)
	for gang, want := range map[wire.Gang]bool{{Job: h.job, Epoch: 3}: true, {Job: h.job, Epoch: 3, Replica: 1}: false, {Job: "x" + h.job[1:]}: false} {
		if h.p.Has(gang) != want {
			t.Errorf("it has rank 0 of %+v: %t", gang, !want)
		}
	}
	h.p.GangLost(h.now, wire.Gang{Job: h.job, Epoch: 2}, "an earlier one")
	h.p.GangLost(h.now, wire.Gang{Job: h.job, Epoch: 3, Replica: 1}, "another copy")
	if ends := take[DoEnd](h); len(ends) > 0 {
		t.Fatalf("another gang takes them along: %+v", ends)
	}
	h.p.GangLost(h.now, wire.Gang{Job: h.job, Epoch: 3}, "no word")
	ends := take[DoEnd](h)
	if len(ends) != 2 || ends[0].Grace != GangGrace || ends[0].Note {
		t.Fatalf("ends: %+v", ends)
	}
	h.p.Exited(h.now, h.id(0), process.Exit{Code: 7, Cause: process.Exited}, false, h.now)
	h.p.Exited(h.now, h.id(1), process.Exit{Code: 143, Cause: process.Stopped}, false, h.now)
	work := h.p.Works[h.job]
	if k := work.Workers[0]; k.State != jobs.WorkerEnded || k.exit.Code != 7 {
		t.Errorf("it had ended with 7: %+v", k)
	}
	if k := work.Workers[1]; k.State != jobs.WorkerLost || k.reason != "no word" {
		t.Errorf("it was ended: %+v", k)
	}
}
