package jobs

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
)

// leave has a node report that it is being stopped and is back within a time.
func (c *talk) leave(n int, away time.Duration, ras ...RankAttempt) Ack {
	c.t.Helper()
	rep := Report{Job: c.p.rec.id, Away: away}
	for _, ra := range ras {
		rep.Workers = append(rep.Workers, WorkerReport{RankAttempt: ra, State: WorkerRunning})
	}
	var ack Ack
	c.p.reported(c.now, testNode(n), rep, nil, 0)
	for _, e := range c.step() {
		if a, ok := e.(doAnswer); ok {
			ack = a.ack
		}
	}
	return ack
}

// stopped is a gang of two at two nodes, of which the second was stopped.
func stopped(t *testing.T, away time.Duration) *talk {
	c := newTalk(t, Spec{Min: 2, Max: 2})
	c.offer(1, 1)
	c.offer(2, 1)
	c.after(time.Second)
	c.report(1, WorkerReady, 0, ra(0, 1))
	c.report(2, WorkerReady, 0, ra(1, 1))
	c.state(Running, -1)
	if ack := c.leave(2, away, ra(1, 1)); ack.Workers[0].Drop {
		t.Fatalf("got %+v", ack)
	}
	return c
}

// pass lets time pass while node 1 reports.
func (c *talk) pass(d time.Duration) {
	for end := c.now.Add(d); c.now.Before(end); {
		c.after(reportEvery)
		if c.p.rec.state == Running && c.p.parts[testNode(1)].expectedBack.IsZero() {
			c.report(1, WorkerRunning, 0, ra(0, 1))
		}
	}
}

func TestStoppedNodeIsWaitedFor(t *testing.T) {
	c := stopped(t, time.Minute)
	c.p.memberGone(c.now, testNode(2))
	c.step()
	c.pass(50 * time.Second)
	c.state(Running, -1)
	if r := c.p.status().Reason; !strings.Contains(r, "was stopped") || !strings.Contains(r, "expected back") {
		t.Errorf("the reason is %q", r)
	}
	if ack := c.report(2, WorkerRunning, 0, ra(1, 1)); ack.Workers[0].Drop {
		t.Fatalf("got %+v after its return", ack)
	}
	if r := c.p.status().Reason; r != "" {
		t.Errorf("the reason is still %q", r)
	}
	c.pass(8 * time.Second)
	c.state(Running, -1)
	c.pass(4 * time.Second) // it has its usual lease again
	c.state(NodeFail, CodeZorilla)
}

// A gang that has not started looks elsewhere at once; a worker whose START is on
// its way is waited for.
func TestStoppedNodeWithWorkersThatWait(t *testing.T) {
	c := newTalk(t, Spec{Min: 2, Max: 2})
	c.offer(1, 1)
	c.offer(2, 1)
	c.after(time.Second)
	c.report(2, WorkerReady, 0, ra(1, 1))
	if ack := c.leave(2, time.Minute, ra(1, 1)); !ack.Workers[0].Drop {
		t.Errorf("got %+v", ack)
	}
	c.state(Pending, -1)

	c = newTalk(t, Spec{Min: 1, Max: 1})
	c.offer(1, 1)
	c.after(time.Second)
	c.report(1, WorkerReady, 0, ra(0, 1))
	c.state(Running, -1)
	c.leave(1, time.Minute, ra(0, 1))
	c.pass(30 * time.Second)
	if ack := c.report(1, WorkerReady, 0, ra(0, 1)); ack.Start == nil || ack.Workers[0].Drop {
		t.Errorf("got %+v, want START", ack)
	}
	c.state(Running, -1)
}

func TestStoppedNodeIsWaitedForOnlySoLong(t *testing.T) {
	for away, limit := range map[time.Duration]time.Duration{time.Minute: time.Minute, 1000 * time.Hour: maxAway} {
		c := stopped(t, away)
		c.pass(limit - 4*time.Second)
		c.state(Running, -1)
		c.pass(6 * time.Second)
		c.state(NodeFail, CodeZorilla)
	}
}

func TestRestartedOriginWaitsForStoppedNodes(t *testing.T) {
	c := stopped(t, time.Minute)
	again := c.restarted(30 * time.Second)
	again.pass(26 * time.Second)
	again.state(Running, -1)
	again.pass(6 * time.Second)
	again.state(NodeFail, CodeZorilla)

	late := stopped(t, time.Minute).restarted(2 * time.Hour)
	late.pass(8 * time.Second)
	late.state(Running, -1)
	late.pass(4 * time.Second)
	late.state(NodeFail, CodeZorilla)
}

// restarted is the same job after the origin was down for so long.
func (c *talk) restarted(down time.Duration) *talk {
	c.t.Helper()
	c.step()
	again := &talk{t: c.t, now: c.now.Add(down), log: c.log}
	again.p = newPrimary(c.p.rec.id, c.p.self, rand.New(rand.NewPCG(1, 2)), flood.Schedule{})
	for _, ev := range c.log {
		var back event
		if err := codec.Unmarshal(codec.MustMarshal(ev), &back); err != nil || !back.sound(&again.p.rec) {
			c.t.Fatalf("%+v: %v", back, err)
		}
		again.p.rec.apply(back)
	}
	again.p.resume(again.now, flood.Schedule{})
	return again
}
