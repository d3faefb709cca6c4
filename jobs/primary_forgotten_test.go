package jobs

import (
	"strings"
	"testing"
	"time"

	"zorilla/flood"
)

// half is a gang of three at two nodes, of which the first has two ranks; in the
// state as wanted.
func half(t *testing.T, state WorkerState) *talk {
	c := newTalk(t, Spec{Min: 3, Max: 3})
	c.offer(1, 2)
	c.offer(2, 1)
	c.after(time.Second)
	c.report(1, WorkerReady, 0, ra(0, 1))
	c.report(2, WorkerReady, 0, ra(2, 1))
	if state == WorkerRunning {
		c.report(1, WorkerReady, 0, ra(0, 1), ra(1, 1))
		c.state(Running, -1)
	}
	return c
}

// A node was killed before it had written down one of two ranks.
func TestGrantThatItsNodeHasForgotten(t *testing.T) {
	c := half(t, WorkerReady)
	for range 4 {
		c.after(reportEvery)
		c.report(1, WorkerReady, 0, ra(0, 1))
		c.report(2, WorkerReady, 0, ra(2, 1))
	}
	c.state(Staging, -1) // the grant may still be on its way
	c.after(2 * reportEvery)
	if ack := c.report(1, WorkerReady, 0, ra(0, 1)); !ack.Workers[0].Drop {
		t.Fatalf("got %+v, want the gang to be released", ack)
	}
	c.state(Pending, -1)
	if a := c.p.search.answers[testNode(1)]; a.Reason != reasonForgot {
		t.Errorf("node 1 counts as %q", a.Reason)
	}
}

func TestRunningRankThatItsNodeHasForgotten(t *testing.T) {
	c := half(t, WorkerRunning)
	for range 10 {
		c.after(reportEvery)
		c.report(1, WorkerRunning, 0, ra(0, 1))
		c.report(2, WorkerRunning, 0, ra(2, 1))
	}
	c.state(NodeFail, CodeZorilla)
	if r := c.p.status().Reason; !strings.Contains(r, "does not know rank 1 any more") {
		t.Errorf("the reason is %q", r)
	}
}

// What is named now and then is not forgotten: a node that is started again does
// not know all of its workers at once.
func TestRankThatIsNamedAgain(t *testing.T) {
	c := half(t, WorkerRunning)
	for i := range 20 {
		c.after(reportEvery)
		if i%4 == 0 {
			c.report(1, WorkerRunning, 0, ra(0, 1), ra(1, 1))
		} else {
			c.report(1, WorkerRunning, 0, ra(0, 1))
		}
		c.report(2, WorkerRunning, 0, ra(2, 1))
	}
	c.state(Running, -1)
}

// A node is killed while it removes a worker that is safe at the origin, and does
// not know any more what it was.
func TestCollectedRankCannotBeLost(t *testing.T) {
	c := half(t, WorkerRunning)
	if ack := c.report(1, WorkerEnded, 0, ra(0, 1)); !ack.Workers[0].Done {
		t.Fatalf("got %+v", ack)
	}
	if ack := c.report(1, WorkerLost, 0, ra(0, 1)); !ack.Workers[0].Done || ack.Workers[0].Drop {
		t.Errorf("got %+v, want the worker to be done as before", ack)
	}
	c.state(Running, -1)
	c.report(1, WorkerEnded, 0, ra(1, 1))
	c.report(2, WorkerEnded, 0, ra(2, 1))
	c.state(Completed, 0)
}

// Nobody is to blame for not having been heard by a node that was paused.
func TestOriginThatOverslept(t *testing.T) {
	c := half(t, WorkerRunning)
	c.now = c.now.Add(time.Minute)
	c.p.overslept(c.now)
	c.after(0)
	c.state(Running, -1)
	c.now = c.now.Add(partLease)
	c.p.memberGone(c.now, testNode(2))
	c.state(NodeFail, CodeZorilla)

	c = half(t, WorkerRunning)
	c.p.overslept(c.now)
	c.p.memberGone(c.now, testNode(2)) // the overlay was paused, too
	c.after(partLease - time.Second)
	c.state(Running, -1)

	c = half(t, WorkerRunning)
	again := newPrimary(c.p.rec.id, c.p.self, c.p.search.rnd, flood.Schedule{})
	for _, ev := range c.log {
		again.rec.apply(ev)
	}
	c.p = again
	c.p.resume(c.now, flood.Schedule{})
	c.p.memberGone(c.now, testNode(2)) // perhaps it was, before this node was started again
	c.after(partLease - time.Second)
	c.p.overslept(c.now)
	c.after(partLease - time.Second)
	c.state(Running, -1)
}
