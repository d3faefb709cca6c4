package primary

import (
	"slices"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/work"
	"zorilla/vicinity"
)

// What a lost node means is up to the group of each of its ranks.
func TestLostRankOfAGroup(t *testing.T) {
	rank, group := groups.RestartRank, groups.RestartGroup
	for name, c := range map[string]struct {
		a, b    string
		retries int
		lost    int                // rank
		again   []jobs.RankAttempt // granted afterwards; nil = the job ends
	}{
		"rank":                  {rank, rank, 0, 0, []jobs.RankAttempt{ra(0, 2)}},
		"rank beside a group":   {rank, group, 0, 0, []jobs.RankAttempt{ra(0, 2)}},
		"rank beside a job":     {rank, "", 0, 1, []jobs.RankAttempt{ra(1, 2)}},
		"group":                 {rank, group, 0, 3, []jobs.RankAttempt{ra(2, 2), ra(3, 2), ra(4, 2)}},
		"job":                   {"", rank, 0, 0, nil},
		"job, tried again":      {"", rank, 1, 0, []jobs.RankAttempt{ra(0, 2), ra(1, 2), ra(2, 2), ra(3, 2), ra(4, 2)}},
		"group, that may retry": {rank, group, 1, 2, []jobs.RankAttempt{ra(2, 2), ra(3, 2), ra(4, 2)}},
	} {
		t.Run(name, func(t *testing.T) {
			h, by := begun(t, lineup(c.a, c.b, c.retries))
			n := nodeOf(by, c.lost)
			h.p.Reported(h.now, jobtest.Node(n), wire.Report{Job: h.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: ra(c.lost, 1), State: jobs.WorkerLost}}}, nil, 0)
			released := map[int]bool{}
			for _, e := range only[DoRelease](h) {
				for _, ra := range e.Release.Ranks {
					released[ra.Rank] = true
				}
			}
			for _, ra := range c.again {
				if ra.Rank != c.lost && !released[ra.Rank] {
					t.Errorf("rank %d goes on at its node", ra.Rank)
				}
			}
			if len(c.again) < 5 && len(released) >= max(2, len(c.again)) {
				t.Errorf("ranks %v are released", released)
			}
			if c.again == nil {
				h.state(jobs.NodeFail, jobs.CodeZorilla)
				return
			}
			h.after(2 * time.Second)
			h.step()
			h.room(3, 5)
			h.room(4, 5)
			got := h.grants()
			if all := total(got); !slices.Equal(all, c.again) || h.granted.Max != 5 {
				t.Fatalf("granted %v, want %v", got, c.again)
			}
			if started := total(h.runs(got)); !slices.Equal(started, c.again) {
				t.Errorf("started %v, want %v", started, c.again)
			}
			if wholes := h.p.Rec.Retries; wholes != 0 && len(c.again) < 5 {
				t.Errorf("%d times all of it was started again", wholes)
			}
			for _, k := range h.p.Rec.Ranks {
				if k.State != jobs.WorkerRunning {
					t.Errorf("a rank is %s", k.State)
				}
			}
		})
	}
}

// A node that could not begin a rank is no failure, and the rest is as for one that is lost.
func TestNodeThatCannotBeginARankOfAGroup(t *testing.T) {
	for name, want := range map[string][]int{groups.RestartRank: {3}, groups.RestartGroup: {2, 3, 4}, groups.RestartJob: {0, 1, 2, 3, 4}} {
		c, by := begun(t, lineup(groups.RestartRank, name, 0))
		rep := wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: ra(3, 1), State: jobs.WorkerLost, Declined: true, Reason: "no such user"}}}
		c.p.Reported(c.now, jobtest.Node(nodeOf(by, 3)), rep, nil, 0)
		got := c.p.Rec.WantedRanks(9)
		if slices.Sort(got); !slices.Equal(got, want) || c.p.Rec.Retries != 0 || c.p.Rec.State.Final() {
			t.Errorf("%s: ranks %v are wanted, want %v; it is %s", name, got, want, c.p.Rec.State)
		}
	}
}

// Ranks of several groups that are looked for together go to nodes that have room for their own groups, in
// whatever order they were lost.
func TestRanksOfSeveralGroupsAreReplacedTogether(t *testing.T) {
	spec := lineup(groups.RestartGroup, groups.RestartRank, 0)
	spec.Groups[1].Slots.Min = 2
	c := newTalk(t, spec)
	c.step()
	room := func(n, slots int) {
		c.offers++
		c.p.Answered(c.now, vicinity.Member{ID: jobtest.Node(n), Name: "n", Slots: slots}, time.Duration(n)*time.Millisecond,
			wire.Answer{Job: c.p.Rec.ID, Round: len(c.p.Search.Rounds), Key: uint64(1000*c.offers + n), Workers: slots, Capacity: slots, Fits: 3, Room: &wire.Room{Slots: slots}})
	}
	room(1, 8)
	by := c.grants()
	if c.runs(by); len(total(by)) != 5 {
		t.Fatalf("granted %v", by)
	}
	c.report(1, jobs.WorkerLost, 0, ra(0, 1))
	c.report(1, jobs.WorkerLost, 0, ra(3, 1))
	c.after(2 * time.Second)
	c.step()
	room(3, 2)
	room(4, 2)
	got := c.grants()
	if all := total(got); !slices.Equal(all, []jobs.RankAttempt{ra(0, 2), ra(1, 2), ra(3, 2)}) {
		t.Fatalf("granted %v", got)
	}
	for n, list := range got {
		slots := 0
		for _, ra := range list {
			slots += c.p.Rec.Spec.Needs(ra.Rank).Slots
		}
		if slots != 2 {
			t.Errorf("node %d has room for 2, and gets %v", n, list)
		}
	}
	for _, w := range c.p.Status().Workers {
		if lost := w.Rank == 0 || w.Rank == 3; lost != (w.Replaced != nil) || lost && w.Replaced.From != jobtest.Node(1) {
			t.Errorf("rank %d: it was lost at %+v", w.Rank, w.Replaced)
		}
	}
}

// A node is lost that has ranks of several groups: each of them does what its own says.
func TestLostNodeWithRanksOfGroups(t *testing.T) {
	c, by := begun(t, lineup(groups.RestartRank, groups.RestartGroup, 0))
	n := nodeOf(by, 0)
	others := 3 - n
	c.p.MemberGone(c.now, jobtest.Node(n))
	c.report(others, jobs.WorkerRunning, 0, by[others]...)
	c.after(goneGrace)
	var want []int
	for _, ra := range by[n] {
		want = append(want, ra.Rank)
	}
	if slices.ContainsFunc(want, func(rank int) bool { return rank >= 2 }) {
		want = append(want, 2, 3, 4)
	}
	slices.Sort(want)
	want = slices.Compact(want)
	got := c.p.Rec.WantedRanks(9)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("node %d of %v is lost, and ranks %v are wanted, want %v", n, by, got, want)
	}
}

// A program that fails is tried again as a lost rank is, as often as the job may; then the job ends.
func TestFailingRankOfAGroup(t *testing.T) {
	rank, group := groups.RestartRank, groups.RestartGroup
	for name, c := range map[string]struct {
		a, b   string
		failed int
		again  []jobs.RankAttempt
	}{
		"rank":  {rank, group, 0, []jobs.RankAttempt{ra(0, 2)}},
		"group": {rank, group, 3, []jobs.RankAttempt{ra(2, 2), ra(3, 2), ra(4, 2)}},
	} {
		t.Run(name, func(t *testing.T) {
			h, by := begun(t, lineup(c.a, c.b, 1))
			h.report(nodeOf(by, c.failed), jobs.WorkerEnded, 3, ra(c.failed, 1))
			h.after(2 * time.Second)
			h.step()
			h.room(3, 5)
			h.room(4, 5)
			got := h.grants()
			if all := total(got); !slices.Equal(all, c.again) {
				t.Fatalf("granted %v, want %v", got, c.again)
			}
			h.runs(got)
			h.report(nodeOf(got, c.failed), jobs.WorkerEnded, 3, ra(c.failed, 2)) // it fails once more
			if !h.p.Rec.Failing() {
				t.Fatal("it may be tried for ever")
			}
			for n, list := range map[int][]jobs.RankAttempt{1: by[1], 2: by[2], 3: got[3], 4: got[4]} {
				list = slices.DeleteFunc(slices.Clone(list), func(ra jobs.RankAttempt) bool { return !h.p.Rec.Owns(ra) || ra.Rank == c.failed })
				h.stoppedAt(n, list...)
			}
			h.state(jobs.Failed, 3)
		})
	}
}

// A job that ends does not wait for ranks that wait for their group.
func TestEndOfAJobWhoseGroupStartsAgain(t *testing.T) {
	c, by := begun(t, lineup("", groups.RestartGroup, 0))
	c.report(nodeOf(by, 3), jobs.WorkerLost, 0, ra(3, 1))
	c.after(2 * time.Second)
	c.step()
	c.room(3, 2)
	c.room(4, 1)
	got := c.grants()
	if len(total(got)) != 3 || len(got) != 2 {
		t.Fatalf("granted %v", got)
	}
	c.report(3, jobs.WorkerReady, 0, got[3]...) // the other one is not
	if c.p.Rec.Ranks[got[3][0].Rank].State != jobs.WorkerReady {
		t.Fatal("a rank has started before its group")
	}
	c.report(nodeOf(by, 0), jobs.WorkerEnded, 5, ra(0, 1))
	c.stoppedAt(nodeOf(by, 1), ra(1, 1))
	c.state(jobs.Failed, 5)
}

// stoppedAt reports ranks that were stopped.
func (c *talk) stoppedAt(n int, ras ...jobs.RankAttempt) {
	rep, have := wire.Report{Job: c.p.Rec.ID}, map[jobs.RankAttempt]wire.Written{}
	for _, ra := range ras {
		rep.Workers = append(rep.Workers, wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerEnded, Exit: &work.Exit{Code: 143, Cause: work.Stopped}})
		have[ra] = wire.Written{}
	}
	c.p.Reported(c.now, jobtest.Node(n), rep, have, 0)
	c.step()
}
