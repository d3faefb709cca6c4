package jobs

import (
	"strings"
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// running is a talk whose ranks all run, two at each node from 1.
func running(t *testing.T, spec Spec) *talk {
	t.Helper()
	c := newTalk(t, spec)
	c.gang()
	return c
}

// gang lets nodes take all ranks that are wanted, and start them.
func (c *talk) gang() {
	c.t.Helper()
	for n := 1; c.p.rec.wanted() > 0 && n < 10; n++ {
		c.offer(n, 2)
	}
	c.after(maxNearerWait)
	for _, g := range only[doGrant](c) {
		n := int(nodeNumber(g.to))
		c.report(n, WorkerReady, 0, g.grant.Ranks...)
	}
	if c.p.rec.state != Running {
		c.t.Fatalf("the job is %s: %s", c.p.rec.state, c.p.reason())
	}
	c.step()
}

// nodeNumber is the inverse of testNode for small numbers.
func nodeNumber(id vicinity.ID) int {
	for n := range 100 {
		if testNode(n) == id {
			return n
		}
	}
	return -1
}

// exits reports how a rank of node n ended, and returns the effects.
func (c *talk) exits(n int, ra RankAttempt, code int, cause process.Cause) []effect {
	rep := Report{Job: c.p.rec.id, Workers: []WorkerReport{{RankAttempt: ra, State: WorkerEnded, Exit: &process.Exit{Code: code, Cause: cause}}}}
	c.p.reported(c.now, testNode(n), rep, nil, 0)
	return c.step()
}

func kill(b bool) *bool { return &b }

func releases(effects []effect) (list []doRelease) {
	for _, e := range effects {
		if r, ok := e.(doRelease); ok {
			list = append(list, r)
		}
	}
	return list
}

// Who has enough workers has nodes forget it: else all of them would offer to it
// again when they have room. Who is short wants to be kept.
func TestEnoughWorkersAreEnough(t *testing.T) {
	c := newTalk(t, Spec{Min: 3, Max: 3})
	c.after(time.Second)
	c.offer(1, 2)
	c.step()
	c.after(keepOffers)
	if y := only[doYield](c); len(y) != 1 || y[0].forget {
		t.Fatalf("gave back %+v, want one offer, not for good", y)
	}
	c.offer(1, 2)
	c.offer(2, 2)
	c.offer(3, 2)
	c.after(maxNearerWait)
	if y := only[doYield](c); c.p.rec.state != Staging || len(y) != 1 || y[0].to != testNode(3) || !y[0].forget {
		t.Fatalf("gave back %+v, want the surplus offer, for good", y)
	}
	c.p.answered(c.now, vicinity.Member{ID: testNode(4)}, 0, Answer{Job: c.p.rec.id, Key: 9, Workers: 1})
	if y := only[doYield](c); len(y) != 1 || y[0].to != testNode(4) || !y[0].forget {
		t.Fatalf("gave back %+v, want the late offer, for good", y)
	}
}

func TestBadExitStopsTheOthersOfAGang(t *testing.T) {
	c := running(t, Spec{Min: 4, Max: 4})
	r := releases(c.exits(1, ra(1, 1), 3, process.Exited))
	if len(r) != 2 || !r[0].release.Stop || !r[1].release.Stop || len(r[0].release.Ranks) != 1 || len(r[1].release.Ranks) != 2 {
		t.Fatalf("got %+v, want rank 0 and ranks 2, 3 to be stopped", r)
	}
	// The message may be lost: the next acknowledgement says the same.
	if ack := c.report(2, WorkerRunning, 0, ra(2, 1), ra(3, 1)); !ack.Workers[0].Stop || ack.Workers[0].Drop {
		t.Fatalf("acknowledged with %+v, want stop", ack.Workers)
	}
	c.exits(1, ra(0, 1), 143, process.Stopped)
	c.exits(2, ra(2, 1), 9, process.Exited) // had ended by itself
	c.state(Running, -1)
	c.exits(2, ra(3, 1), 137, process.Stopped)
	c.state(Failed, 9)
	if r := c.p.status().Reason; !strings.Contains(r, "rank 2") || !strings.Contains(r, "2 others were stopped") {
		t.Errorf("the reason is %q", r)
	}
}

func TestBadExitLeavesTheOthers(t *testing.T) {
	for name, spec := range map[string]Spec{
		"rigid, told so": {Min: 4, Max: 4, KillOnBadExit: kill(false)},
		"malleable":      {Min: 2, Max: 4},
	} {
		t.Run(name, func(t *testing.T) {
			c := running(t, spec)
			if r := releases(c.exits(1, ra(1, 1), 3, process.Exited)); len(r) != 0 {
				t.Fatalf("got %+v", r)
			}
			c.exits(1, ra(0, 1), 0, process.Exited)
			c.exits(2, ra(2, 1), 0, process.Exited)
			c.state(Running, -1)
			c.exits(2, ra(3, 1), 0, process.Exited)
			c.state(Failed, 3)
		})
	}
}

func TestMaxFails(t *testing.T) {
	c := running(t, Spec{Min: 2, Max: 6, MaxFails: 1})
	if r := releases(c.exits(1, ra(0, 1), 1, process.Exited)); len(r) != 0 {
		t.Fatalf("stopped after the first failure: %+v", r)
	}
	if r := releases(c.exits(1, ra(1, 1), 2, process.Exited)); len(r) != 2 {
		t.Fatalf("got %+v, want both other nodes to stop", r)
	}
	for n, ras := range map[int][]RankAttempt{2: {ra(2, 1), ra(3, 1)}, 3: {ra(4, 1), ra(5, 1)}} {
		for _, ra := range ras {
			c.exits(n, ra, 143, process.Stopped)
		}
	}
	c.state(Failed, 2)
}

func TestRankIsTriedAgain(t *testing.T) {
	c := running(t, Spec{Min: 2, Max: 2 + 2, Retries: 1})
	c.exits(1, ra(1, 1), 3, process.Exited)
	c.state(Running, -1)
	if w := c.p.rec.wanted(); w != 1 {
		t.Fatalf("%d workers wanted, want 1: the rank again", w)
	}
	c.after(1100 * ms)
	c.offer(1, 1) // not this one soon: it may be the machine after all
	if g := only[doGrant](c); len(g) != 0 {
		t.Fatalf("granted %+v", g)
	}
	c.offer(3, 1)
	c.after(maxNearerWait)
	g := only[doGrant](c)
	if len(g) != 1 || g[0].to != testNode(3) || g[0].grant.Ranks[0] != ra(1, 2) {
		t.Fatalf("granted %+v, want rank 1 attempt 2 to node 3", g)
	}
	c.report(3, WorkerReady, 0, ra(1, 2))
	c.exits(1, ra(0, 1), 0, process.Exited)
	c.exits(2, ra(2, 1), 0, process.Exited)
	c.exits(2, ra(3, 1), 0, process.Exited)
	c.exits(3, ra(1, 2), 4, process.Exited) // the last try
	c.state(Failed, 4)
	replay := record{id: c.p.rec.id, origin: c.p.rec.origin}
	for _, ev := range c.log {
		replay.apply(ev)
	}
	if replay.state != Failed || replay.ranks[1].retries != 1 || replay.ranks[1].attempt != 2 {
		t.Errorf("the journal tells %s, %+v", replay.state, replay.ranks[1])
	}
}

func TestGangIsTriedAgainAsAWhole(t *testing.T) {
	for name, fail := range map[string]func(c *talk){
		"program": func(c *talk) {
			c.exits(1, ra(0, 1), 3, process.Exited)
			c.exits(1, ra(1, 1), 143, process.Stopped)
			c.exits(2, ra(2, 1), 0, process.Exited)
		},
		"machine": func(c *talk) { c.silence(2) },
	} {
		t.Run(name, func(t *testing.T) {
			c := running(t, Spec{Min: 3, Max: 3, Retries: 2})
			fail(c)
			c.state(Pending, -1)
			if w := c.p.rec.wanted(); w != 3 {
				t.Fatalf("%d workers wanted, want all", w)
			}
			c.now = c.now.Add(avoidFor)
			c.after(ms)
			c.step()
			c.gang()
			for i := range 3 {
				if k := c.p.rec.ranks[i]; k.attempt != 2 || k.state != WorkerRunning {
					t.Fatalf("rank %d: %+v", i, k)
				}
			}
			c.exits(1, ra(0, 1), 0, process.Exited) // of the attempt before
			for i := range 3 {
				c.exits(nodeNumber(c.p.rec.ranks[i].node), ra(i, 2), 0, process.Exited)
			}
			c.state(Completed, 0)
			if n := c.p.rec.retries; n != 1 || len(c.p.status().Warnings) == 0 {
				t.Errorf("%d retries, warnings %q", n, c.p.status().Warnings)
			}
		})
	}
}

// silence lets a participant's lease run out; the others go on reporting.
func (c *talk) silence(n int) {
	for until := c.now.Add(partLease); c.now.Before(until); {
		c.after(reportEvery)
		for id := range c.p.parts {
			if id != testNode(n) {
				c.p.heard(c.now, id)
			}
		}
	}
	c.after(reportEvery)
}

// A release may arrive late, when its node has been granted ranks of the next
// attempt: it must not mean these.
func TestReleaseOfAnAttemptNamesIt(t *testing.T) {
	c := running(t, Spec{Min: 3, Max: 3, Retries: 2})
	c.exits(1, ra(0, 1), 3, process.Exited)
	c.exits(1, ra(1, 1), 143, process.Stopped)
	list := releases(c.exits(2, ra(2, 1), 0, process.Exited))
	if len(list) != 2 {
		t.Fatalf("released %+v, want both nodes", list)
	}
	for _, r := range list {
		if len(r.release.Ranks) != 3 || r.release.Ranks[2] != ra(2, 1) {
			t.Errorf("released %+v, want the ranks of attempt 1", r.release)
		}
	}
}

func TestGangWithoutRetriesFailsAtOnce(t *testing.T) {
	c := running(t, Spec{Min: 3, Max: 3})
	c.silence(2)
	c.state(NodeFail, CodeZorilla)
}

// A status says why a rank has another attempt: its own end, that of another rank
// of its gang, the loss of its node, or that it was given back before its start.
// What comes from the journal says the same.
func TestStatusTellsWhyRanksAreTriedAgain(t *testing.T) {
	one, two := label("n", testNode(1)), label("n", testNode(2))
	for name, tc := range map[string]struct {
		spec Spec
		fail func(c *talk)
		want map[int]string
	}{
		"its program": {Spec{Min: 2, Max: 2 + 2, Retries: 1}, func(c *talk) { c.exits(1, ra(1, 1), 3, process.Exited) },
			map[int]string{1: "rank 1 on " + one + " ended with 3"}},
		"the gang's": {Spec{Min: 2, Max: 2, Retries: 1}, func(c *talk) {
			c.exits(1, ra(0, 1), 3, process.Exited)
			c.exits(1, ra(1, 1), 143, process.Stopped)
		}, map[int]string{0: "rank 0 on " + one + " ended with 3", 1: "rank 0 on " + one + " ended with 3"}},
		"its node declines": {Spec{Min: 2, Max: 2 + 2}, func(c *talk) { c.declines(1, ra(1, 1), "could not start it: no room") },
			map[int]string{1: "rank 1: " + one + " could not start it: no room"}},
		"a node of the gang declines": {Spec{Min: 2, Max: 2}, func(c *talk) { c.declines(1, ra(1, 1), "could not start it: no room") },
			map[int]string{0: "rank 1: " + one + " could not start it: no room", 1: "rank 1: " + one + " could not start it: no room"}},
		"its node": {Spec{Min: 2, Max: 2 + 2}, func(c *talk) { c.silence(2) },
			map[int]string{2: "node " + two + " was lost with ranks 2..3 (2)"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := running(t, tc.spec)
			for _, w := range c.p.status().Workers {
				if w.Retried != "" {
					t.Errorf("the first attempt of rank %d is one because %q", w.Rank, w.Retried)
				}
			}
			tc.fail(c)
			c.step()
			c.tells(tc.want)
			c.now = c.now.Add(avoidFor)
			c.after(ms)
			c.step()
			c.gang()
			c.tells(tc.want)
		})
	}
	c := newTalk(t, Spec{Min: 2, Max: 2})
	c.offer(1, 2)
	c.after(maxNearerWait)
	c.p.grantFailed(c.now, testNode(1), []RankAttempt{ra(0, 1), ra(1, 1)}, false)
	c.step()
	why := "given back before its start: node " + one + ": did not answer"
	c.tells(map[int]string{0: why, 1: why})
}

// declines reports that a node could not begin a worker.
func (c *talk) declines(n int, ra RankAttempt, why string) {
	rep := Report{Job: c.p.rec.id, Workers: []WorkerReport{{RankAttempt: ra, State: WorkerLost, Declined: true, Reason: why}}}
	c.p.reported(c.now, testNode(n), rep, map[RankAttempt]received{ra: {}}, 0)
}

// tells compares why ranks are tried again, as the status and as the journal
// have it.
func (c *talk) tells(want map[int]string) {
	c.t.Helper()
	replay := newPrimary(c.p.rec.id, c.p.self, c.p.search.rnd, flood.Schedule{})
	for _, ev := range c.log {
		replay.rec.apply(ev)
	}
	for _, p := range []*primary{c.p, replay} {
		for _, w := range p.status().Workers {
			if why, ok := want[w.Rank]; ok && w.Retried != why {
				c.t.Errorf("rank %d is tried again because %q, want %q", w.Rank, w.Retried, why)
			}
		}
	}
}
