package participant

import (
	"slices"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/work"
)

// runGang has two ranks of an MPI program run here.
func runGang(t *testing.T) *hand {
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
	return h
}

// A gang that cannot go on takes its own ranks along, of that start alone, and soon; how a
// rank had ended by itself goes before it.
func TestGangLost(t *testing.T) {
	h := runGang(t)
	for gang, want := range map[wire.Gang]bool{{Job: h.job, Epoch: 3}: true, {Job: h.job, Epoch: 3, Replica: 1}: false, {Job: "x" + h.job[1:]}: false} {
		if h.p.Has(gang) != want {
			t.Errorf("it has rank 0 of %+v: %t", gang, !want)
		}
	}
	h.p.GangLost(h.now, wire.Gang{Job: h.job, Epoch: 2}, "an earlier one", false)
	h.p.GangLost(h.now, wire.Gang{Job: h.job, Epoch: 3, Replica: 1}, "another copy", true)
	if ends := take[DoEnd](h); len(ends) > 0 {
		t.Fatalf("another gang takes them along: %+v", ends)
	}
	h.p.GangLost(h.now, wire.Gang{Job: h.job, Epoch: 3}, "no word", false)
	ends := take[DoEnd](h)
	if len(ends) != 2 || ends[0].Grace != GangGrace || ends[0].Note {
		t.Fatalf("ends: %+v", ends)
	}
	h.exits(0, work.Exit{Code: 7, Cause: work.Exited})
	h.exits(1, work.Exit{Code: 143, Cause: work.Stopped})
	works := h.p.Works[h.job]
	if k := works.Workers[0]; k.State != jobs.WorkerEnded || k.exit.Code != 7 {
		t.Errorf("it had ended with 7: %+v", k)
	}
	if k := works.Workers[1]; k.State != jobs.WorkerLost || k.reason != "no word" {
		t.Errorf("it was ended: %+v", k)
	}
}

// A gang of which a rank has failed has its others stopped, as the origin would: the job ends
// as that one did, whoever is heard of first.
func TestGangFailed(t *testing.T) {
	h := runGang(t)
	h.exits(1, work.Exit{Code: 7, Cause: work.Exited})
	if told := take[DoPart](h); len(told) != 1 || !told[0].Failed || told[0].Why != "rank 1: ended with 7" || told[0].Claim.Start.Epoch != 3 || told[0].Again {
		t.Fatalf("the gang is told %+v", told)
	}
	h.p.GangLost(h.now, wire.Gang{Job: h.job, Epoch: 3}, "rank 1: ended with 7", true)
	if ends := take[DoEnd](h); len(ends) != 1 || ends[0].Worker != h.id(0) || ends[0].Grace != GangGrace || !ends[0].Note {
		t.Fatalf("ends: %+v", ends)
	}
	h.exits(0, work.Exit{Code: 143, Cause: work.Stopped})
	if told := take[DoPart](h); len(told) != 1 || told[0].Why != "" {
		t.Errorf("that it was stopped is told as %+v", told)
	}
	if k := h.p.Works[h.job].Workers[0]; k.State != jobs.WorkerEnded || k.exit.Cause != work.Stopped {
		t.Errorf("it was stopped: %+v", k)
	}
}

// A rank of which nobody knows how it ended is lost to its gang, and no failure.
func TestRankIsLostToItsGang(t *testing.T) {
	h := runGang(t)
	h.exits(1, work.Exit{Code: 125, Cause: work.Lost, Detail: "its supervisor was killed"})
	if told := take[DoPart](h); len(told) != 1 || told[0].Failed || told[0].Why != "rank 1: its supervisor was killed" {
		t.Fatalf("the gang is told %+v", told)
	}
}

// Each rank has processors of its own, which its claim names for the next life of the node,
// until it has ended.
func TestCoresOfRanks(t *testing.T) {
	h := newHand(t, 4)
	h.p.Claims.Cores.All = []int{2, 5}
	if err := h.grant(jobs.Spec{Access: jobs.Access{MPI: true}}, 0, 2); err != nil {
		t.Fatal(err)
	}
	start, have := &wire.Start{Job: h.job, Size: 2, Epoch: 3}, []int{}
	for rank := range 2 {
		h.p.Claimed(h.now, h.id(rank), nil, h.now)
		h.p.Laid(h.now, h.id(rank), nil, h.now)
		start.Ranks = append(start.Ranks, jobs.RankAttempt{Rank: rank, Attempt: 1})
	}
	h.p.Started(h.now, start)
	for _, e := range take[DoRun](h) {
		have = append(have, e.Claim.Cores...)
	}
	if slices.Sort(have); !slices.Equal(have, []int{2, 5}) {
		t.Fatalf("they have %v", have)
	}
	h.p.Begun(h.now, h.id(0), 3)
	h.exits(0, work.Exit{Cause: work.Exited})
	if free := h.p.Claims.Cores.Take(1); len(free) != 1 || h.p.Claims.Cores.Take(1) != nil {
		t.Errorf("one has ended, and %v are free", free)
	}
}
