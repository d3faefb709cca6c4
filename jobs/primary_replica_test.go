package jobs

import (
	"slices"
	"strings"
	"testing"

	"zorilla/jobs/process"
	"zorilla/transfer"
)

// newCopies is a talk about two ranks with two copies each that run at nodes 1
// and 2, a whole replica at each: workers 0 and 1, and 2 and 3.
func newCopies(t *testing.T, change func(*Spec)) *talk {
	t.Helper()
	spec := Spec{Min: 2, Max: 2, Replicas: 2}
	if change != nil {
		change(&spec)
	}
	c := newTalk(t, spec)
	c.step()
	c.run()
	return c
}

// run has nodes 1 and 2 offer and get ready, as often as it takes.
func (c *talk) run() {
	c.t.Helper()
	c.offer(1, 2)
	c.offer(2, 2)
	attempt := c.p.rec.ranks[0].attempt
	c.report(1, WorkerReady, 0, ra(0, attempt), ra(1, attempt))
	c.report(2, WorkerReady, 0, ra(2, attempt), ra(3, attempt))
	c.state(Running, -1)
}

// vanish has a node be lost.
func (c *talk) vanish(n int) {
	c.p.memberGone(c.now, testNode(n))
	c.after(goneGrace)
}

// stopped returns the workers that have been told to stop since the last step.
func (c *talk) stopped() (workers []int) {
	for _, r := range only[doRelease](c) {
		for _, ra := range r.release.Ranks {
			if r.release.Stop {
				workers = append(workers, ra.Rank)
			}
		}
	}
	slices.Sort(workers)
	return workers
}

// ends reports the end of a worker that may leave files, and returns whose
// files are fetched then and who is stopped.
func (c *talk) ends(n, worker, code int, files bool) (fetched, stopped []int) {
	attempt := c.p.rec.ranks[worker].attempt
	w := WorkerReport{RankAttempt: ra(worker, attempt), State: WorkerEnded, Exit: &process.Exit{Code: code, Cause: process.Exited}}
	if files {
		w.Output = &RankOutput{Rank: worker, Attempt: attempt, Manifest: transfer.HashOf([]byte{byte(worker)}), Files: 1}
	}
	c.p.reported(c.now, testNode(n), Report{Job: c.p.rec.id, Workers: []WorkerReport{w}}, map[RankAttempt]received{w.RankAttempt: {}}, 0)
	for _, e := range c.step() {
		switch e := e.(type) {
		case doCollect:
			fetched = append(fetched, e.output.Rank)
		case doRelease:
			for _, ra := range e.release.Ranks {
				if e.release.Stop {
					stopped = append(stopped, ra.Rank)
				}
			}
		}
	}
	return fetched, stopped
}

func TestCopiesAreOnDifferentNodes(t *testing.T) {
	c := newTalk(t, Spec{Min: 2, Max: 2, Replicas: 2})
	if f := only[doFlood](c); len(f) != 1 || f[0].ad.Wanted != 4 {
		t.Fatalf("flooded %+v, want a call for four workers", f)
	}
	c.offer(1, 4)
	if g := only[doGrant](c); len(g) != 0 {
		t.Fatalf("granted %+v on one node", g)
	}
	if r := c.p.reason(); !strings.Contains(r, "2 replicas need 2 nodes, 1 offered") {
		t.Errorf("waits: %s", r)
	}
	c.offer(2, 4)
	c.after(placePause)
	grants := only[doGrant](c)
	if len(grants) != 2 || !slices.Equal(grants[0].grant.Ranks, []RankAttempt{ra(0, 1), ra(1, 1)}) || !slices.Equal(grants[1].grant.Ranks, []RankAttempt{ra(2, 1), ra(3, 1)}) {
		t.Fatalf("granted %+v", grants)
	}
	for _, g := range grants {
		if err := g.grant.check(); err != nil {
			t.Error(err)
		}
	}
	c.report(1, WorkerReady, 0, ra(0, 1), ra(1, 1))
	c.state(Staging, -1) // all copies start together
	c.report(2, WorkerReady, 0, ra(2, 1), ra(3, 1))
	c.state(Running, -1)
	start := c.p.startMessage(nil)
	own := start.ofReplica(&c.p.rec.spec, 3)
	if start.Size != 2 || len(own.Hosts) != 1 || own.Hosts[0].Node != testNode(2) || !slices.Equal(own.Hosts[0].Ranks, []int{0, 1}) {
		t.Errorf("worker 3 is told of %+v in a job of size %d", own.Hosts, start.Size)
	}
	if w := c.p.status().Workers; len(w) != 4 || w[1].Rank != 0 || w[1].Replica != 1 || w[1].Node != testNode(2) || w[2].Rank != 1 || w[2].Replica != 0 {
		t.Errorf("the workers are %+v", w)
	}
}

func TestFirstCopyToSucceedCounts(t *testing.T) {
	c := newCopies(t, nil)
	if fetched, stopped := c.ends(2, 2, 0, true); !slices.Equal(fetched, []int{2}) || len(stopped) != 0 {
		t.Fatalf("fetched %v, stopped %v", fetched, stopped)
	}
	// Its files might not come: until they are here the other copy goes on.
	if fetched, _ := c.ends(1, 0, 0, true); len(fetched) != 0 {
		t.Fatalf("fetched the files of %v too", fetched)
	}
	c.p.collected(c.now, ra(2, 1), nil)
	c.step()
	if fetched, stopped := c.ends(1, 1, 0, true); !slices.Equal(fetched, []int{1}) || len(stopped) != 0 {
		t.Fatalf("fetched %v, stopped %v", fetched, stopped)
	}
	c.p.collected(c.now, ra(1, 1), nil)
	c.state(Completed, 0)
	st := c.p.status()
	if len(st.Outputs) != 2 || st.Outputs[0].Rank+st.Outputs[1].Rank != 1 {
		t.Errorf("outputs %+v", st.Outputs)
	}
	for _, w := range st.Workers {
		if w.Won != (w.Rank == 0 && w.Replica == 1 || w.Rank == 1 && w.Replica == 0) {
			t.Errorf("rank %d, replica %d: counts %v", w.Rank, w.Replica, w.Won)
		}
	}
}

func TestOtherCopiesAreStopped(t *testing.T) {
	c := newCopies(t, nil)
	if _, stopped := c.ends(1, 0, 0, false); !slices.Equal(stopped, []int{2}) {
		t.Fatalf("stopped %v, want the other copy", stopped)
	}
	// In case the word was lost the answer to a report says the same.
	if ack := c.report(2, WorkerRunning, 0, ra(2, 1), ra(3, 1)); !ack.Workers[0].Stop || ack.Workers[1].Stop {
		t.Errorf("answered %+v", ack.Workers)
	}
	c.state(Running, -1)
	c.p.reported(c.now, testNode(2), Report{Job: c.p.rec.id, Workers: []WorkerReport{{RankAttempt: ra(2, 1), State: WorkerEnded, Exit: &process.Exit{Code: 143, Cause: process.Stopped}}}},
		map[RankAttempt]received{ra(2, 1): {}}, 0)
	c.state(Running, -1)
	if _, stopped := c.ends(2, 3, 0, false); !slices.Equal(stopped, []int{1}) {
		t.Errorf("stopped %v", stopped)
	}
	c.state(Completed, 0)
	if w := c.p.status().Warnings; len(w) != 0 {
		t.Errorf("warns of %q", w)
	}
}

func TestFailedCopyIsForgivenWhileAnotherCanSucceed(t *testing.T) {
	c := newCopies(t, nil)
	if _, stopped := c.ends(1, 0, 7, false); len(stopped) != 0 {
		t.Fatalf("stopped %v", stopped)
	}
	c.state(Running, -1)
	if w := c.p.status().Warnings; len(w) != 1 || !strings.Contains(w[0], "rank 0, replica 0 on n") || !strings.HasSuffix(w[0], "ended with 7: another copy goes on") {
		t.Errorf("warns of %q", w)
	}
	c.ends(1, 1, 0, false)
	c.ends(2, 2, 0, false)
	c.state(Completed, 0)
}

func TestRankFailsWithItsLastCopy(t *testing.T) {
	c := newCopies(t, nil)
	c.ends(1, 0, 7, false)
	if _, stopped := c.ends(2, 2, 3, false); !slices.Equal(stopped, []int{1, 3}) {
		t.Fatalf("stopped %v, want all others", stopped)
	}
	stop := func(n, worker int) {
		c.p.reported(c.now, testNode(n), Report{Job: c.p.rec.id, Workers: []WorkerReport{{RankAttempt: ra(worker, 1), State: WorkerEnded, Exit: &process.Exit{Code: 143, Cause: process.Stopped}}}},
			map[RankAttempt]received{ra(worker, 1): {}}, 0)
	}
	stop(1, 1)
	stop(2, 3)
	c.state(Failed, 7)
	if r := c.p.status().Reason; !strings.Contains(r, "rank 0, replica 0 on n") || !strings.Contains(r, "2 others were stopped") {
		t.Errorf("the reason is %q", r)
	}
}

func TestJobSurvivesALostNode(t *testing.T) {
	c := newCopies(t, nil)
	c.vanish(2)
	c.state(Running, -1)
	if g := only[doFlood](c); len(g) != 0 || c.p.rec.wanted() != 0 {
		t.Errorf("looks for %d workers instead of the lost copies", c.p.rec.wanted())
	}
	if w := c.p.status().Warnings; len(w) != 1 || !strings.Contains(w[0], "was lost with ranks 0..1 (2), replica 1") {
		t.Errorf("warns of %q", w)
	}
	c.ends(1, 0, 0, false)
	c.ends(1, 1, 0, false)
	c.state(Completed, 0)
}

func TestJobWhoseCopiesAreAllLost(t *testing.T) {
	c := newCopies(t, nil)
	c.ends(1, 0, 0, false)
	c.vanish(2)
	c.state(Running, -1)
	c.vanish(1)
	c.state(NodeFail, CodeZorilla)

	c = newCopies(t, nil)
	c.ends(1, 0, 9, false) // one copy failed, the other is lost
	c.vanish(2)
	if s := c.stopped(); !slices.Equal(s, []int{1}) {
		t.Fatalf("stopped %v", s)
	}
	c.p.reported(c.now, testNode(1), Report{Job: c.p.rec.id, Workers: []WorkerReport{{RankAttempt: ra(1, 1), State: WorkerEnded, Exit: &process.Exit{Code: 143, Cause: process.Stopped}}}},
		map[RankAttempt]received{ra(1, 1): {}}, 0)
	c.state(Failed, 9)
}

func TestCopyWhoseFilesAreLostDoesNotCount(t *testing.T) {
	c := newCopies(t, nil)
	c.ends(1, 1, 0, false)
	if fetched, _ := c.ends(1, 0, 0, true); !slices.Equal(fetched, []int{0}) {
		t.Fatalf("fetched %v", fetched)
	}
	c.vanish(1) // with the files
	c.state(Running, -1)
	if fetched, _ := c.ends(2, 2, 0, true); !slices.Equal(fetched, []int{2}) {
		t.Fatalf("fetched %v", fetched)
	}
	c.p.collected(c.now, ra(2, 1), nil)
	c.state(Completed, 0)
}

func TestGangOfCopiesIsTriedAgainAsAWhole(t *testing.T) {
	c := newCopies(t, func(s *Spec) { s.Retries = 1 })
	c.ends(1, 0, 0, false)
	c.vanish(1)
	c.vanish(2)
	c.state(Pending, -1)
	for len(only[doFlood](c)) == 0 {
		c.after(c.p.wake().Sub(c.now))
	}
	if n := c.p.rec.wanted(); n != 4 {
		t.Fatalf("%d workers are wanted", n)
	}
	c.run()
	if a := c.p.rec.ranks[3].attempt; a != 2 {
		t.Fatalf("attempt %d", a)
	}
	c.ends(2, 2, 0, false)
	c.ends(2, 3, 0, false)
	c.state(Completed, 0)
	replayed := record{id: c.p.rec.id}
	for _, ev := range c.log {
		replayed.apply(ev)
	}
	if replayed.state != Completed || len(replayed.won) != 2 || replayed.telling(0) != 2 || replayed.telling(1) != 3 {
		t.Errorf("after a restart it is %s, won by %v", replayed.state, replayed.winner)
	}
}

func TestOnlyGangsHaveReplicas(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Min: 1, Max: 2, Replicas: 2}, "want -n N"},
		{Spec{Min: 1, Max: 1, Replicas: -1}, "want 1 to 100"},
		{Spec{Min: 1, Max: 1, Replicas: 101}, "want 1 to 100"},
		{Spec{Min: MaxRanks/2 + 1, Max: MaxRanks/2 + 1, Replicas: 2}, "at most 100000 workers in all"},
		{Spec{Min: 3, Max: 3, Replicas: 2}, ""},
		{Spec{Min: 1, Max: 2, Replicas: 1}, ""},
	} {
		c.spec.Args, c.spec.Slots = []string{"prog"}, 1
		if err := c.spec.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.spec, err, c.want)
		}
	}
}
