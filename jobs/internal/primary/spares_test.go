package primary

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/placement/mapping"
	"zorilla/vicinity"
)

// wary is a job of two workers at nodes 1 and 2 that runs, with two spares at node 3.
func wary(t *testing.T) *talk {
	t.Helper()
	c := newTalk(t, jobs.Spec{Min: 1, Max: 2, Placing: jobs.Placing{Spares: 2}})
	c.p.Member = func(id vicinity.ID) (m vicinity.Member, ok bool) {
		return vicinity.Member{ID: id, Name: "n", Slots: 1, Version: 99}, true
	}
	c.step()
	c.offer(1, 1)
	c.offer(2, 1)
	c.after(time.Second)
	for n := 1; n <= 2; n++ {
		c.report(n, jobs.WorkerReady, 0, wiretest.RA(n-1, 1))
	}
	c.state(jobs.Running, -1)
	c.spares("nothing is offered yet")
	c.after(time.Second)
	c.step()
	c.offer(3, 2)
	c.after(time.Second)
	if to, g := c.theGrant(); to != jobtest.Node(3) || g.Spares != 2 || len(g.Ranks) != 0 || g.Key != 4 {
		t.Fatalf("node %s is granted %d spares, the ranks %v, by key %d", to, g.Spares, g.Ranks, g.Key)
	}
	c.keeps(3, &wire.Spares{Key: 4, Workers: 2, Ready: true})
	c.spares("they are there", 3, 3)
	return c
}

// keeps has a node report spares, and that its rank runs if it has one.
func (c *talk) keeps(n int, s *wire.Spares) (ack wire.Ack) {
	c.t.Helper()
	rep := wire.Report{Job: c.p.Rec.ID, Spares: s}
	have := map[jobs.RankAttempt]wire.Written{}
	for i := range c.p.Rec.Ranks {
		if k := &c.p.Rec.Ranks[i]; k.Node == jobtest.Node(n) {
			ra := wiretest.RA(i, k.Attempt)
			rep.Workers, have[ra] = append(rep.Workers, wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerRunning}), wire.Written{}
		}
	}
	c.p.Reported(c.now, jobtest.Node(n), rep, have, 0)
	for _, e := range c.p.Out.Effects {
		if a, ok := e.(DoAnswer); ok {
			ack = a.Ack
		}
	}
	return ack
}

// spares checks at which nodes there are some.
func (c *talk) spares(what string, nodes ...int) {
	c.t.Helper()
	var have []int
	for _, s := range c.p.Status().Spares {
		n := slices.IndexFunc([]int{0, 1, 2, 3, 4, 5}, func(n int) bool { return jobtest.Node(n) == s.Node })
		have = append(have, slices.Repeat([]int{n}, s.Workers)...)
	}
	if !slices.Equal(have, nodes) {
		c.t.Fatalf("%s: nodes %v have spares, want %v", what, have, nodes)
	}
}

// A rank that is lost is granted to a spare in the same step, without a search, and another spare is looked for.
func TestLostRankTakesASpare(t *testing.T) {
	c := wary(t)
	for range 5 { // node 2 is silent
		c.after(2 * time.Second)
		c.keeps(1, nil)
		c.keeps(3, &wire.Spares{Key: 4, Workers: 2, Ready: true})
	}
	effects := c.step()
	to, g := vicinity.ID(""), wire.Grant{}
	for _, e := range effects {
		switch e := e.(type) {
		case DoFlood: // for another spare
			if to == "" {
				t.Errorf("asks for %d workers", e.Ad.Wanted)
			}
		case DoGrant:
			to, g = e.To, e.Grant
		}
	}
	if to != jobtest.Node(3) || !slices.Equal(g.Ranks, []jobs.RankAttempt{wiretest.RA(1, 2)}) || g.Key != 4 || g.Spares != 0 {
		t.Fatalf("node %s is granted %v, by key %d, after %+v", to, g.Ranks, g.Key, effects)
	}
	if r := c.p.Rec.Ranks[1].Replaced; r == nil || r.From != jobtest.Node(2) {
		t.Errorf("rank 1 is there for %+v", r)
	}
	c.spares("one was used", 3)
	c.keeps(3, &wire.Spares{Key: 4, Workers: 2, Ready: true}) // a report from before
	c.spares("an old report", 3)
	if c.p.GrantFailed(c.now, jobtest.Node(3), g.Ranks, "has left"); c.p.Rec.Ranks[1].State != jobs.WorkerWanted {
		t.Errorf("after the refusal rank 1 is %s", c.p.Rec.Ranks[1].State)
	}
	c.spares("its node refused the rank")
}

// What ends spares has others looked for, or is the end of all.
func TestSparesThatEnd(t *testing.T) {
	for name, test := range map[string]struct {
		ends  func(c *talk)
		seeks bool // others
	}{
		"their node has none": {func(c *talk) { c.keeps(3, nil) }, true},
		"their node leaves": {func(c *talk) {
			c.p.Reported(c.now, jobtest.Node(3), wire.Report{Job: c.p.Rec.ID, Away: time.Minute}, nil, 0)
		}, true},
		"their node is dead": {func(c *talk) { c.p.MemberGone(c.now, jobtest.Node(3)) }, true},
		"their node is silent": {func(c *talk) {
			for range 5 {
				c.after(2 * time.Second)
				c.keeps(1, nil)
				c.keeps(2, nil)
			}
		}, true},
		"the job is cancelled": {func(c *talk) { c.p.Cancel(c.now, "a user", false) }, false},
		"the job ends":         {func(c *talk) { c.p.Cancel(c.now, "a user", true) }, false},
	} {
		c := wary(t)
		c.step()
		test.ends(c)
		c.spares(name)
		if _, found := c.p.Parts[jobtest.Node(3)]; found {
			t.Errorf("%s: node 3 is a participant still", name)
		}
		released := false
		for _, e := range c.step() {
			r, ok := e.(DoRelease)
			released = released || ok && r.To == jobtest.Node(3) && (r.Release.Spares || len(r.Release.Ranks) == 0 && !r.Release.Stop)
		}
		if released == test.seeks {
			t.Errorf("%s: node 3 is let go: %v", name, released)
		}
		c.after(time.Second)
		if d := c.p.Demand(); (d.Wanted == 2) != test.seeks || test.seeks != (d.Spares != nil) {
			t.Errorf("%s: then %d are looked for, as %+v", name, d.Wanted, d.Spares)
		}
	}
}

// A node that refuses spares, or does not answer, is not asked again at once.
func TestSparesThatAreRefused(t *testing.T) {
	for _, why := range []string{"", "has fewer slots left than it offered"} {
		c := wary(t)
		c.keeps(3, nil)
		for range 20 {
			c.after(2 * time.Second)
			c.keeps(1, nil)
			c.keeps(2, nil)
		}
		c.step()
		c.offer(4, 2)
		c.after(time.Second)
		if to, g := c.theGrant(); to != jobtest.Node(4) || g.Spares != 2 {
			t.Fatalf("node %s is granted %d spares", to, g.Spares)
		}
		c.p.GrantFailed(c.now, jobtest.Node(4), nil, why)
		c.spares(fmt.Sprintf("refused: %q", why))
		c.offerAgain(4, 2)
		c.after(time.Second)
		if to, _ := c.theGrant(); to != "" {
			t.Errorf("refused: %q: node %s is granted more", why, to)
		}
	}
}

// An origin that was started again hears of its spares in reports, and of none that it does not want.
func TestSparesOutlastTheOrigin(t *testing.T) {
	c := wary(t)
	c.step()
	again := New(c.p.Rec.ID, c.p.self, c.p.Search.Rnd)
	for _, ev := range c.log {
		again.Rec.Apply(ev)
	}
	known := c.p.Member
	again.Member, c.p = func(vicinity.ID) (m vicinity.Member, ok bool) { return m, false }, again
	c.p.Resume(c.now)
	c.spares("nobody has reported")
	if ack := c.keeps(3, &wire.Spares{Key: 4, Workers: 2, Ready: true}); ack.NoSpares {
		t.Error("they are not wanted")
	}
	c.p.Member = known
	if c.keeps(3, &wire.Spares{Key: 4, Workers: 2, Ready: true}); c.p.spares.list()[0].Name != "n" {
		t.Errorf("the node is called %q", c.p.spares.list()[0].Name)
	}
	c.spares("node 3 has reported", 3, 3)
	if ack := c.keeps(4, &wire.Spares{Key: 9, Workers: 1, Ready: true}); !ack.NoSpares || !ack.Known {
		t.Errorf("one more is answered with %+v", ack)
	}
	if ack := c.keeps(3, &wire.Spares{Key: 5, Workers: 1}); !ack.NoSpares {
		t.Errorf("others than it has are answered with %+v", ack)
	}
}

// No more are kept than workers that may be lost.
func TestSparesOfWorkersThatHaveEnded(t *testing.T) {
	c := wary(t)
	c.report(1, jobs.WorkerEnded, 0, wiretest.RA(0, 1))
	c.spares("one worker is left, and one node has them", 3, 3)
	c.p.spares.of[jobtest.Node(4)] = &spare{Spare: search.Spare{Node: jobtest.Node(4), Workers: 1, RTT: time.Second}}
	c.p.Tick(c.now)
	c.spares("and one of another node", 3, 3)
	for _, s := range []jobs.Spec{
		{Min: 2, Max: 2, Placing: jobs.Placing{Spares: 1}},
		{Min: 1, Max: 2, Placing: jobs.Placing{Spares: 3}},
		{Min: 2, Max: 2, Placing: jobs.Placing{Spares: 1}, Replicas: 2},
	} {
		if s.Args, s.Slots = []string{"prog"}, 1; !errors.Is(s.Validate(), jobs.ErrInvalid) {
			t.Errorf("-n %d..%d, %d spares, %d replicas is taken", s.Min, s.Max, s.Spares, s.Replicas)
		}
	}
	var r record.Record
	if !idle(&r, jobtest.Node(1)) {
		t.Error("a node of no job is not idle")
	}
}

// A job that starts again as a whole gives its spares back first: they are room for it.
func TestSparesOfAJobThatStartsAgain(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 2, Placing: jobs.Placing{Spares: 1}, Failing: jobs.Failing{Retries: 1}})
	c.step()
	c.offer(1, 2)
	c.after(time.Second)
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1), wiretest.RA(1, 1))
	c.after(time.Second)
	c.step()
	c.offer(3, 1)
	c.after(time.Second)
	c.keeps(3, &wire.Spares{Key: 4, Workers: 1, Ready: true})
	c.spares("they are there", 3)
	c.step()
	c.p.MemberGone(c.now, jobtest.Node(1))
	for range 5 {
		c.after(2 * time.Second)
		c.p.Heard(c.now, jobtest.Node(3))
	}
	c.spares("it starts again")
	if r := only[DoRelease](c); !slices.ContainsFunc(r, func(e DoRelease) bool { return e.To == jobtest.Node(3) && e.Release.Spares }) {
		t.Errorf("nodes are let go with %+v", r)
	}
	if d := c.p.Demand(); d.Wanted != 2 || d.Spares != nil {
		t.Errorf("it looks for %+v", d)
	}
}

// What nodes are told of a job that is mapped is sound without what is for the origin alone.
func TestGrantsOfMappedJobsAreSound(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 3, Max: 3, Strategy: "maheve", Placing: jobs.Placing{Spares: 1, Graph: &mapping.Listed{Name: "ring:3"}}})
	c.step()
	for n := 1; n <= 3; n++ {
		c.offer(n, 1)
	}
	c.after(2 * time.Second)
	grants := only[DoGrant](c)
	if len(grants) != 3 {
		t.Fatalf("%d nodes are granted ranks", len(grants))
	}
	for _, g := range grants {
		if err := g.Grant.Check(); err != nil {
			t.Error(err)
		}
	}
}

// The report of a node that its ranks' grant has not reached yet does not end the spares that they are to have.
func TestReportsFromBeforeTheGrantOfARank(t *testing.T) {
	c := wary(t)
	old := &wire.Spares{Key: 4, Workers: 2, Ready: true}
	for range 4 { // nodes 1 and 2 are silent
		c.after(2 * time.Second)
		c.keeps(3, old)
	}
	c.after(2 * time.Second)
	c.spares("both were used")
	rep := wire.Report{Job: c.p.Rec.ID, Spares: old}
	c.step()
	c.p.Reported(c.now, jobtest.Node(3), rep, nil, 0)
	if a := only[DoAnswer](c); len(a) != 1 || a[0].Ack.NoSpares {
		t.Errorf("the report is answered with %+v", a)
	}
}

// A rank that is moved to no node in particular takes a spare, too; one that is to go to a node does not.
func TestMovedRankTakesASpare(t *testing.T) {
	c := wary(t)
	c.step()
	if err := c.moves(0, -1); err != nil {
		t.Fatal(err)
	}
	c.leaves(1, wiretest.RA(0, 1))
	if to, g := c.theGrant(); to != jobtest.Node(3) || g.Key != 4 || !slices.Equal(g.Ranks, []jobs.RankAttempt{wiretest.RA(0, 2)}) {
		t.Errorf("node %s is granted %v by key %d", to, g.Ranks, g.Key)
	}
	if err := c.moves(1, 4); err != nil {
		t.Fatal(err)
	}
	c.leaves(2, wiretest.RA(1, 1))
	if to, g := c.theGrant(); to != "" {
		t.Errorf("node %s is granted %v, which is to go to another one", to, g.Ranks)
	}
	c.spares("one was used", 3)
}
