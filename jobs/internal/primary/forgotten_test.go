package primary

import (
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
)

// half is a gang of three at two nodes, of which the first has two ranks; in the
// state as wanted.
func half(t *testing.T, state jobs.WorkerState) *talk {
	c := newTalk(t, jobs.Spec{Min: 3, Max: 3})
	c.offer(1, 2)
	c.offer(2, 1)
	c.after(time.Second)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.report(2, jobs.WorkerReady, 0, wiretest.RA(2, 1))
	if state == jobs.WorkerRunning {
		c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1), wiretest.RA(1, 1))
		c.state(jobs.Running, -1)
	}
	return c
}

// A node was killed before it had written down one of two ranks.
func TestGrantThatItsNodeHasForgotten(t *testing.T) {
	c := half(t, jobs.WorkerReady)
	for range 4 {
		c.after(wire.ReportEvery)
		c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
		c.report(2, jobs.WorkerReady, 0, wiretest.RA(2, 1))
	}
	c.state(jobs.Staging, -1) // the grant may still be on its way
	c.after(2 * wire.ReportEvery)
	if ack := c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1)); !ack.Workers[0].Drop {
		t.Fatalf("got %+v, want the gang to be released", ack)
	}
	c.state(jobs.Pending, -1)
	if a := c.p.Search.Answers[jobtest.Node(1)]; a.Reason != reasonForgot {
		t.Errorf("node 1 counts as %q", a.Reason)
	}
}

func TestRunningRankThatItsNodeHasForgotten(t *testing.T) {
	c := half(t, jobs.WorkerRunning)
	for range 10 {
		c.after(wire.ReportEvery)
		c.report(1, jobs.WorkerRunning, 0, wiretest.RA(0, 1))
		c.report(2, jobs.WorkerRunning, 0, wiretest.RA(2, 1))
	}
	c.state(jobs.NodeFail, jobs.CodeZorilla)
	if r := c.p.Status().Reason; !strings.Contains(r, "does not know rank 1 any more") {
		t.Errorf("the reason is %q", r)
	}
}

// What is named now and then is not forgotten: a node that is started again does
// not know all of its workers at once.
func TestRankThatIsNamedAgain(t *testing.T) {
	c := half(t, jobs.WorkerRunning)
	for i := range 20 {
		c.after(wire.ReportEvery)
		if i%4 == 0 {
			c.report(1, jobs.WorkerRunning, 0, wiretest.RA(0, 1), wiretest.RA(1, 1))
		} else {
			c.report(1, jobs.WorkerRunning, 0, wiretest.RA(0, 1))
		}
		c.report(2, jobs.WorkerRunning, 0, wiretest.RA(2, 1))
	}
	c.state(jobs.Running, -1)
}

// A node is killed while it removes a worker that is safe at the origin, and does
// not know any more what it was.
func TestCollectedRankCannotBeLost(t *testing.T) {
	c := half(t, jobs.WorkerRunning)
	if ack := c.report(1, jobs.WorkerEnded, 0, wiretest.RA(0, 1)); !ack.Workers[0].Done {
		t.Fatalf("got %+v", ack)
	}
	if ack := c.report(1, jobs.WorkerLost, 0, wiretest.RA(0, 1)); !ack.Workers[0].Done || ack.Workers[0].Drop {
		t.Errorf("got %+v, want the worker to be done as before", ack)
	}
	c.state(jobs.Running, -1)
	c.report(1, jobs.WorkerEnded, 0, wiretest.RA(1, 1))
	c.report(2, jobs.WorkerEnded, 0, wiretest.RA(2, 1))
	c.state(jobs.Completed, 0)
}

// Nobody is to blame for not having been heard by a node that was paused.
func TestOriginThatOverslept(t *testing.T) {
	c := half(t, jobs.WorkerRunning)
	c.now = c.now.Add(time.Minute)
	c.p.Stalled(c.now)
	c.after(0)
	c.state(jobs.Running, -1)
	c.now = c.now.Add(wire.PartLease)
	c.p.MemberGone(c.now, jobtest.Node(2))
	c.state(jobs.NodeFail, jobs.CodeZorilla)

	c = half(t, jobs.WorkerRunning)
	c.p.Stalled(c.now)
	c.p.MemberGone(c.now, jobtest.Node(2)) // the overlay was paused, too
	c.after(wire.PartLease - time.Second)
	c.state(jobs.Running, -1)

	c = half(t, jobs.WorkerRunning)
	again := New(c.p.Rec.ID, c.p.self, c.p.Search.Rnd)
	for _, ev := range c.log {
		again.Rec.Apply(ev)
	}
	c.p = again
	c.p.Resume(c.now)
	c.p.MemberGone(c.now, jobtest.Node(2)) // perhaps it was, before this node was started again
	c.after(wire.PartLease - time.Second)
	c.p.Stalled(c.now)
	c.after(wire.PartLease - time.Second)
	c.state(jobs.Running, -1)
}
