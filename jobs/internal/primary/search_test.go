package primary

import (
	"slices"
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// flooding is a talk whose primary has just flooded for workers, and knows no
// distance but those that it is told.
type flooding struct {
	*talk
	rtts map[vicinity.ID]time.Duration
}

func newFlooding(t *testing.T, spec jobs.Spec) *flooding {
	t.Helper()
	c := &flooding{newTalk(t, spec), map[vicinity.ID]time.Duration{}}
	c.p.Measured = func(id vicinity.ID) time.Duration { return c.rtts[id] }
	if floods := only[DoFlood](c.talk); len(floods) != 1 || floods[0].Radius != 1 {
		t.Fatalf("began with %+v, want one flood of radius 1", floods)
	}
	c.sent()
	return c
}

// sent starts a real flood for the primary's.
func (c *flooding) sent() {
	c.t.Helper()
	core := flood.NewCore(flood.Config{Self: c.p.self.ID, Neighbours: func() []vicinity.ID { return []vicinity.ID{jobtest.Node(1), jobtest.Node(2)} }})
	f, _, err := core.Start(c.now, 1, 30*time.Second, []byte("advertisement"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.p.Sent(c.now, len(c.p.Search.Rounds), f)
}

// answer lets node n answer the latest flood after a time; it is on the rim
// with five neighbours, and so many milliseconds away.
func (c *flooding) answer(n int, rtt, after time.Duration, change func(*wire.Answer)) {
	c.now = c.now.Add(after)
	c.p.Tick(c.now)
	a := wire.Answer{Job: c.p.Rec.ID, Round: len(c.p.Search.Rounds), Capacity: 2, Reason: wire.ReasonBusy, Hops: 1, Rim: true, Onward: 5}
	change(&a)
	if a.Workers > 0 {
		a.Key, a.Reason = uint64(n)+1, ""
	}
	c.p.Answered(c.now, vicinity.Member{ID: jobtest.Node(n)}, rtt, a)
	c.declined()
}

func offers(workers int) func(*wire.Answer) { return func(a *wire.Answer) { a.Workers = workers } }
func busy(a *wire.Answer)                   {}

// rim returns the nodes that the flood was extended beyond since the last step.
func (c *flooding) rim() (ids []vicinity.ID) {
	for _, e := range only[DoExtend](c.talk) {
		for _, r := range e.Rim {
			ids = append(ids, r.Node)
		}
	}
	return ids
}

func (c *flooding) wantRim(what string, nodes ...int) {
	c.t.Helper()
	var want []vicinity.ID
	for _, n := range nodes {
		want = append(want, jobtest.Node(n))
	}
	if got := c.rim(); !slices.Equal(got, want) {
		c.t.Fatalf("%s: extended beyond %v, want %v", what, got, want)
	}
}

const ms = time.Millisecond

func TestFloodIsExtendedBeyondBusyNodesNearestFirst(t *testing.T) {
	c := newFlooding(t, jobs.Spec{Min: 4, Max: 4})
	for n := 1; n <= 6; n++ {
		c.answer(n, time.Duration(10+n)*ms/10, 0, busy)
	}
	c.wantRim("before the others could answer")
	c.after(c.p.Wake().Sub(c.now))
	c.wantRim("then the nearest four", 1, 2, 3, 4)
	c.after(c.p.Wake().Sub(c.now))
	c.wantRim("when these have had time", 5, 6)
	r := c.p.Status().Rounds[0]
	// 2 by the origin, and for each of six nodes one to it and five from it.
	if len(c.p.Search.Rounds) != 1 || r.Extended != 6 || r.Messages != 2+6*6 || r.Duplicates != r.Messages-6 || r.Hops != 1 || r.Bytes < r.Messages*100 {
		t.Errorf("counted %+v", r)
	}
}

func TestSearchGoesOnWhileNearerNodesMayBeFound(t *testing.T) {
	c := newFlooding(t, jobs.Spec{Min: 2, Max: 2})
	c.answer(1, 2*ms, 2*ms, busy)
	c.answer(9, 20*ms, 18*ms, offers(2)) // enough, but far: what is behind node 1?
	c.wantRim("nearer than the offer", 1)
	if g := only[DoGrant](c.talk); len(g) != 0 {
		t.Fatalf("granted %+v at once", g)
	}
	c.answer(2, 3*ms, 3*ms, func(a *wire.Answer) { a.Workers, a.Hops = 2, 2 })
	c.after(c.p.Wake().Sub(c.now))
	c.wantNothingBut(2)
	yields := only[DoYield](c.talk)
	if c.p.Rec.State != jobs.Staging || len(yields) != 0 {
		t.Fatalf("the job is %s after %+v", c.p.Rec.State, yields)
	}
}

// wantNothingBut checks that one node got the grants.
func (c *flooding) wantNothingBut(n int) {
	c.t.Helper()
	for range 5 {
		var grants, extended int
		for _, e := range c.step() {
			switch e := e.(type) {
			case DoGrant:
				grants++
				if e.To != jobtest.Node(n) {
					c.t.Fatalf("granted to %s, want node %d", e.To, n)
				}
			case DoExtend:
				extended++
			}
		}
		if grants == 1 {
			return
		}
		c.after(c.p.Wake().Sub(c.now))
	}
	c.t.Fatalf("nothing granted: %s", c.p.reason())
}

func TestUnmeasuredOffersAreMeasuredBeforeTheChoice(t *testing.T) {
	c := newFlooding(t, jobs.Spec{Min: 1, Max: 1})
	noRim := func(a *wire.Answer) { a.Workers, a.Rim = 1, false }
	c.answer(1, 0, 12*ms, noRim) // a busy node answers late; in truth it is near
	c.answer(2, 9*ms, 0, noRim)
	if p := only[DoProbe](c.talk); len(p) != 1 || p[0].ID != jobtest.Node(1) {
		t.Fatalf("had %+v measured, want node 1", p)
	}
	c.rtts[jobtest.Node(1)] = ms
	c.after(c.p.Wake().Sub(c.now))
	c.wantNothingBut(1)
	if w := c.p.Status().Workers[0]; time.Duration(w.RTT) != ms {
		t.Errorf("the worker is said to be %v away", time.Duration(w.RTT))
	}
}

func TestSearchWaitsForANearSlotThatIsFreeSoon(t *testing.T) {
	c := newFlooding(t, jobs.Spec{Min: 2, Max: 2})
	soon := func(a *wire.Answer) { a.Free = 700 }
	c.answer(1, ms, 0, soon)
	c.answer(2, ms, 0, soon)
	c.answer(3, 15*ms, 0, busy)
	for c.now.Add(ms).Before(c.p.Search.FloodedAt.Add(time.Second)) {
		c.after(ms)
	}
	if rim := c.rim(); len(rim) != 0 {
		t.Fatalf("went on beyond %v though near slots will be free before the next flood", rim)
	}
	c.after(ms) // nobody was free after all
	c.wantRim("at its time", 1, 2)
	c.after(c.p.Wake().Sub(c.now))
	c.wantRim("and then farther", 3)
	if n := len(c.p.Search.Rounds); n != 1 {
		t.Errorf("%d floods, want none beside the first: it can still be extended", n)
	}
}

func TestPaperSearchOnlyFloodsAgain(t *testing.T) {
	c := newFlooding(t, jobs.Spec{Min: 2, Max: 2, Search: jobs.Search{Mode: jobs.SearchPaper}})
	for n := 1; n <= 6; n++ {
		c.answer(n, ms, 0, busy)
	}
	c.after(999 * ms)
	if e := c.step(); len(e) != 0 {
		t.Fatalf("did %+v before its time", e)
	}
	c.after(ms)
	if floods := only[DoFlood](c.talk); len(floods) != 1 || floods[0].Radius != 2 {
		t.Fatalf("got %+v, want a flood of radius 2", floods)
	}
}

func TestSearchThatFoundNobodyFloodsAnewAtItsTime(t *testing.T) {
	c := newFlooding(t, jobs.Spec{Min: 2, Max: 2})
	c.answer(1, ms, 0, func(a *wire.Answer) { a.Onward = 0 })
	for _, wait := range []time.Duration{1, 2, 4} {
		c.after(wait*time.Second - ms)
		if e := only[DoFlood](c.talk); len(e) != 0 {
			t.Fatalf("flooded %+v before its time", e)
		}
		c.after(ms)
		if floods := only[DoFlood](c.talk); len(floods) != 1 || floods[0].Radius != 1 {
			t.Fatalf("got %+v, want a flood of radius 1", floods)
		}
		c.sent()
	}
}

// However many answers say that there is more behind them, a job with enough
// offers starts.
func TestSearchWithEnoughOffersEnds(t *testing.T) {
	c := newFlooding(t, jobs.Spec{Min: 1, Max: 1})
	c.answer(1, 200*ms, 200*ms, offers(1))
	for n := 2; c.p.Rec.State == jobs.Pending; n++ {
		c.answer(n, 100*ms, 30*ms, busy)
		if c.now.After(c.p.Search.FloodedAt.Add(search.MaxExtend + search.MaxNearerWait + time.Second)) {
			t.Fatal("the job does not start")
		}
	}
	if len(c.p.Search.Offers) != 0 {
		t.Errorf("%d offers stand still", len(c.p.Search.Offers))
	}
}

// A job that has enough offers does not flood all of a large site that is busy.
func TestSearchForNearerNodesIsGivenUpAfterMany(t *testing.T) {
	c := newFlooding(t, jobs.Spec{Min: 1, Max: 1})
	c.answer(0, 20*ms, ms, offers(1))
	n := 1
	for c.p.Rec.State == jobs.Pending {
		if rim := c.rim(); n == 1 || len(rim) > 0 {
			for range 5 * max(1, len(rim)) {
				c.answer(n, ms, 0, busy)
				n++
			}
		}
		c.after(max(0, c.p.Wake().Sub(c.now)))
	}
	// The last step but one may be one short of the limit, and doubles.
	if n < search.MaxFruitless || n > 10*search.MaxFruitless {
		t.Errorf("granted the far offer after %d near nodes were busy", n)
	}
	if d := c.now.Sub(c.p.Search.FloodedAt); d > search.MaxExtend/4 {
		t.Errorf("that took %v", d)
	}
}

// A job that is to be spread does not take the first node that could do all of
// it, but looks for as many as it has ranks.
func TestSpreadLooksForMoreNodes(t *testing.T) {
	c := newFlooding(t, jobs.Spec{Min: 3, Max: 3, Strategy: "spread"})
	c.answer(0, 1, 0, func(a *wire.Answer) { a.Workers, a.Hops = 4, 0 }) // the origin itself
	c.answer(1, ms, ms, offers(4))
	c.answer(2, 9*ms, 8*ms, busy)
	c.after(c.p.Wake().Sub(c.now))
	c.wantRim("two nodes for three ranks", 1, 2)
	c.answer(3, 12*ms, 20*ms, func(a *wire.Answer) { a.Workers, a.Hops, a.Onward = 1, 2, 0 })
	for c.p.Rec.State == jobs.Pending {
		c.after(max(ms, c.p.Wake().Sub(c.now)))
	}
	if g := only[DoGrant](c.talk); len(g) != 3 || c.now.Sub(c.p.Search.FloodedAt) > time.Second {
		t.Fatalf("%d grants after %v, want one for each of three nodes: %+v", len(g), c.now.Sub(c.p.Search.FloodedAt), g)
	}
}

// The rim is passed nearest first, but of many nodes only an upper bound of the
// distance is known: they are measured before they count as far.
func TestRimOfUnknownDistanceIsMeasured(t *testing.T) {
	c := newFlooding(t, jobs.Spec{Min: 1, Max: 1})
	c.answer(9, 17*ms, 17*ms, func(a *wire.Answer) { a.Workers, a.Rim = 1, false })
	c.answer(1, 0, 13*ms, busy) // 30 ms after the flood
	if p := only[DoProbe](c.talk); len(p) != 1 || p[0].ID != jobtest.Node(1) {
		t.Fatalf("had %+v measured, want the node on the rim", p)
	}
	c.rtts[jobtest.Node(1)] = 10 * ms
	c.after(c.p.Wake().Sub(c.now))
	c.wantRim("nearer than the offer after all", 1)
	c.answer(2, 11*ms, 20*ms, func(a *wire.Answer) { a.Workers, a.Hops, a.Rim = 1, 2, false })
	c.after(c.p.Wake().Sub(c.now))
	c.wantNothingBut(2)
}

// A near site to which no link leads but over far nodes is found all the same,
// if the origin has measured one of its nodes.
func TestKnownNearNodeIsMetBeforeAFarOneIsTaken(t *testing.T) {
	c := newFlooding(t, jobs.Spec{Min: 1, Max: 1})
	known := []vicinity.Measured{{ID: jobtest.Node(3), RTT: 5 * ms}, {ID: jobtest.Node(4), RTT: 12 * ms}}
	c.p.Near = func(than time.Duration, limit int) []vicinity.Measured {
		return slices.DeleteFunc(slices.Clone(known), func(m vicinity.Measured) bool { return m.RTT >= than })
	}
	c.answer(9, 10*ms, 10*ms, offers(1))
	c.after(c.p.Wake().Sub(c.now))
	c.wantRim("nearer than the offer, and not reached", 3)
	c.answer(3, 5*ms, 5*ms, func(a *wire.Answer) { a.Workers, a.Rim, a.Onward = 1, false, 0 })
	for c.p.Rec.State == jobs.Pending {
		c.after(max(ms, c.p.Wake().Sub(c.now)))
	}
	if g := only[DoGrant](c.talk); len(g) != 1 || g[0].To != jobtest.Node(3) {
		t.Fatalf("granted %+v, want the near node", g)
	}
}

// A job that would be spread over more nodes, and waits for near ones that are
// free soon, does not ask to be woken without end.
func TestChoiceThatWaitsForNearSlotsDoesNotSpin(t *testing.T) {
	for _, spec := range []jobs.Spec{{Min: 1, Max: 3, Strategy: "spread"}, {Min: 1, Max: 3, Strategy: "compact"}} {
		c := newFlooding(t, spec)
		for n := 1; n <= 3; n++ {
			c.answer(n, ms, 0, func(a *wire.Answer) { a.Free = 700 })
		}
		c.answer(4, 15*ms, 0, offers(1))
		for wakes := 0; c.now.Before(c.p.Search.FloodedAt.Add(500 * ms)); wakes++ {
			c.step()
			c.now = c.p.Wake()
			c.p.Tick(c.now)
			if wakes > 2000 {
				t.Fatalf("%s: woken %d times in %v", spec.Strategy, wakes, c.now.Sub(c.p.Search.FloodedAt))
			}
		}
	}
}

func TestNearerOffersAreAwaited(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 1, Max: 1})
	c.step()
	answer := func(n int) {
		c.p.Answered(c.now, vicinity.Member{ID: jobtest.Node(n)}, time.Duration(n)*time.Millisecond, wire.Answer{Job: c.p.Rec.ID, Round: 1, Key: uint64(n), Workers: 1, Capacity: 1})
	}
	c.now = c.now.Add(20 * time.Millisecond)
	answer(20)
	if g := only[DoGrant](c); len(g) != 0 {
		t.Fatalf("granted %+v at once, though nearer nodes may still answer", g)
	}
	if at := c.p.Wake(); !at.Equal(c.p.Search.FloodedAt.Add(40 * time.Millisecond)) {
		t.Fatalf("wakes at %v after the flood", at.Sub(c.p.Search.FloodedAt))
	}
	c.now = c.now.Add(5 * time.Millisecond)
	answer(3)
	if g := only[DoGrant](c); len(g) != 1 || g[0].To != jobtest.Node(3) {
		t.Fatalf("got grants %+v, want the nearer node without further waiting", g)
	}
}
