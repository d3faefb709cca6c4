package primary

import (
	"slices"
	"strings"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// newCopies is a talk about two ranks with two copies each that run at nodes 1
// and 2, a whole replica at each: workers 0 and 1, and 2 and 3.
func newCopies(t *testing.T, change func(*jobs.Spec)) *talk {
	t.Helper()
	spec := jobs.Spec{Min: 2, Max: 2, Replicas: 2}
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
	attempt := c.p.Rec.Ranks[0].Attempt
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, attempt), wiretest.RA(1, attempt))
	c.report(2, jobs.WorkerReady, 0, wiretest.RA(2, attempt), wiretest.RA(3, attempt))
	c.state(jobs.Running, -1)
}

// vanish has a node be lost.
func (c *talk) vanish(n int) {
	c.p.MemberGone(c.now, jobtest.Node(n))
	c.after(goneGrace)
}

// stopped returns the workers that have been told to stop since the last step.
func (c *talk) stopped() (workers []int) {
	for _, r := range only[DoRelease](c) {
		for _, ra := range r.Release.Ranks {
			if r.Release.Stop {
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
	attempt := c.p.Rec.Ranks[worker].Attempt
	w := wire.WorkerReport{RankAttempt: wiretest.RA(worker, attempt), State: jobs.WorkerEnded, Exit: &work.Exit{Code: code, Cause: work.Exited}}
	if files {
		w.Output = &jobs.RankOutput{Rank: worker, Attempt: attempt, Manifest: transfer.HashOf([]byte{byte(worker)}), Files: 1}
	}
	c.p.Reported(c.now, jobtest.Node(n), wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{w}}, map[jobs.RankAttempt]wire.Written{w.RankAttempt: {}}, 0)
	for _, e := range c.step() {
		switch e := e.(type) {
		case DoCollect:
			fetched = append(fetched, e.Output.Rank)
		case DoRelease:
			for _, ra := range e.Release.Ranks {
				if e.Release.Stop {
					stopped = append(stopped, ra.Rank)
				}
			}
		}
	}
	return fetched, stopped
}

func TestCopiesAreOnDifferentNodes(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 2, Replicas: 2})
	if f := only[DoFlood](c); len(f) != 1 || f[0].Ad.Wanted != 4 {
		t.Fatalf("flooded %+v, want a call for four workers", f)
	}
	c.offer(1, 4)
	if g := only[DoGrant](c); len(g) != 0 {
		t.Fatalf("granted %+v on one node", g)
	}
	if r := c.p.reason(); !strings.Contains(r, "2 replicas need 2 nodes, 1 offered") {
		t.Errorf("waits: %s", r)
	}
	c.offer(2, 4)
	c.after(search.PlacePause)
	grants := only[DoGrant](c)
	if len(grants) != 2 || !slices.Equal(grants[0].Grant.Ranks, []jobs.RankAttempt{wiretest.RA(0, 1), wiretest.RA(1, 1)}) || !slices.Equal(grants[1].Grant.Ranks, []jobs.RankAttempt{wiretest.RA(2, 1), wiretest.RA(3, 1)}) {
		t.Fatalf("granted %+v", grants)
	}
	for _, g := range grants {
		if err := g.Grant.Check(); err != nil {
			t.Error(err)
		}
	}
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1), wiretest.RA(1, 1))
	c.state(jobs.Staging, -1) // all copies start together
	c.report(2, jobs.WorkerReady, 0, wiretest.RA(2, 1), wiretest.RA(3, 1))
	c.state(jobs.Running, -1)
	start := c.p.startMessage(nil)
	own := start.OfReplica(&c.p.Rec.Spec, 3)
	if start.Size != 2 || len(own.Hosts) != 1 || own.Hosts[0].Node != jobtest.Node(2) || !slices.Equal(own.Hosts[0].Ranks, []int{0, 1}) {
		t.Errorf("worker 3 is told of %+v in a job of size %d", own.Hosts, start.Size)
	}
	if w := c.p.Status().Workers; len(w) != 4 || w[1].Rank != 0 || w[1].Replica != 1 || w[1].Node != jobtest.Node(2) || w[2].Rank != 1 || w[2].Replica != 0 {
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
	c.p.Collected(c.now, wiretest.RA(2, 1), nil)
	c.step()
	if fetched, stopped := c.ends(1, 1, 0, true); !slices.Equal(fetched, []int{1}) || len(stopped) != 0 {
		t.Fatalf("fetched %v, stopped %v", fetched, stopped)
	}
	c.p.Collected(c.now, wiretest.RA(1, 1), nil)
	c.state(jobs.Completed, 0)
	st := c.p.Status()
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
	if ack := c.report(2, jobs.WorkerRunning, 0, wiretest.RA(2, 1), wiretest.RA(3, 1)); !ack.Workers[0].Stop || ack.Workers[1].Stop {
		t.Errorf("answered %+v", ack.Workers)
	}
	c.state(jobs.Running, -1)
	c.p.Reported(c.now, jobtest.Node(2), wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(2, 1), State: jobs.WorkerEnded, Exit: &work.Exit{Code: 143, Cause: work.Stopped}}}},
		map[jobs.RankAttempt]wire.Written{wiretest.RA(2, 1): {}}, 0)
	c.state(jobs.Running, -1)
	if _, stopped := c.ends(2, 3, 0, false); !slices.Equal(stopped, []int{1}) {
		t.Errorf("stopped %v", stopped)
	}
	c.state(jobs.Completed, 0)
	if w := c.p.Status().Warnings; len(w) != 0 {
		t.Errorf("warns of %q", w)
	}
}

func TestFailedCopyIsForgivenWhileAnotherCanSucceed(t *testing.T) {
	c := newCopies(t, nil)
	if _, stopped := c.ends(1, 0, 7, false); len(stopped) != 0 {
		t.Fatalf("stopped %v", stopped)
	}
	c.state(jobs.Running, -1)
	if w := c.p.Status().Warnings; len(w) != 1 || !strings.Contains(w[0], "rank 0, replica 0 on n") || !strings.HasSuffix(w[0], "ended with 7: another copy goes on") {
		t.Errorf("warns of %q", w)
	}
	c.ends(1, 1, 0, false)
	c.ends(2, 2, 0, false)
	c.state(jobs.Completed, 0)
}

func TestRankFailsWithItsLastCopy(t *testing.T) {
	c := newCopies(t, nil)
	c.ends(1, 0, 7, false)
	if _, stopped := c.ends(2, 2, 3, false); !slices.Equal(stopped, []int{1, 3}) {
		t.Fatalf("stopped %v, want all others", stopped)
	}
	stop := func(n, worker int) {
		c.p.Reported(c.now, jobtest.Node(n), wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(worker, 1), State: jobs.WorkerEnded, Exit: &work.Exit{Code: 143, Cause: work.Stopped}}}},
			map[jobs.RankAttempt]wire.Written{wiretest.RA(worker, 1): {}}, 0)
	}
	stop(1, 1)
	stop(2, 3)
	c.state(jobs.Failed, 7)
	if r := c.p.Status().Reason; !strings.Contains(r, "rank 0, replica 0 on n") || !strings.Contains(r, "2 others were stopped") {
		t.Errorf("the reason is %q", r)
	}
}

func TestJobSurvivesALostNode(t *testing.T) {
	c := newCopies(t, nil)
	c.vanish(2)
	c.state(jobs.Running, -1)
	if g := only[DoFlood](c); len(g) != 0 || c.p.Rec.Wanted() != 0 {
		t.Errorf("looks for %d workers instead of the lost copies", c.p.Rec.Wanted())
	}
	if w := c.p.Status().Warnings; len(w) != 1 || !strings.Contains(w[0], "was lost with ranks 0..1 (2), replica 1") {
		t.Errorf("warns of %q", w)
	}
	c.ends(1, 0, 0, false)
	c.ends(1, 1, 0, false)
	c.state(jobs.Completed, 0)
}

func TestJobWhoseCopiesAreAllLost(t *testing.T) {
	c := newCopies(t, nil)
	c.ends(1, 0, 0, false)
	c.vanish(2)
	c.state(jobs.Running, -1)
	c.vanish(1)
	c.state(jobs.NodeFail, jobs.CodeZorilla)

	c = newCopies(t, nil)
	c.ends(1, 0, 9, false) // one copy failed, the other is lost
	c.vanish(2)
	if s := c.stopped(); !slices.Equal(s, []int{1}) {
		t.Fatalf("stopped %v", s)
	}
	c.p.Reported(c.now, jobtest.Node(1), wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(1, 1), State: jobs.WorkerEnded, Exit: &work.Exit{Code: 143, Cause: work.Stopped}}}},
		map[jobs.RankAttempt]wire.Written{wiretest.RA(1, 1): {}}, 0)
	c.state(jobs.Failed, 9)
}

func TestCopyWhoseFilesAreLostDoesNotCount(t *testing.T) {
	c := newCopies(t, nil)
	c.ends(1, 1, 0, false)
	if fetched, _ := c.ends(1, 0, 0, true); !slices.Equal(fetched, []int{0}) {
		t.Fatalf("fetched %v", fetched)
	}
	c.vanish(1) // with the files
	c.state(jobs.Running, -1)
	if fetched, _ := c.ends(2, 2, 0, true); !slices.Equal(fetched, []int{2}) {
		t.Fatalf("fetched %v", fetched)
	}
	c.p.Collected(c.now, wiretest.RA(2, 1), nil)
	c.state(jobs.Completed, 0)
}

func TestGangOfCopiesIsTriedAgainAsAWhole(t *testing.T) {
	c := newCopies(t, func(s *jobs.Spec) { s.Retries = 1 })
	c.ends(1, 0, 0, false)
	c.vanish(1)
	c.vanish(2)
	c.state(jobs.Pending, -1)
	for len(only[DoFlood](c)) == 0 {
		c.after(c.p.Wake().Sub(c.now))
	}
	if n := c.p.Rec.Wanted(); n != 4 {
		t.Fatalf("%d workers are wanted", n)
	}
	c.run()
	if a := c.p.Rec.Ranks[3].Attempt; a != 2 {
		t.Fatalf("attempt %d", a)
	}
	c.ends(2, 2, 0, false)
	c.ends(2, 3, 0, false)
	c.state(jobs.Completed, 0)
	replayed := record.Record{ID: c.p.Rec.ID}
	for _, ev := range c.log {
		replayed.Apply(ev)
	}
	if replayed.State != jobs.Completed || len(replayed.Won.Order) != 2 || replayed.Telling(0) != 2 || replayed.Telling(1) != 3 {
		t.Errorf("after a restart it is %s, won by %v", replayed.State, replayed.Won.Worker)
	}
}

func TestOnlyGangsHaveReplicas(t *testing.T) {
	for _, c := range []struct {
		spec jobs.Spec
		want string
	}{
		{jobs.Spec{Min: 1, Max: 2, Replicas: 2}, "want -n N"},
		{jobs.Spec{Min: 1, Max: 1, Replicas: -1}, "want 1 to 100"},
		{jobs.Spec{Min: 1, Max: 1, Replicas: 101}, "want 1 to 100"},
		{jobs.Spec{Min: jobs.MaxRanks/2 + 1, Max: jobs.MaxRanks/2 + 1, Replicas: 2}, "at most 100000 workers in all"},
		{jobs.Spec{Min: 3, Max: 3, Replicas: 2}, ""},
		{jobs.Spec{Min: 1, Max: 2, Replicas: 1}, ""},
	} {
		c.spec.Args, c.spec.Slots = []string{"prog"}, 1
		if err := c.spec.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.spec, err, c.want)
		}
	}
}

// The other ranks of a copy that failed were stopped by their nodes: when the last copy fails
// so has the job, and one that goes on may still win.
func TestCopiesThatAreStoppedWithTheirGang(t *testing.T) {
	for code, want := range map[int]jobs.State{9: jobs.Failed, 0: jobs.Completed} {
		c := newCopies(t, func(s *jobs.Spec) { s.MPI = true })
		c.exits(1, wiretest.RA(0, 1), 143, work.Stopped) // it is heard of first
		c.exits(1, wiretest.RA(1, 1), 7, work.Exited)
		c.state(jobs.Running, -1)
		c.exits(2, wiretest.RA(2, 1), code, work.Exited)
		if code == 0 {
			c.exits(2, wiretest.RA(3, 1), 0, work.Exited)
		} else {
			c.exits(2, wiretest.RA(3, 1), 143, work.Stopped)
		}
		c.state(want, code)
	}
}
