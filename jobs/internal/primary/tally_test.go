package primary

import (
	"fmt"
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
	"zorilla/vicinity"
)

func (c *talk) decline(n int, reason string) {
	c.p.Answered(c.now, vicinity.Member{ID: jobtest.Node(n)}, time.Millisecond, wire.Answer{Job: c.p.Rec.ID, Round: 1, Reason: reason})
}

func TestExplainSumsUp(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 1, Max: 1, GiveUp: codec.Duration(time.Minute)})
	for n, reason := range []string{"busy", "busy", "owner paused", "too little memory", "busy", "too little memory"} {
		c.decline(n+1, reason)
	}
	const sum = "6 asked: 3 busy, 2 too little memory, 1 owner paused"
	c.now = c.now.Add(10 * time.Second)
	e := c.p.Explain(c.now)
	if e.Summary != "waiting for 1 worker: "+sum+"; together they have room for 0" || e.Asked != 6 || !e.Since.Equal(jobtest.Start) || !e.Until.IsZero() {
		t.Fatalf("got %+v", e)
	}
	c.after(50 * time.Second)
	c.state(jobs.Failed, jobs.CodeZorilla)
	c.step()

	// The journal keeps it for the next life of the origin.
	again := New(c.p.Rec.ID, c.p.self, rand.New(rand.NewPCG(1, 2)))
	for _, ev := range c.log {
		var back record.Event
		if err := codec.Unmarshal(codec.MustMarshal(ev), &back); err != nil {
			t.Fatal(err)
		}
		again.Rec.Apply(back)
	}
	e = again.Explain(c.now)
	if e.Asked != 6 || e.Offered != 0 || e.Declined["busy"] != 3 || len(e.Declined) != 3 || len(e.Nodes) != 0 || !e.Until.Equal(jobtest.Start.Add(time.Minute)) {
		t.Fatalf("after a restart it says %+v", e)
	}
	if got := again.tally().String(); got != sum {
		t.Fatalf("after a restart it says %s", got)
	}
	e.Declined["busy"] = 0
	if again.tally().Declined["busy"] != 3 {
		t.Fatal("who asks can change the record")
	}
}

func TestTallyOfAJobThatRuns(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 1, Max: 1})
	c.decline(9, "busy")
	c.now = c.now.Add(3 * time.Second)
	c.offer(1, 1)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.state(jobs.Running, -1)
	if e := c.p.Explain(c.now); !e.Until.Equal(c.now) || e.Summary != "2 asked: 1 offered, 1 busy" {
		t.Fatalf("got %+v", e)
	}
	c.step()
	kept := c.p.Rec.Tally
	if kept == nil || kept.Asked != 2 || kept.Offered != 1 {
		t.Fatalf("with the start it keeps %+v", kept)
	}
}

// Reasons come from other nodes: they may be as many as there are nodes.
func TestTallyIsBounded(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 1, Max: 1})
	for n := range 500 {
		c.decline(n+1, fmt.Sprintf("reason %d", n%250))
	}
	c.decline(501, "reason 7")
	tally := c.p.tally()
	sum := 0
	for _, n := range tally.Declined {
		sum += n
	}
	if len(tally.Declined) != jobs.MaxReasons || sum != 501 || !strings.HasPrefix(tally.String(), "501 asked: 438 declined for other reasons, 3 reason 7, 2 reason 0, ") {
		t.Fatalf("%d reasons for %d nodes: %s", len(tally.Declined), sum, tally)
	}
}

// said checks what explain says of a node.
func (c *talk) said(node int, want string) {
	c.t.Helper()
	for _, a := range c.p.Explain(c.now).Nodes {
		if a.Node == jobtest.Node(node) && a.Why() != want {
			c.t.Errorf("explain says of node %d %q, want %q", node, a.Why(), want)
		}
	}
}

// A job that no member can run is given up after a while, one that waits for busy ones is not.
func TestGivesUpWhatNobodyCanRun(t *testing.T) {
	spec := jobs.Spec{Min: 1, Max: 1, Memory: 1 << 40}
	begin := func(spec jobs.Spec, reason string, capacity int) *talk {
		c := newTalk(t, spec)
		c.p.Members = func() int { return 2 }
		for n := range 2 {
			m := vicinity.Member{ID: jobtest.Node(n), Slots: 2, Memory: 1 << 30}
			c.p.Answered(c.now, m, time.Millisecond, wire.Answer{Job: c.p.Rec.ID, Round: 1, Capacity: capacity, Reason: reason})
		}
		return c
	}
	const why = "waiting for 1 worker: 2 asked: 2 too little memory; no member has 1 TiB of memory, the largest has 1 GiB"
	c := begin(spec, wire.ReasonMemory, 0)
	if got, want := c.p.reason(), why+" (it ends at 00:10:00 UTC if that stays so: --give-up)"; got != want {
		t.Errorf("says %s, want %s", got, want)
	}
	c.after(NeverFor - time.Second)
	c.state(jobs.Pending, -1)
	c.after(time.Second)
	c.state(jobs.Failed, jobs.CodeZorilla)
	if got := c.p.Status().Reason; got != "gave up after 10m0s: "+why {
		t.Errorf("ended: %s", got)
	}

	// The time begins anew when a member comes that may run it.
	c = begin(spec, wire.ReasonMemory, 0)
	c.after(NeverFor - time.Second)
	c.p.Members = func() int { return 3 }
	c.after(time.Hour)
	c.state(jobs.Pending, -1)
	c.decline(2, wire.ReasonMemory)
	c.after(NeverFor - time.Second)
	c.state(jobs.Pending, -1)
	c.after(time.Second)
	c.state(jobs.Failed, jobs.CodeZorilla)

	// It is not for jobs that wait for others to end, or whose submitter has said how long.
	for name, c := range map[string]*talk{
		"busy":      begin(jobs.Spec{Min: 1, Max: 1}, wire.ReasonBusy, 2),
		"draining":  begin(jobs.Spec{Min: 1, Max: 1}, wire.ReasonDraining, 0),
		"--give-up": begin(jobs.Spec{Min: 1, Max: 1, Memory: 1 << 40, GiveUp: codec.Duration(3 * time.Hour)}, wire.ReasonMemory, 0),
	} {
		c.after(2 * time.Hour)
		if c.p.Rec.State.Final() || strings.Contains(c.p.reason(), ": --give-up)") {
			t.Errorf("%s: %s: %s", name, c.p.Rec.State, c.p.reason())
		}
	}
}
