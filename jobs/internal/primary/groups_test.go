package primary

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

var ra = wiretest.RA

// lineup is a job of two groups that start again in some way when a rank is lost.
func lineup(a, b string, retries int) jobs.Spec {
	return jobs.Spec{Args: []string{"prog"}, Min: 3, Max: 5, Slots: 1, Failing: jobs.Failing{Retries: retries}, Topology: groups.Topology{Groups: []groups.Group{
		{Name: "a", Min: 1, Max: 2, Restart: a}, {Name: "b", Min: 2, Max: 3, Restart: b},
	}}}
}

// groupTalk is what a conversation with a job of groups needs besides.
type groupTalk struct {
	offers   int
	until    time.Time                            // no grants are waited for then; zero = they are
	size     int                                  // that the latest START had
	granted  jobs.Spec                            // as the latest grant has it
	measured func(a, b vicinity.ID) time.Duration // between others
}

// room has node n offer room for so many workers of one slot, of whatever kind, in answer to the latest flood.
func (c *talk) room(n, slots int) {
	c.offers++
	c.p.Answered(c.now, vicinity.Member{ID: jobtest.Node(n), Name: "n", Slots: slots}, time.Duration(n)*time.Millisecond,
		wire.Answer{Job: c.p.Rec.ID, Round: len(c.p.Search.Rounds), Key: uint64(1000*c.offers + n), Workers: slots, Capacity: slots, Fits: 1, Room: &wire.Room{Slots: slots}})
	c.declined()
}

// grants lets time pass until nodes are granted something, and returns by node what.
func (c *talk) grants() map[int][]jobs.RankAttempt {
	c.t.Helper()
	for range 40 {
		got := map[int][]jobs.RankAttempt{}
		var asked []DoMeasure
		for _, e := range c.step() {
			switch g := e.(type) {
			case DoMeasure:
				asked = append(asked, g)
			case DoGrant:
				n := 0
				for jobtest.Node(n) != g.To {
					n++
				}
				got[n] = g.Grant.Ranks
				if err := g.Grant.Check(); err != nil {
					c.t.Fatal(err)
				}
				c.granted = g.Grant.Spec
			}
		}
		if len(got) > 0 {
			return got
		}
		for _, m := range asked {
			var rtt []time.Duration
			for _, id := range m.Nodes {
				rtt = append(rtt, c.measured(m.From, id))
			}
			c.p.Paired(c.now, m.From, m.Nodes, rtt)
		}
		if len(asked) > 0 {
			continue
		}
		at := c.p.Wake()
		if at.IsZero() || at.After(c.now.Add(time.Minute)) || !c.until.IsZero() && !at.Before(c.until) {
			break
		}
		c.after(max(0, at.Sub(c.now)))
	}
	return nil
}

// runs has all that was granted get ready and start, and returns whom START went to, and with which ranks.
func (c *talk) runs(by map[int][]jobs.RankAttempt) map[vicinity.ID][]jobs.RankAttempt {
	c.t.Helper()
	started := map[vicinity.ID][]jobs.RankAttempt{}
	var nodes []int
	for n := range by {
		nodes = append(nodes, n)
	}
	slices.Sort(nodes)
	for _, n := range nodes {
		rep := wire.Report{Job: c.p.Rec.ID}
		for _, ra := range by[n] {
			rep.Workers = append(rep.Workers, wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerReady})
		}
		c.p.Reported(c.now, jobtest.Node(n), rep, nil, 0)
		for _, e := range c.step() {
			switch e := e.(type) {
			case DoStart:
				started[e.To] = append(started[e.To], e.Start.Ranks...)
				c.size = e.Start.Size
			case DoAnswer:
				if e.Ack.Start != nil {
					started[e.To] = append(started[e.To], e.Ack.Start.Ranks...)
					c.size = e.Ack.Start.Size
				}
			}
		}
	}
	for _, n := range nodes {
		c.report(n, jobs.WorkerRunning, 0, by[n]...)
	}
	return started
}

// total lists all ranks of several nodes.
func total[K comparable](by map[K][]jobs.RankAttempt) (all []jobs.RankAttempt) {
	for _, list := range by {
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b jobs.RankAttempt) int { return a.Rank - b.Rank })
	return all
}

// begun is a job that runs with all of its five ranks: 0, 1 and 2, 3, 4, some at node 1 and others at node 2.
func begun(t *testing.T, spec jobs.Spec) (*talk, map[int][]jobs.RankAttempt) {
	t.Helper()
	c := newTalk(t, spec)
	c.step()
	c.room(1, 3)
	c.room(2, 2)
	by := c.grants()
	if len(by) != 2 || len(total(by)) != 5 {
		t.Fatalf("granted %v", by)
	}
	if c.runs(by); c.p.Rec.State != jobs.Running {
		t.Fatalf("it is %s", c.p.Rec.State)
	}
	return c, by
}

// nodeOf returns the node of a rank.
func nodeOf(by map[int][]jobs.RankAttempt, rank int) int {
	for n, list := range by {
		for _, ra := range list {
			if ra.Rank == rank {
				return n
			}
		}
	}
	return -1
}

// All groups start at once, with the sizes that were chosen for what there is.
func TestGroupsStartTogether(t *testing.T) {
	c := newTalk(t, lineup("", "", 0))
	floods := only[DoFlood](c)
	if len(floods) != 1 || floods[0].Ad.Wanted != 5 || len(floods[0].Ad.Kinds) != 1 || floods[0].Ad.Where != "version >= 8" {
		t.Fatalf("it floods %+v", floods)
	}
	c.room(1, 2)
	if by := c.grants(); len(by) > 0 {
		t.Fatalf("granted %v of too little", by)
	}
	c.room(1, 2)
	c.room(2, 2)
	by := c.grants()
	if all := total(by); len(all) != 4 || len(by) != 2 || c.granted.Max != 4 || c.granted.Min != 4 || c.granted.Groups[0].Max+c.granted.Groups[1].Max != 4 {
		t.Fatalf("granted %v of a job of -n %d..%d, %+v", by, c.granted.Min, c.granted.Max, c.granted.Groups)
	}
	if was := c.p.Rec.AsSubmitted(); was.Max != 5 || was.Groups[0].Max != 2 {
		t.Errorf("what was submitted is %+v", was.Groups)
	}
	started := c.runs(by)
	if len(started) != 2 || len(total(started)) != 4 || c.size != 4 {
		t.Errorf("started %v, of %d", started, c.size)
	}
	starts := 0
	for _, ev := range c.log {
		if ev.Kind == record.Started {
			starts++
		}
	}
	if starts != 1 || c.p.Rec.State != jobs.Running {
		t.Errorf("%d starts, it is %s", starts, c.p.Rec.State)
	}
	for n, list := range by {
		c.report(n, jobs.WorkerEnded, 0, list...)
	}
	c.state(jobs.Completed, 0)
}

// again is the same job after a restart of its origin.
func (c *talk) again() {
	c.t.Helper()
	c.step()
	p := New(c.p.Rec.ID, c.p.self, rand.New(rand.NewPCG(1, 2)))
	for _, ev := range c.log {
		var back record.Event
		if err := codec.Unmarshal(codec.MustMarshal(ev), &back); err != nil {
			c.t.Fatal(err)
		}
		if !back.Sound(&p.Rec) {
			c.t.Fatalf("%+v is not sound", back)
		}
		p.Rec.Apply(back)
	}
	c.p = p
	p.Resume(c.now)
	c.declined()
}

// If the origin is started again between the grant and START, all of it is looked for again, in any size.
func TestOriginRestartsBeforeGroupsStart(t *testing.T) {
	c := newTalk(t, lineup("", groups.RestartGroup, 0))
	c.step()
	c.room(1, 2)
	c.room(2, 1)
	by := c.grants()
	if len(total(by)) != 3 {
		t.Fatalf("granted %v", by)
	}
	c.again()
	if c.p.Rec.Wanted() != 5 || !c.p.Rec.SizesOpen() {
		t.Errorf("%d are wanted, and sizes are %+v", c.p.Rec.Wanted(), c.p.Rec.Spec.Groups)
	}
	floods := only[DoFlood](c)
	if len(floods) != 1 || floods[0].Ad.Wanted != 5 {
		t.Fatalf("it floods %+v", floods)
	}
	if ack := c.report(1, jobs.WorkerReady, 0, by[1]...); !ack.Workers[0].Drop {
		t.Errorf("a worker of before is told %+v", ack)
	}
	c.room(1, 3)
	c.room(2, 2)
	got := c.grants()
	if len(total(got)) != 5 || c.granted.Max != 5 {
		t.Fatalf("granted %v", got)
	}
	c.runs(got)
	c.state(jobs.Running, -1)
}

// While a job runs its sizes are what they were, whoever is started again.
func TestOriginRestartsWhileGroupsRun(t *testing.T) {
	c := newTalk(t, lineup(groups.RestartRank, groups.RestartGroup, 0))
	c.step()
	c.room(1, 2)
	c.room(2, 1)
	by := c.grants()
	c.runs(by)
	c.again()
	c.state(jobs.Running, -1)
	if c.p.Rec.Spec.Max != 3 || c.p.Rec.Wanted() != 0 {
		t.Fatalf("there are %d ranks, %d are wanted", c.p.Rec.Spec.Max, c.p.Rec.Wanted())
	}
	for n, list := range by {
		c.report(n, jobs.WorkerRunning, 0, list...)
	}
	c.report(nodeOf(by, 0), jobs.WorkerLost, 0, ra(0, 1))
	c.after(2 * time.Second)
	c.step()
	c.room(3, 5)
	got := c.grants()
	if all := total(got); !slices.Equal(all, []jobs.RankAttempt{ra(0, 2)}) {
		t.Fatalf("granted %v", got)
	}
	c.runs(got)
	for n, list := range got {
		by[n] = append(by[n], list...)
	}
	for n, list := range by {
		c.report(n, jobs.WorkerEnded, 0, slices.DeleteFunc(slices.Clone(list), func(ra jobs.RankAttempt) bool { return !c.p.Rec.Owns(ra) })...)
	}
	c.state(jobs.Completed, 0)
}

// A group that prefers one cluster is split when it has waited for long enough.
func TestPreferenceEnds(t *testing.T) {
	spec := jobs.Spec{Args: []string{"prog"}, Min: 4, Max: 4, Slots: 1, Topology: groups.Topology{Groups: []groups.Group{
		{Name: "a", Min: 4, Max: 4, Clusters: 1, Prefer: codec.Duration(time.Minute)},
	}}}
	c := newTalk(t, spec)
	c.far()
	c.step()
	offer := func() {
		for n := range 4 { // two in each of two clusters
			c.room(n+1, 1)
		}
	}
	for c.until = jobtest.Start.Add(time.Minute - time.Second); c.now.Before(c.until); {
		offer()
		if by := c.grants(); len(by) > 0 {
			t.Fatalf("after %v granted %v", c.now.Sub(jobtest.Start), by)
		}
		c.after(time.Second)
	}
	if text := c.p.Status().Reason; !strings.Contains(text, "group a") {
		t.Errorf("it waits since %s", text)
	}
	if d := c.p.Demand(); d.Groups.Split[0] {
		t.Errorf("it is split after %v", c.now.Sub(jobtest.Start))
	}
	if wake := c.p.Wake(); wake.After(jobtest.Start.Add(time.Minute)) {
		t.Errorf("it is woken at %v", wake)
	}
	c.until = time.Time{}
	c.after(jobtest.Start.Add(time.Minute).Sub(c.now))
	by := c.grants()
	if by == nil {
		offer()
		by = c.grants()
	}
	if len(total(by)) != 4 {
		t.Fatalf("granted %v", by)
	}
}

// far has nodes 1 and 2 near each other, and 3 and 4, and these far from those.
func (c *talk) far() {
	site := func(id vicinity.ID) int {
		if id == jobtest.Node(1) || id == jobtest.Node(2) {
			return 1
		}
		return 2
	}
	rtt := func(a, b vicinity.ID) time.Duration {
		if site(a) == site(b) {
			return time.Millisecond / 2
		}
		return 40 * time.Millisecond
	}
	c.p.Distance = rtt
	c.p.Measured = func(id vicinity.ID) time.Duration { return time.Duration(site(id)) * 20 * time.Millisecond }
	c.p.Fresh = c.p.Measured
	c.measured = rtt
}

// Ranks that were lost do not wait for a cluster again, but a job that starts over does.
func TestPreferenceOfRanksThatAreReplaced(t *testing.T) {
	spec := jobs.Spec{Args: []string{"prog"}, Min: 2, Max: 2, Slots: 1, Topology: groups.Topology{Groups: []groups.Group{
		{Name: "a", Min: 2, Max: 2, Clusters: 1, Prefer: codec.Duration(time.Minute), Restart: groups.RestartRank},
	}}}
	later := jobtest.Start.Add(time.Hour)
	ranks := []jobs.RankAttempt{{Rank: 0, Attempt: 1}, {Rank: 1, Attempt: 1}}
	var rec record.Record
	for _, ev := range []record.Event{
		{Kind: record.Submitted, At: jobtest.Start, Spec: &spec},
		{Kind: record.Granted, At: jobtest.Start, Node: jobtest.Node(1), Ranks: ranks, Sizing: record.Sizing{Sizes: []int{2}}},
		{Kind: record.Started, At: jobtest.Start, Ranks: ranks},
		{Kind: record.Lost, At: later, Ranks: ranks[1:], Reason: "lost"},
	} {
		rec.Apply(ev)
	}
	var p preferences
	if p.look(later.Add(time.Second), &rec); !p.split[0] || !p.ends.IsZero() {
		t.Errorf("a rank that was lost waits again: %+v", p)
	}
	rec.Apply(record.Event{Kind: record.Retried, At: later, Ranks: ranks, Reason: "again"})
	if p.look(later.Add(time.Second), &rec); p.split[0] || !p.ends.Equal(later.Add(time.Minute)) {
		t.Errorf("all of it starts again, and does not wait: %+v", p)
	}
}
