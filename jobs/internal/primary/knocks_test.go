package primary

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// lostAfter is a gang of two at two nodes, with a patience.
func lostAfter(t *testing.T, patience time.Duration) *talk {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 2, Failing: jobs.Failing{LostAfter: codec.Duration(patience)}})
	c.offer(1, 1)
	c.offer(2, 1)
	c.after(time.Second)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	c.report(2, jobs.WorkerReady, 0, wiretest.RA(1, 1))
	c.state(jobs.Running, -1)
	return c
}

// hush lets time pass in which nobody reports, and returns how often each node was knocked at. How
// says how a knock at node 2 ends that begins now; the other node answers.
func (c *talk) hush(d time.Duration, how func() Knock) (knocks map[vicinity.ID]int) {
	type knocked struct {
		DoKnock
		ends time.Time
		how  Knock
	}
	var under []knocked
	knocks = map[vicinity.ID]int{}
	for end := c.now.Add(d); c.now.Before(end); {
		c.after(10 * time.Millisecond)
		for _, e := range only[DoKnock](c) {
			knocks[e.To]++
			k := knocked{e, c.now, KnockAnswered}
			if e.To == jobtest.Node(2) {
				k.how = how()
			}
			if k.how == KnockMissed {
				k.ends = c.now.Add(e.Within)
			}
			under = append(under, k)
		}
		rest := under[:0]
		for _, k := range under {
			if c.now.Before(k.ends) {
				rest = append(rest, k)
			} else {
				c.p.Signs.Knocked(c.now, k.DoKnock, k.how)
			}
		}
		under = rest
	}
	return knocks
}

func always(k Knock) func() Knock { return func() Knock { return k } }

// A node that does not answer is lost when the patience of its job is over; one that does has as long as
// without it, and so has one of which nobody knows where it is.
func TestSilentNodesAreKnockedAt(t *testing.T) {
	for name, is := range map[string]struct {
		how    Knock
		lasts  time.Duration
		knocks int // at least
	}{"does not answer": {KnockMissed, 2 * time.Second, 5}, "answers": {KnockAnswered, wire.PartLease, 15}, "is nowhere": {KnockVoid, wire.PartLease, 15}} {
		c := lostAfter(t, 2*time.Second)
		knocks := c.hush(is.lasts-100*time.Millisecond, always(is.how))
		c.state(jobs.Running, -1)
		if n := knocks[jobtest.Node(2)]; n < is.knocks || n > 60 {
			t.Errorf("a node that %s was knocked at %d times", name, n)
		}
		c.hush(300*time.Millisecond, always(is.how))
		c.state(jobs.NodeFail, jobs.CodeZorilla)
	}
}

// Nothing but the patience of a job has others knocked at.
func TestPatientJobsDoNotKnock(t *testing.T) {
	for _, patience := range []time.Duration{0, wire.PartLease, time.Minute} {
		c := lostAfter(t, patience)
		lasts := c.p.Rec.Spec.Patience()
		if knocks := c.hush(lasts-100*time.Millisecond, always(KnockMissed)); len(knocks) > 0 {
			t.Errorf("with a patience of %v knocks at %v", patience, knocks)
		}
		c.state(jobs.Running, -1)
		c.hush(200*time.Millisecond, always(KnockMissed))
		c.state(jobs.NodeFail, jobs.CodeZorilla)
	}
}

// What the overlay says of a node shortens the patience of a job only if that is the usual one.
func TestPatienceOutlivesTheOverlay(t *testing.T) {
	for patience, lasts := range map[time.Duration]time.Duration{0: goneGrace, time.Minute: time.Minute} {
		c := lostAfter(t, patience)
		c.p.MemberGone(c.now, jobtest.Node(2))
		c.hush(lasts-100*time.Millisecond, always(KnockMissed))
		c.state(jobs.Running, -1)
		c.hush(200*time.Millisecond, always(KnockMissed))
		c.state(jobs.NodeFail, jobs.CodeZorilla)
	}
}

// A node that is started again in time, or whose report comes, is not lost.
func TestSignsOfLifeCount(t *testing.T) {
	c := lostAfter(t, 2*time.Second)
	c.hush(1700*time.Millisecond, always(KnockMissed))
	c.hush(700*time.Millisecond, always(KnockAnswered)) // 300 ms of which were in time
	c.state(jobs.Running, -1)
	c.hush(1500*time.Millisecond, always(KnockMissed))
	c.report(2, jobs.WorkerRunning, 0, wiretest.RA(1, 1))
	c.hush(1900*time.Millisecond, always(KnockMissed))
	c.state(jobs.Running, -1)
	c.p.Signs.Stalled(c.now) // this node was paused
	c.p.Stalled(c.now)
	c.hush(1900*time.Millisecond, always(KnockMissed))
	c.state(jobs.Running, -1)
	c.hush(300*time.Millisecond, always(KnockMissed))
	c.state(jobs.NodeFail, jobs.CodeZorilla)
}

// What became of knocks before a sign of life says nothing any more.
func TestKnocksOfBeforeDoNotCount(t *testing.T) {
	for _, seen := range []bool{false, true} {
		var s Signs
		now, id := jobtest.Start, jobtest.Node(1)
		s.begin(now, id)
		early := DoKnock{To: id, At: now}
		if seen {
			now = now.Add(time.Second)
			s.heard(now, id)
		}
		for range enoughMissed {
			s.Knocked(now, early, KnockMissed)
		}
		if missed := s.of(id).missed; (missed == 0) != seen {
			t.Errorf("with a sign of life since, %v: %d knocks were missed", seen, missed)
		}
		s.Knocked(now, early, KnockAnswered)
		if missed := s.of(id).missed; missed != 0 {
			t.Errorf("after an answer %d knocks were missed", missed)
		}
	}
}

// What is known of nodes does not grow without end.
func TestOldSignsAreForgotten(t *testing.T) {
	var s Signs
	for i := range 3 * maxSigns {
		s.begin(jobtest.Start.Add(time.Duration(i)*time.Second), vicinity.ID(fmt.Sprint(i)))
	}
	if n := len(s.nodes); n > maxSigns {
		t.Errorf("something is known of %d nodes", n)
	}
}

// What takes long to come is waited for longer.
func TestFarNodesHaveMoreTime(t *testing.T) {
	c := lostAfter(t, 2*time.Second)
	c.p.Parts[jobtest.Node(2)].rtt = 500 * time.Millisecond
	c.hush(2900*time.Millisecond, always(KnockMissed))
	c.state(jobs.Running, -1)
	c.hush(300*time.Millisecond, always(KnockMissed))
	c.state(jobs.NodeFail, jobs.CodeZorilla)
}

// A node that is being started again is waited for as long as it has said.
func TestStoppedNodesAreNotKnockedAt(t *testing.T) {
	c := lostAfter(t, 2*time.Second)
	c.leave(2, time.Minute, wiretest.RA(1, 1))
	if n := c.hush(5*time.Second, always(KnockMissed))[jobtest.Node(2)]; n > 0 {
		t.Errorf("knocked %d times at a node that was stopped", n)
	}
	c.state(jobs.Running, -1)
}

// Who watches a job hears of a silent node when a report is overdue.
func TestSilentNodesAreNamed(t *testing.T) {
	for _, patience := range []time.Duration{0, 5 * time.Second, time.Minute} {
		c := lostAfter(t, patience)
		c.hush(missAfter-100*time.Millisecond, always(KnockMissed))
		before := c.p.Version
		if r := c.p.Status().Reason; r != "" {
			t.Errorf("the reason is %q too soon", r)
		}
		at := c.p.Wake()
		if due := c.now.Add(200 * time.Millisecond); at.IsZero() || at.After(due) {
			t.Errorf("with a patience of %v it wakes at %v, not before %v", patience, at, due)
		}
		c.hush(200*time.Millisecond, always(KnockMissed))
		if r := c.p.Status().Reason; !strings.Contains(r, "has been silent since") || c.p.Version == before {
			t.Errorf("with a patience of %v the reason is %q", patience, r)
		}
		c.report(1, jobs.WorkerRunning, 0, wiretest.RA(0, 1))
		c.report(2, jobs.WorkerRunning, 0, wiretest.RA(1, 1))
		if r := c.p.Status().Reason; r != "" {
			t.Errorf("the reason is still %q", r)
		}
	}
}

// A primary sleeps between knocks, also when it has no answer to wait for.
func TestKnocksLetThePrimarySleep(t *testing.T) {
	for _, how := range []Knock{KnockMissed, KnockVoid, KnockAnswered} {
		c := lostAfter(t, 2*time.Second)
		wakes := 0
		for end := c.now.Add(1900 * time.Millisecond); wakes <= 40; wakes++ {
			at := c.p.Wake()
			if at.IsZero() || at.After(end) {
				break
			}
			c.now = at
			c.p.Tick(c.now)
			for _, e := range only[DoKnock](c) {
				c.p.Signs.Knocked(c.now, e, how)
			}
		}
		if wakes > 40 {
			t.Errorf("if a knock ends with %v it wakes %d times in two seconds", how, wakes)
		}
	}
}
