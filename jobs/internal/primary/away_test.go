package primary

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
)

// leave has a node report that it is being stopped and is back within a time.
func (c *talk) leave(n int, away time.Duration, ras ...jobs.RankAttempt) wire.Ack {
	c.t.Helper()
	rep := wire.Report{Job: c.p.Rec.ID, Away: away}
	for _, ra := range ras {
		rep.Workers = append(rep.Workers, wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerRunning})
	}
	var ack wire.Ack
	c.p.Reported(c.now, jobtest.Node(n), rep, nil, 0)
	for _, e := range c.step() {
		if a, ok := e.(DoAnswer); ok {
			ack = a.Ack
		}
	}
	return ack
}

// stopped is a gang of two at two nodes, of which the second was stopped.
func stopped(t *testing.T, away time.Duration) *talk {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 2})
	c.offer(1, 1)
	c.offer(2, 1)
	c.after(time.Second)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.report(2, jobs.WorkerReady, 0, wiretest.RA(1, 1))
	c.state(jobs.Running, -1)
	if ack := c.leave(2, away, wiretest.RA(1, 1)); ack.Workers[0].Drop {
		t.Fatalf("got %+v", ack)
	}
	return c
}

// pass lets time pass while node 1 reports.
func (c *talk) pass(d time.Duration) {
	for end := c.now.Add(d); c.now.Before(end); {
		c.after(wire.ReportEvery)
		if c.p.Rec.State == jobs.Running && c.p.Parts[jobtest.Node(1)].expectedBack.IsZero() {
			c.report(1, jobs.WorkerRunning, 0, wiretest.RA(0, 1))
		}
	}
}

func TestStoppedNodeIsWaitedFor(t *testing.T) {
	c := stopped(t, time.Minute)
	c.p.MemberGone(c.now, jobtest.Node(2))
	c.step()
	c.pass(50 * time.Second)
	c.state(jobs.Running, -1)
	if r := c.p.Status().Reason; !strings.Contains(r, "was stopped") || !strings.Contains(r, "expected back") {
		t.Errorf("the reason is %q", r)
	}
	if ack := c.report(2, jobs.WorkerRunning, 0, wiretest.RA(1, 1)); ack.Workers[0].Drop {
		t.Fatalf("got %+v after its return", ack)
	}
	if r := c.p.Status().Reason; r != "" {
		t.Errorf("the reason is still %q", r)
	}
	c.pass(8 * time.Second)
	c.state(jobs.Running, -1)
	c.pass(4 * time.Second) // it has its usual lease again
	c.state(jobs.NodeFail, jobs.CodeZorilla)
}

// A gang that has not started looks elsewhere at once; a worker whose START is on
// its way is waited for.
func TestStoppedNodeWithWorkersThatWait(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 2})
	c.offer(1, 1)
	c.offer(2, 1)
	c.after(time.Second)
	c.report(2, jobs.WorkerReady, 0, wiretest.RA(1, 1))
	if ack := c.leave(2, time.Minute, wiretest.RA(1, 1)); !ack.Workers[0].Drop {
		t.Errorf("got %+v", ack)
	}
	c.state(jobs.Pending, -1)

	c = newTalk(t, jobs.Spec{Min: 1, Max: 1})
	c.offer(1, 1)
	c.after(time.Second)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.state(jobs.Running, -1)
	c.leave(1, time.Minute, wiretest.RA(0, 1))
	c.pass(30 * time.Second)
	if ack := c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1)); ack.Start == nil || ack.Workers[0].Drop {
		t.Errorf("got %+v, want START", ack)
	}
	c.state(jobs.Running, -1)
}

func TestStoppedNodeIsWaitedForOnlySoLong(t *testing.T) {
	for away, limit := range map[time.Duration]time.Duration{time.Minute: time.Minute, 1000 * time.Hour: maxAway} {
		c := stopped(t, away)
		c.pass(limit - 4*time.Second)
		c.state(jobs.Running, -1)
		c.pass(6 * time.Second)
		c.state(jobs.NodeFail, jobs.CodeZorilla)
	}
}

func TestRestartedOriginWaitsForStoppedNodes(t *testing.T) {
	c := stopped(t, time.Minute)
	again := c.restarted(30 * time.Second)
	again.pass(26 * time.Second)
	again.state(jobs.Running, -1)
	again.pass(6 * time.Second)
	again.state(jobs.NodeFail, jobs.CodeZorilla)

	late := stopped(t, time.Minute).restarted(2 * time.Hour)
	late.pass(8 * time.Second)
	late.state(jobs.Running, -1)
	late.pass(4 * time.Second)
	late.state(jobs.NodeFail, jobs.CodeZorilla)
}

// restarted is the same job after the origin was down for so long.
func (c *talk) restarted(down time.Duration) *talk {
	c.t.Helper()
	c.step()
	again := &talk{t: c.t, now: c.now.Add(down), log: c.log}
	again.p = New(c.p.Rec.ID, c.p.self, rand.New(rand.NewPCG(1, 2)))
	for _, ev := range c.log {
		var back record.Event
		if err := codec.Unmarshal(codec.MustMarshal(ev), &back); err != nil || !back.Sound(&again.p.Rec) {
			c.t.Fatalf("%+v: %v", back, err)
		}
		again.p.Rec.Apply(back)
	}
	again.p.Resume(again.now)
	return again
}

// A node that lost all it knew of a job has nothing to report of it when it is back, so that
// its silence tells, as soon as the overlay has it as a member.
func TestStoppedNodeThatIsBackAndSilent(t *testing.T) {
	c := stopped(t, 2*time.Minute)
	c.pass(20 * time.Second)
	if !c.p.MemberBack(c.now, jobtest.Node(2)) {
		t.Error("its return is no news")
	}
	c.pass(5 * time.Second)
	if c.p.MemberBack(c.now, jobtest.Node(2)) { // as often as it changes what it says of itself
		t.Error("it is back once more")
	}
	c.pass(backGrace - 8*time.Second)
	c.state(jobs.Running, -1)
	c.pass(4 * time.Second)
	c.state(jobs.NodeFail, jobs.CodeZorilla)
}

// Others may name a node that was stopped for a while: they have not heard of it.
func TestStoppedNodeThatWasNotBack(t *testing.T) {
	c := stopped(t, 2*time.Minute)
	c.p.MemberBack(c.now, jobtest.Node(2))
	c.pass(10 * time.Second)
	c.p.MemberGone(c.now, jobtest.Node(2))
	c.pass(90 * time.Second)
	c.state(jobs.Running, -1)
	c.report(2, jobs.WorkerRunning, 0, wiretest.RA(1, 1))
	if ack := c.leave(2, 2*time.Minute, wiretest.RA(1, 1)); ack.Workers[0].Drop {
		t.Fatalf("got %+v", ack)
	}
	c.pass(100 * time.Second) // the return of before counts no more
	c.state(jobs.Running, -1)
}
