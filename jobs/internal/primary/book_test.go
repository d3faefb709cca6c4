package primary

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/timing"
	"zorilla/jobs/work"
	"zorilla/vicinity"
)

// planner is a talk about a promised start: the test plays nodes that say when they have room.
type planner struct {
	*talk
	plans int                        // floods that asked for plans
	books []DoBook                   // that nobody has answered
	said  []string                   // all of them, as "1 2@60" or "1 keep", "1 end"
	steps func(node int) []wire.Step // of each node; nil = none
	keys  map[uint64]int             // by their order
	nodes int
}

func newPlanner(t *testing.T, spec jobs.Spec, nodes int, steps func(node int) []wire.Step) *planner {
	return &planner{talk: newTalk(t, spec), steps: steps, keys: map[uint64]int{}, nodes: nodes}
}

// pass lets time pass, in which nodes answer floods with what they plan.
func (c *planner) pass(d time.Duration) {
	c.t.Helper()
	for end := c.now.Add(d); ; {
		for _, e := range c.step() {
			switch e := e.(type) {
			case DoFlood:
				c.answers(e.Ad)
			case DoBook:
				c.note(e)
			}
		}
		at := c.p.Wake()
		if at.IsZero() || at.After(end) {
			c.now = end
			c.p.Tick(c.now)
			if len(c.p.Out.Effects) == 0 {
				return
			}
			continue
		}
		if at.After(c.now) {
			c.now = at
		}
		c.p.Tick(c.now)
	}
}

// planned lets time pass until nodes are asked to book.
func (c *planner) planned(within time.Duration) {
	c.t.Helper()
	for end := c.now.Add(within); len(c.books) == 0; c.pass(time.Second) {
		if c.now.After(end) {
			c.t.Fatalf("nobody is booked within %v; the job is %s: %s", within, c.p.Rec.State, c.p.reason())
		}
	}
	c.said = slices.DeleteFunc(c.said, func(s string) bool { return strings.Contains(s, " keep ") })
}

func (c *planner) answers(ad wire.Advertisement) {
	if ad.Plan {
		c.plans++
	}
	for n := 1; n <= c.nodes; n++ {
		a := wire.Answer{Job: c.p.Rec.ID, Round: ad.Round, Capacity: 4, Reason: wire.ReasonBusy}
		if ad.Plan {
			a.Steps = c.steps(n)
		}
		c.p.Answered(c.now, vicinity.Member{ID: jobtest.Node(n), Name: fmt.Sprint("n", n)}, time.Duration(n)*time.Millisecond, a)
	}
}

func (c *planner) note(e DoBook) {
	if c.keys[e.Book.Key] == 0 {
		c.keys[e.Book.Key] = len(c.keys) + 1
	}
	text := fmt.Sprintf("%s keep %d", name(e.To), c.keys[e.Book.Key])
	switch b := e.Book.New; {
	case b != nil:
		text = fmt.Sprintf("%s book %d: %d in %d", name(e.To), c.keys[e.Book.Key], b.Workers, (b.In+500)/1000)
		c.books = append(c.books, e)
	case e.Book.Lease == 0:
		text = fmt.Sprintf("%s end %d", name(e.To), c.keys[e.Book.Key])
	}
	c.said = append(c.said, text)
}

// book has nodes answer what they are asked to book; refuse names one that does not.
func (c *planner) book(refuse int) {
	list := c.books
	c.books = nil
	for _, e := range list {
		why := ""
		if e.To == jobtest.Node(refuse) {
			why = "no room"
		}
		c.p.Bookings.Answered(c.now, e.To, e.Book.Key, why)
	}
	c.pass(0)
}

// want checks what nodes were asked to book since the last call.
func (c *planner) want(said ...string) {
	c.t.Helper()
	slices.Sort(c.said)
	if slices.Sort(said); !slices.Equal(c.said, said) {
		c.t.Fatalf("asked nodes %q, want %q; the job is %s: %s", c.said, said, c.p.Rec.State, c.p.reason())
	}
	c.said = nil
}

func from(seconds, workers int) wire.Step {
	return wire.Step{In: int64(seconds) * 1000, Workers: workers}
}

// twoNodes have room for three workers together from the 60th second on.
func twoNodes(n int) []wire.Step {
	if n == 1 {
		return []wire.Step{from(0, 0), from(60, 2)}
	}
	return []wire.Step{from(0, 0), from(30, 1), from(90, 2)}
}

func gang(after codec.Duration) jobs.Spec {
	return jobs.Spec{Min: 3, Max: 3, Walltime: codec.Duration(time.Hour), Search: jobs.Search{Timing: timing.Timing{BookAfter: after}}}
}

func TestGangThatIsPassedOverHasItsStartPromised(t *testing.T) {
	c := newPlanner(t, gang(0), 2, twoNodes)
	c.pass(timing.DefaultBookAfter - time.Second)
	if c.plans > 0 {
		t.Fatal("it was not passed over for long enough")
	}
	c.pass(5 * time.Second)
	c.want("1 book 1: 2 in 57", "2 book 1: 1 in 57")
	if c.book(0); c.p.Status().Promised == nil {
		t.Fatal("all nodes have booked, but nothing is promised")
	}
	c.want("1 keep 1", "2 keep 1")
	if text := c.p.Status().Reason; !strings.Contains(text, "; its start is promised for ") || !strings.HasSuffix(text, " at 2 nodes") {
		t.Errorf("it waits for %q", text)
	}
	at := c.p.Status().Promised.At
	floods := len(c.p.Search.Rounds)
	c.steps = func(int) []wire.Step { return []wire.Step{from(3600, 4)} }
	if c.pass(at.Sub(c.now) + time.Second); len(c.p.Search.Rounds) == floods {
		t.Error("nobody is asked for what was promised")
	}
	c.said = nil
	for n, workers := range []int{2, 1} {
		c.offer(n+1, workers)
	}
	c.pass(time.Second)
	c.state(jobs.Staging, -1)
	c.want("1 end 1", "2 end 1") // the grants may be refused
	if c.p.Status().Promised != nil {
		t.Error("the start is still promised")
	}
}

func TestRefusedBookingIsTriedAgain(t *testing.T) {
	c := newPlanner(t, gang(timing.BookAtOnce), 2, twoNodes)
	c.pass(4 * time.Second)
	c.want("1 book 1: 2 in 57", "2 book 1: 1 in 57")
	c.book(1)
	c.want("1 end 1", "2 end 1")
	if text := c.p.Status().Reason; !strings.HasSuffix(text, "no start could be promised: no room") {
		t.Errorf("it waits for %q", text)
	}
	c.planned(12 * time.Second)
	c.want("1 book 2: 2 in 57", "2 book 2: 1 in 57")
	c.pass(bookWithin + time.Second) // node 2 does not answer
	c.want("1 end 2", "2 end 2")
}

func TestPromisedStartIsMovedForward(t *testing.T) {
	late := func(int) []wire.Step { return []wire.Step{from(3600, 2)} }
	c := newPlanner(t, gang(timing.BookAtOnce), 2, late)
	c.pass(4 * time.Second)
	c.book(0)
	c.said = nil
	c.pass(7 * time.Minute)
	if c.want(); c.plans != 2 { // another hour would be later
		t.Fatalf("asked %d times for plans, want another one after a tenth of the time", c.plans)
	}
	c.steps = twoNodes
	c.planned(6 * time.Minute)
	c.want("1 book 2: 2 in 57", "2 book 2: 1 in 57")
	c.book(0)
	c.want("1 end 1", "1 keep 2", "2 end 1", "2 keep 2")

	c.steps = func(n int) []wire.Step { return []wire.Step{from(600, 4)} }
	c.p.MemberGone(c.now, jobtest.Node(2))
	c.nodes = 1
	c.pass(4 * time.Second)
	c.want("1 book 3: 3 in 597") // however much later
	c.book(0)
	c.want("1 end 2", "1 keep 3", "2 end 2")

	c.p.Bookings.Answered(c.now, jobtest.Node(1), c.p.Rec.Booking.Key, "not known")
	if c.pass(4 * time.Second); len(c.books) > 0 {
		t.Error("each promise that is not kept gives another one at once")
	}
	c.planned(10 * time.Second)
	c.want("1 book 4: 3 in 597")
}

// A job that cannot begin when that was promised asks ever more seldom, and has another start promised.
func TestPromiseThatIsNotKept(t *testing.T) {
	c := newPlanner(t, gang(timing.BookAtOnce), 2, twoNodes)
	c.pass(4 * time.Second)
	c.book(0)
	c.pass(c.p.Rec.Booking.At.Sub(c.now) - time.Second)
	c.steps = func(int) []wire.Step { return nil }
	plans, floods := c.plans, c.p.Search.Rounds[len(c.p.Search.Rounds)-1].Number
	c.pass(time.Hour)
	if n := c.plans - plans; n < 10 || n > 20 {
		t.Errorf("in an hour it asked %d times for another start", n)
	}
	if n := c.p.Search.Rounds[len(c.p.Search.Rounds)-1].Number - floods; n > 200 {
		t.Errorf("in an hour it asked %d times for workers", n)
	}
	if text := c.p.Status().Reason; strings.Contains(text, "is promised") {
		t.Errorf("it waits for %q", text)
	}
	c.steps, c.said = twoNodes, nil
	c.planned(8 * time.Minute)
	c.want("1 book 2: 2 in 57", "2 book 2: 1 in 57")
}

func TestBookingsEndWithTheJobAndOutliveItsOrigin(t *testing.T) {
	c := newPlanner(t, gang(timing.BookAtOnce), 2, twoNodes)
	c.pass(4 * time.Second)
	c.book(0)
	c.pass(0)
	again := New(c.p.Rec.ID, c.p.self, c.p.Search.Rnd)
	for _, ev := range c.log {
		again.Rec.Apply(ev)
	}
	c.said, c.p = nil, again
	c.p.Resume(c.now)
	c.pass(time.Second)
	c.want("1 keep 1", "2 keep 1")
	c.pass(wire.RenewBook)
	c.said = nil
	c.p.Cancel(c.now, "a user wants it", false)
	for _, e := range c.step() {
		if e, ok := e.(DoBook); ok {
			c.note(e)
		}
	}
	for n := 1; n <= 2; n++ {
		if !slices.ContainsFunc(c.said, func(s string) bool { return strings.HasPrefix(s, fmt.Sprint(n, " end ")) }) {
			t.Errorf("node %d is told %q", n, c.said)
		}
	}
}

func TestWhoseStartIsPromised(t *testing.T) {
	array := gang(0)
	array.Min = 1
	array.Array = &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: 9, Step: 1}}}
	for name, tt := range map[string]struct {
		spec jobs.Spec
		want bool
	}{
		"the next slot will do": {jobs.Spec{Min: 1, Max: 1}, false}, "an array": {array, false}, "a large worker": {jobs.Spec{Min: 1, Max: 1, Slots: 4}, true},
		"never": {gang(timing.BookNever), false}, "after an hour": {gang(codec.Duration(time.Hour)), false}, "a gang": {gang(0), true},
	} {
		c := newPlanner(t, tt.spec, 2, twoNodes)
		if c.pass(timing.DefaultBookAfter + 5*time.Second); (c.plans > 0) != tt.want {
			t.Errorf("%s: nodes were asked %d times for plans, want %v", name, c.plans, tt.want)
		}
	}
}

// Of jobs that have not asked for it one at a time has a start promised.
func TestJobsTakeTurnsToHaveTheirStartPromised(t *testing.T) {
	turns := &Turns{}
	first, second := newPlanner(t, gang(0), 2, twoNodes), newPlanner(t, gang(0), 2, twoNodes)
	second.p.Rec.ID = "bbbbb" + second.p.Rec.ID[5:]
	for _, c := range []*planner{first, second} {
		c.p.Bookings.Turns = turns
		c.pass(timing.DefaultBookAfter + 5*time.Second)
		c.book(0)
	}
	if first.p.Rec.Booking == nil || second.p.Rec.Booking != nil || second.plans > 0 {
		t.Fatal("want the first alone to have its start promised")
	}
	turns.of = second.p.Rec.ID
	renewed := first.now.Add(wire.RenewBook)
	if first.pass(wire.RenewBook + time.Second); !first.p.Bookings.renew.After(renewed) {
		t.Error("what was promised before is not kept on when it is the turn of another")
	}
	turns.of = first.p.Rec.ID
	first.p.Cancel(first.now, "a user wants it", false)
	second.planned(20 * time.Second)
	if second.book(0); second.p.Rec.Booking == nil {
		t.Error("it is the turn of the second, but nothing is promised")
	}
}

func TestDeadlines(t *testing.T) {
	late := gang(timing.BookAtOnce)
	late.Search.Deadline = jobtest.Start.Add(2 * time.Hour)
	c := newPlanner(t, late, 2, func(int) []wire.Step { return []wire.Step{from(3700, 2)} })
	c.pass(4 * time.Second)
	c.want() // it would end after its deadline
	c.pass(time.Hour)
	c.state(jobs.Failed, jobs.CodeZorilla)
	if text := c.p.Rec.Reason; !strings.HasPrefix(text, "missed its deadline: its walltime of 1h0m0s does not fit before it any more: waiting for 3 workers") {
		t.Errorf("it ended since %q", text)
	}

	spec := jobs.Spec{Min: 1, Max: 1}
	spec.Search.Deadline = jobtest.Start.Add(5 * time.Second)
	r := newTalk(t, spec)
	r.step()
	r.offer(1, 1)
	r.report(1, jobs.WorkerReady, 0, jobs.RankAttempt{Attempt: 1})
	r.report(1, jobs.WorkerRunning, 0, jobs.RankAttempt{Attempt: 1})
	if r.after(4 * time.Second); r.p.Rec.Cancelled != "" || !r.p.Wake().Equal(spec.Search.Deadline) && r.p.Wake().After(spec.Search.Deadline) {
		t.Fatalf("%q, and wakes at %v", r.p.Rec.Cancelled, r.p.Wake())
	}
	if r.after(time.Second); r.p.Rec.Cancelled != "its deadline has come" {
		t.Errorf("it goes on: %q", r.p.Rec.Cancelled)
	}
}
