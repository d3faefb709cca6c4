package primary

import (
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/work"
	"zorilla/vicinity"
)

// running is a talk whose ranks all run, two at each node from 1.
func running(t *testing.T, spec jobs.Spec) *talk {
	t.Helper()
	c := newTalk(t, spec)
	c.gang()
	return c
}

// gang lets nodes take all ranks that are wanted, and start them.
func (c *talk) gang() {
	c.t.Helper()
	for n := 1; c.p.Rec.Wanted() > 0 && n < 10; n++ {
		c.offer(n, 2)
	}
	c.after(search.MaxNearerWait)
	for _, g := range only[DoGrant](c) {
		n := int(nodeNumber(g.To))
		c.report(n, jobs.WorkerReady, 0, g.Grant.Ranks...)
	}
	if c.p.Rec.State != jobs.Running {
		c.t.Fatalf("the job is %s: %s", c.p.Rec.State, c.p.reason())
	}
	c.step()
}

// nodeNumber is the inverse of Node for small numbers.
func nodeNumber(id vicinity.ID) int {
	for n := range 100 {
		if jobtest.Node(n) == id {
			return n
		}
	}
	return -1
}

// exits reports how a rank of node n ended, and returns the effects.
func (c *talk) exits(n int, ra jobs.RankAttempt, code int, cause work.Cause) []Effect {
	rep := wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: ra, State: jobs.WorkerEnded, Exit: &work.Exit{Code: code, Cause: cause}}}}
	c.p.Reported(c.now, jobtest.Node(n), rep, nil, 0)
	return c.step()
}

func kill(b bool) *bool { return &b }

func releases(effects []Effect) (list []DoRelease) {
	for _, e := range effects {
		if r, ok := e.(DoRelease); ok {
			list = append(list, r)
		}
	}
	return list
}

// Who has enough workers has nodes forget it: else all of them would offer to it
// again when they have room. Who is short wants to be kept.
func TestEnoughWorkersAreEnough(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 3, Max: 3})
	c.after(time.Second)
	c.offer(1, 2)
	c.step()
	c.after(search.KeepOffers)
	if y := only[DoYield](c); len(y) != 1 || y[0].Forget {
		t.Fatalf("gave back %+v, want one offer, not for good", y)
	}
	c.offerAgain(1, 2)
	c.offer(2, 2)
	c.offer(3, 2)
	c.after(search.MaxNearerWait)
	if y := only[DoYield](c); c.p.Rec.State != jobs.Staging || len(y) != 1 || y[0].To != jobtest.Node(3) || !y[0].Forget {
		t.Fatalf("gave back %+v, want the surplus offer, for good", y)
	}
	c.p.Answered(c.now, vicinity.Member{ID: jobtest.Node(4)}, 0, wire.Answer{Job: c.p.Rec.ID, Key: 9, Workers: 1})
	if y := only[DoYield](c); len(y) != 1 || y[0].To != jobtest.Node(4) || !y[0].Forget {
		t.Fatalf("gave back %+v, want the late offer, for good", y)
	}
}

func TestBadExitStopsTheOthersOfAGang(t *testing.T) {
	c := running(t, jobs.Spec{Min: 4, Max: 4})
	r := releases(c.exits(1, wiretest.RA(1, 1), 3, work.Exited))
	if len(r) != 2 || !r[0].Release.Stop || !r[1].Release.Stop || len(r[0].Release.Ranks) != 1 || len(r[1].Release.Ranks) != 2 {
		t.Fatalf("got %+v, want rank 0 and ranks 2, 3 to be stopped", r)
	}
	// The message may be lost: the next acknowledgement says the same.
	if ack := c.report(2, jobs.WorkerRunning, 0, wiretest.RA(2, 1), wiretest.RA(3, 1)); !ack.Workers[0].Stop || ack.Workers[0].Drop {
		t.Fatalf("acknowledged with %+v, want stop", ack.Workers)
	}
	c.exits(1, wiretest.RA(0, 1), 143, work.Stopped)
	c.exits(2, wiretest.RA(2, 1), 9, work.Exited) // had ended by itself
	c.state(jobs.Running, -1)
	c.exits(2, wiretest.RA(3, 1), 137, work.Stopped)
	c.state(jobs.Failed, 9)
	if r := c.p.Status().Reason; !strings.Contains(r, "rank 2") || !strings.Contains(r, "2 others were stopped") {
		t.Errorf("the reason is %q", r)
	}
}

func TestBadExitLeavesTheOthers(t *testing.T) {
	for name, spec := range map[string]jobs.Spec{
		"rigid, told so": {Min: 4, Max: 4, Failing: jobs.Failing{KillOnBadExit: kill(false)}},
		"malleable":      {Min: 2, Max: 4},
	} {
		t.Run(name, func(t *testing.T) {
			c := running(t, spec)
			if r := releases(c.exits(1, wiretest.RA(1, 1), 3, work.Exited)); len(r) != 0 {
				t.Fatalf("got %+v", r)
			}
			c.exits(1, wiretest.RA(0, 1), 0, work.Exited)
			c.exits(2, wiretest.RA(2, 1), 0, work.Exited)
			c.state(jobs.Running, -1)
			c.exits(2, wiretest.RA(3, 1), 0, work.Exited)
			c.state(jobs.Failed, 3)
		})
	}
}

func TestMaxFails(t *testing.T) {
	c := running(t, jobs.Spec{Min: 2, Max: 6, Failing: jobs.Failing{MaxFails: 1}})
	if r := releases(c.exits(1, wiretest.RA(0, 1), 1, work.Exited)); len(r) != 0 {
		t.Fatalf("stopped after the first failure: %+v", r)
	}
	if r := releases(c.exits(1, wiretest.RA(1, 1), 2, work.Exited)); len(r) != 2 {
		t.Fatalf("got %+v, want both other nodes to stop", r)
	}
	for n, ras := range map[int][]jobs.RankAttempt{2: {wiretest.RA(2, 1), wiretest.RA(3, 1)}, 3: {wiretest.RA(4, 1), wiretest.RA(5, 1)}} {
		for _, ra := range ras {
			c.exits(n, ra, 143, work.Stopped)
		}
	}
	c.state(jobs.Failed, 2)
}

func TestRankIsTriedAgain(t *testing.T) {
	c := running(t, jobs.Spec{Min: 2, Max: 2 + 2, Failing: jobs.Failing{Retries: 1}})
	c.exits(1, wiretest.RA(1, 1), 3, work.Exited)
	c.state(jobs.Running, -1)
	if w := c.p.Rec.Wanted(); w != 1 {
		t.Fatalf("%d workers wanted, want 1: the rank again", w)
	}
	c.after(1100 * ms)
	c.offerAgain(1, 1) // others first: it may be the machine after all
	c.after(search.MaxNearerWait)
	c.after(search.MaxNearerWait)
	if g := only[DoGrant](c); len(g) != 0 {
		t.Fatalf("granted %+v", g)
	}
	c.offer(3, 1)
	c.after(search.MaxNearerWait)
	g := only[DoGrant](c)
	if len(g) != 1 || g[0].To != jobtest.Node(3) || g[0].Grant.Ranks[0] != wiretest.RA(1, 2) {
		t.Fatalf("granted %+v, want rank 1 attempt 2 to node 3", g)
	}
	c.report(3, jobs.WorkerReady, 0, wiretest.RA(1, 2))
	c.exits(1, wiretest.RA(0, 1), 0, work.Exited)
	c.exits(2, wiretest.RA(2, 1), 0, work.Exited)
	c.exits(2, wiretest.RA(3, 1), 0, work.Exited)
	c.exits(3, wiretest.RA(1, 2), 4, work.Exited) // the last try
	c.state(jobs.Failed, 4)
	replay := record.Record{ID: c.p.Rec.ID, Origin: c.p.Rec.Origin}
	for _, ev := range c.log {
		replay.Apply(ev)
	}
	if replay.State != jobs.Failed || replay.Ranks[1].Retries != 1 || replay.Ranks[1].Attempt != 2 {
		t.Errorf("the journal tells %s, %+v", replay.State, replay.Ranks[1])
	}
}

func TestGangIsTriedAgainAsAWhole(t *testing.T) {
	for name, fail := range map[string]func(c *talk){
		"program": func(c *talk) {
			c.exits(1, wiretest.RA(0, 1), 3, work.Exited)
			c.exits(1, wiretest.RA(1, 1), 143, work.Stopped)
			c.exits(2, wiretest.RA(2, 1), 0, work.Exited)
		},
		"machine": func(c *talk) { c.silence(2) },
	} {
		t.Run(name, func(t *testing.T) {
			c := running(t, jobs.Spec{Min: 3, Max: 3, Failing: jobs.Failing{Retries: 2}})
			fail(c)
			c.state(jobs.Pending, -1)
			if w := c.p.Rec.Wanted(); w != 3 {
				t.Fatalf("%d workers wanted, want all", w)
			}
			c.now = c.now.Add(search.AvoidFor)
			c.after(ms)
			c.step()
			c.gang()
			for i := range 3 {
				if k := c.p.Rec.Ranks[i]; k.Attempt != 2 || k.State != jobs.WorkerRunning {
					t.Fatalf("rank %d: %+v", i, k)
				}
			}
			c.exits(1, wiretest.RA(0, 1), 0, work.Exited) // of the attempt before
			for i := range 3 {
				c.exits(nodeNumber(c.p.Rec.Ranks[i].Node), wiretest.RA(i, 2), 0, work.Exited)
			}
			c.state(jobs.Completed, 0)
			if n := c.p.Rec.Retries; n != 1 || len(c.p.Status().Warnings) == 0 {
				t.Errorf("%d retries, warnings %q", n, c.p.Status().Warnings)
			}
		})
	}
}

// silence lets a participant's lease run out; the others go on reporting.
func (c *talk) silence(n int) {
	for until := c.now.Add(wire.PartLease); c.now.Before(until); {
		c.after(wire.ReportEvery)
		for id := range c.p.Parts {
			if id != jobtest.Node(n) {
				c.p.Heard(c.now, id)
			}
		}
	}
	c.after(wire.ReportEvery)
}

// A release may arrive late, when its node has been granted ranks of the next
// attempt: it must not mean these.
func TestReleaseOfAnAttemptNamesIt(t *testing.T) {
	c := running(t, jobs.Spec{Min: 3, Max: 3, Failing: jobs.Failing{Retries: 2}})
	c.exits(1, wiretest.RA(0, 1), 3, work.Exited)
	c.exits(1, wiretest.RA(1, 1), 143, work.Stopped)
	list := releases(c.exits(2, wiretest.RA(2, 1), 0, work.Exited))
	if len(list) != 2 {
		t.Fatalf("released %+v, want both nodes", list)
	}
	for _, r := range list {
		if len(r.Release.Ranks) != 3 || r.Release.Ranks[2] != wiretest.RA(2, 1) {
			t.Errorf("released %+v, want the ranks of attempt 1", r.Release)
		}
	}
}

func TestGangWithoutRetriesFailsAtOnce(t *testing.T) {
	c := running(t, jobs.Spec{Min: 3, Max: 3})
	c.silence(2)
	c.state(jobs.NodeFail, jobs.CodeZorilla)
}

// A status says why a rank has another attempt: its own end, that of another rank
// of its gang, the loss of its node, or that it was given back before its start.
// What comes from the journal says the same.
func TestStatusTellsWhyRanksAreTriedAgain(t *testing.T) {
	one, two := jobs.Label("n", jobtest.Node(1)), jobs.Label("n", jobtest.Node(2))
	for name, tc := range map[string]struct {
		spec jobs.Spec
		fail func(c *talk)
		want map[int]string
	}{
		"its program": {jobs.Spec{Min: 2, Max: 2 + 2, Failing: jobs.Failing{Retries: 1}}, func(c *talk) { c.exits(1, wiretest.RA(1, 1), 3, work.Exited) },
			map[int]string{1: "rank 1 on " + one + " ended with 3"}},
		"the gang's": {jobs.Spec{Min: 2, Max: 2, Failing: jobs.Failing{Retries: 1}}, func(c *talk) {
			c.exits(1, wiretest.RA(0, 1), 3, work.Exited)
			c.exits(1, wiretest.RA(1, 1), 143, work.Stopped)
		}, map[int]string{0: "rank 0 on " + one + " ended with 3", 1: "rank 0 on " + one + " ended with 3"}},
		"its node declines": {jobs.Spec{Min: 2, Max: 2 + 2}, func(c *talk) { c.declines(1, wiretest.RA(1, 1), "could not start it: no room") },
			map[int]string{1: "rank 1: " + one + " could not start it: no room"}},
		"a node of the gang declines": {jobs.Spec{Min: 2, Max: 2}, func(c *talk) { c.declines(1, wiretest.RA(1, 1), "could not start it: no room") },
			map[int]string{0: "rank 1: " + one + " could not start it: no room", 1: "rank 1: " + one + " could not start it: no room"}},
		"its node": {jobs.Spec{Min: 2, Max: 2 + 2}, func(c *talk) { c.silence(2) },
			map[int]string{2: "node " + two + " was lost with ranks 2..3 (2)"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := running(t, tc.spec)
			for _, w := range c.p.Status().Workers {
				if w.Retried != "" {
					t.Errorf("the first attempt of rank %d is one because %q", w.Rank, w.Retried)
				}
			}
			tc.fail(c)
			c.step()
			c.tells(tc.want)
			c.now = c.now.Add(search.AvoidFor)
			c.after(ms)
			c.step()
			c.gang()
			c.tells(tc.want)
		})
	}
	c := newTalk(t, jobs.Spec{Min: 2, Max: 2})
	c.offer(1, 2)
	c.after(search.MaxNearerWait)
	c.p.GrantFailed(c.now, jobtest.Node(1), []jobs.RankAttempt{wiretest.RA(0, 1), wiretest.RA(1, 1)}, "")
	c.step()
	why := "given back before its start: node " + one + ": did not answer"
	c.tells(map[int]string{0: why, 1: why})
}

// declines reports that a node could not begin a worker.
func (c *talk) declines(n int, ra jobs.RankAttempt, why string) {
	rep := wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: ra, State: jobs.WorkerLost, Declined: true, Reason: why}}}
	c.p.Reported(c.now, jobtest.Node(n), rep, map[jobs.RankAttempt]wire.Written{ra: {}}, 0)
}

// tells compares why ranks are tried again, as the status and as the journal
// have it.
func (c *talk) tells(want map[int]string) {
	c.t.Helper()
	replay := New(c.p.Rec.ID, c.p.self, c.p.Search.Rnd)
	for _, ev := range c.log {
		replay.Rec.Apply(ev)
	}
	for _, p := range []*Primary{c.p, replay} {
		for _, w := range p.Status().Workers {
			if why, ok := want[w.Rank]; ok && w.Retried != why {
				c.t.Errorf("rank %d is tried again because %q, want %q", w.Rank, w.Retried, why)
			}
		}
	}
}

// Ranks of an MPI program are stopped by their nodes when another one fails: the job ends as
// that one did, also if it is heard of last.
func TestRanksThatAreStoppedBeforeTheFailure(t *testing.T) {
	c := running(t, jobs.Spec{Min: 4, Max: 4, Access: jobs.Access{MPI: true}})
	c.exits(1, wiretest.RA(0, 1), 143, work.Stopped)
	c.exits(2, wiretest.RA(2, 1), 143, work.Stopped)
	c.exits(2, wiretest.RA(3, 1), 137, work.Stopped)
	c.state(jobs.Running, -1)
	c.exits(1, wiretest.RA(1, 1), 7, work.Exited)
	c.state(jobs.Failed, 7)
}

// What is of a rank that the job has not now, or never had, is let go.
func TestReportsOfRanksThatThereAreNot(t *testing.T) {
	c := running(t, jobs.Spec{Min: 4, Max: 4})
	for _, rank := range []int{4, 400} {
		if ack := c.report(1, jobs.WorkerRunning, 0, wiretest.RA(rank, 1)); !ack.Workers[0].Drop || ack.Workers[0].Stop {
			t.Errorf("rank %d is answered with %+v", rank, ack.Workers[0])
		}
	}
}
