package primary

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/work"
	"zorilla/vicinity"
)

// moves asks for a rank to go on elsewhere; to is the number of a node, -1 = any.
func (c *talk) moves(rank, to int) error {
	m := jobs.Move{Rank: rank}
	if to >= 0 {
		m.To = jobtest.Node(to)
	}
	size, err := c.p.Resize(c.now, jobtest.Node(9), &wire.Resize{Job: c.p.Rec.ID, Resize: jobs.Resize{Move: []jobs.Move{m}}})
	if err == nil && size.Moving != 1 {
		c.t.Errorf("of one rank %d are moved", size.Moving)
	}
	return err
}

// settled is a job of two workers at nodes 1 and 2, where rank 0 has made checkpoint 4 that is at nodes 5 and 1.
func settled(t *testing.T) *talk {
	t.Helper()
	c := saving(t)
	c.p.Member = func(id vicinity.ID) (m vicinity.Member, ok bool) {
		return vicinity.Member{ID: id, Name: "n", Slots: 1, Version: 99}, id != jobtest.Node(8)
	}
	c.made(1, wiretest.RA(0, 1), 4, 5, 1)
	c.after(time.Second)
	c.step()
	return c
}

// leaves has a node report that a rank has ended since it was told to.
func (c *talk) leaves(n int, ra jobs.RankAttempt) {
	c.t.Helper()
	w := wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerEnded, Exit: &work.Exit{Code: 143, Cause: work.Stopped}}
	c.p.Reported(c.now, jobtest.Node(n), wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{w}}, map[jobs.RankAttempt]wire.Written{ra: {}}, 0)
}

// theGrant returns the only grant of what was done since the last call of step, and nothing if there is none.
func (c *talk) theGrant() (to vicinity.ID, g wire.Grant) {
	c.t.Helper()
	switch grants := only[DoGrant](c); len(grants) {
	case 0:
		return "", g
	case 1:
		return grants[0].To, grants[0].Grant
	default:
		c.t.Fatalf("granted %+v", grants)
		return "", g
	}
}

// A rank that is moved is stopped, and looked for only when it has ended; not where it was, with its newest
// checkpoint, and for nothing.
func TestMovedRankGoesOnElsewhere(t *testing.T) {
	c := settled(t)
	ra := wiretest.RA(0, 1)
	if err := c.moves(0, -1); err != nil {
		t.Fatal(err)
	}
	if r := only[DoRelease](c); len(r) != 1 || r[0].To != jobtest.Node(1) || !r[0].Release.Stop || !slices.Equal(r[0].Release.Ranks, []jobs.RankAttempt{ra}) {
		t.Fatalf("released %+v", r)
	}
	if st := c.p.Status(); st.Reason != "rank 0 leaves "+jobs.Label("n", jobtest.Node(1)) {
		t.Errorf("the job says %q", st.Reason)
	}
	// The message may be lost: the answer says the same. Twice the same is no more than once.
	if ack := c.report(1, jobs.WorkerRunning, 0, ra); !ack.Workers[0].Stop || ack.Workers[0].Drop {
		t.Errorf("got %+v", ack)
	}
	if err := c.moves(0, -1); err != nil {
		t.Error(err)
	}
	c.step()
	if c.after(time.Second); c.p.Rec.Wanted() > 1 || c.p.Rec.Ranks[0].State != jobs.WorkerRunning {
		t.Fatalf("rank 0 is %s before it has ended", c.p.Rec.Ranks[0].State)
	}
	c.offerOf(3, 1, 77) // which goes to a new rank
	c.after(search.MaxNearerWait)
	if _, g := c.theGrant(); len(g.Ranks) != 1 || g.Ranks[0].Rank != 2 {
		t.Fatalf("granted %+v", g.Ranks)
	}
	c.leaves(1, ra)
	if k := c.p.Rec.Ranks[0]; k.State != jobs.WorkerWanted || k.Retries != 0 || k.Left != jobtest.Node(1) || len(c.p.Rec.Warnings) > 0 {
		t.Fatalf("it is %+v; warnings %q", k, c.p.Rec.Warnings)
	}
	c.step()
	if err := c.moves(0, -1); err != nil {
		t.Errorf("as it is on its way: %v", err)
	}
	c.after(50 * time.Millisecond)
	c.offerAgain(1, 1)
	c.after(search.MaxNearerWait)
	effects := c.step()
	if len(effects) == 0 || slices.ContainsFunc(effects, func(e Effect) bool { _, grants := e.(DoGrant); return grants }) {
		t.Fatalf("the node that it left offers: %+v", effects)
	}
	if !slices.ContainsFunc(effects, func(e Effect) bool { y, ok := e.(DoYield); return ok && y.To == jobtest.Node(1) }) {
		t.Errorf("its offer is not given back: %+v", effects)
	}
	c.offer(4, 1)
	c.after(search.MaxNearerWait)
	to, g := c.theGrant()
	if to != jobtest.Node(4) || g.Ranks[0] != wiretest.RA(0, 2) || len(g.Resume) != 1 || g.Resume[0].From.Number != 4 {
		t.Fatalf("node %s gets %+v, which begins with %+v", to.Short(), g.Ranks, g.Resume)
	}
	if err := c.moves(0, -1); err != nil {
		t.Errorf("as it is being prepared: %v", err)
	}
	c.report(4, jobs.WorkerReady, 0, wiretest.RA(0, 2))
	if k, st := c.p.Rec.Ranks[0], c.p.Status(); k.State != jobs.WorkerRunning || k.Left != "" || st.Workers[0].Retried != "moved from "+jobs.Label("n", jobtest.Node(1)) {
		t.Fatalf("it is %+v, shown as %+v", k, st.Workers[0])
	}
	if ack := c.report(1, jobs.WorkerEnded, 0, ra); !ack.Workers[0].Drop {
		t.Errorf("what is left of the attempt before is not wanted: %+v", ack)
	}
}

// To a node that is named.
func TestMovedRankGoesToANode(t *testing.T) {
	c := settled(t)
	if err := c.moves(0, 7); err != nil {
		t.Fatal(err)
	}
	c.leaves(1, wiretest.RA(0, 1))
	if d := c.p.Demand(); fmt.Sprint(d.Lost) != fmt.Sprint([]vicinity.ID{jobtest.Node(7)}) || !slices.Equal(d.To, []vicinity.ID{jobtest.Node(7)}) || !slices.Equal(d.Left, []vicinity.ID{jobtest.Node(1)}) {
		t.Fatalf("looks for %+v", d)
	}
	// It may go to another one as long as it waits, also back.
	for _, to := range []int{6, 1} {
		if err := c.moves(0, to); err != nil {
			t.Fatal(err)
		}
		if k := c.p.Rec.Ranks[0]; k.Former != jobtest.Node(to) || (k.Left == "") != (to == 1) || k.Retried != "moved from "+jobs.Label("n", jobtest.Node(1)) {
			t.Fatalf("to node %d: %+v", to, k)
		}
	}
	c = settled(t)
	if err := c.moves(0, 7); err != nil {
		t.Fatal(err)
	}
	c.p.Search.Avoid(c.now, jobtest.Node(7)) // for whatever reason: the user knows better
	c.leaves(1, wiretest.RA(0, 1))
	c.step()
	c.offer(7, 1)
	c.after(search.MaxNearerWait)
	if to, _ := c.theGrant(); to != jobtest.Node(7) || len(c.p.Rec.Warnings) > 0 || c.p.Rec.Ranks[0].Replaced != nil {
		t.Fatalf("node %s gets it, beside %+v; %q", to.Short(), c.p.Rec.Ranks[0].Replaced, c.p.Rec.Warnings)
	}
	// If that has no room, another one does, and the user hears of it.
	c = settled(t)
	if err := errors.Join(c.moves(0, 7), c.moves(0, -1)); err != nil {
		t.Fatal(err)
	}
	c.leaves(1, wiretest.RA(0, 1))
	c.offer(4, 1)
	c.after(search.MaxNearerWait)
	if to, _ := c.theGrant(); to != jobtest.Node(4) {
		t.Fatalf("node %s gets it", to.Short())
	}
	want := fmt.Sprintf("rank 0: no room was offered by %s, where it was to go: it goes to %s", jobs.Label("n", jobtest.Node(7)), jobs.Label("n", jobtest.Node(4)))
	if got := c.p.Rec.Warnings; !slices.Equal(got, []string{want}) {
		t.Errorf("warns %q", got)
	}
}

// Whatever happens while it is being stopped counts: its program ends, its node wants it no more or is lost,
// the job is cancelled, or the rank is given back.
func TestMovesThatAreOvertaken(t *testing.T) {
	ra := wiretest.RA(0, 1)
	for name, e := range map[string]struct {
		do      func(c *talk)
		state   jobs.WorkerState
		moved   bool
		retried string
	}{
		"it ends by itself": {func(c *talk) { c.report(1, jobs.WorkerEnded, 0, ra) }, jobs.WorkerEnded, false, ""},
		"it is cancelled":   {func(c *talk) { c.p.Cancel(c.now, "a user wants that", false); c.leaves(1, ra) }, jobs.WorkerEnded, false, ""},
		"its node is lost": {func(c *talk) {
			c.p.MemberGone(c.now, jobtest.Node(1))
			c.after(goneGrace)
		}, jobs.WorkerLost, false, ""},
		"its node drains": {func(c *talk) {
			c.saved(1, wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerLost, Reason: wire.ReasonDraining})
		}, jobs.WorkerWanted, true, "moved from"},
		"it did not begin": {func(c *talk) {
			c.saved(1, wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerLost, Declined: true, Reason: "x"})
		}, jobs.WorkerWanted, true, "moved from"},
	} {
		c := settled(t)
		if err := c.moves(0, -1); err != nil {
			t.Fatal(err)
		}
		c.step()
		e.do(c)
		if k := c.p.Rec.Ranks[0]; k.State != e.state || (k.Left != "") != e.moved || !strings.Contains(k.Retried, e.retried) {
			t.Errorf("%s: %+v", name, k)
		}
	}
	c := crowd(t, 1, 4, 3)
	if err := c.moves(2, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := c.wants(2); err != nil {
		t.Fatal(err)
	}
	c.leaves(3, wiretest.RA(2, 1))
	if k := c.p.Rec.Ranks[2]; k.State != jobs.WorkerEnded || c.p.Rec.Missing() != 0 {
		t.Errorf("it is given back: %+v", k)
	}
}

// reborn is the job at an origin that was started again.
func (c *talk) reborn() *talk {
	c.t.Helper()
	c.step()
	next := newTalk(c.t, c.p.Rec.Spec)
	next.p.Rec, next.now = record.Record{ID: c.p.Rec.ID, Origin: c.p.Rec.Origin}, c.now
	for _, ev := range c.log {
		if !ev.Sound(&next.p.Rec) {
			c.t.Fatalf("%+v is not sound", ev)
		}
		next.p.Rec.Apply(ev)
	}
	next.step()
	next.p.Resume(next.now)
	return next
}

// If the origin dies meanwhile, the rank runs on, or goes on elsewhere.
func TestMovesOutliveTheOrigin(t *testing.T) {
	ra := wiretest.RA(0, 1)
	for name, when := range map[string]int{"before it was told": 0, "before it has ended": 1, "when it has": 2} {
		c := settled(t)
		if err := c.moves(0, 7); err != nil {
			t.Fatal(err)
		}
		if when == 2 {
			c.leaves(1, ra)
		}
		c = c.reborn()
		switch when {
		case 0:
			if ack := c.report(1, jobs.WorkerRunning, 0, ra); ack.Workers[0].Stop || ack.Workers[0].Drop {
				t.Errorf("%s: got %+v", name, ack)
			}
			continue
		case 1:
			c.leaves(1, ra)
		}
		if k := c.p.Rec.Ranks[0]; k.State != jobs.WorkerWanted || k.Left != jobtest.Node(1) || (k.Former == jobtest.Node(7)) != (when == 2) {
			t.Errorf("%s: %+v", name, k)
		}
		c.offer(3, 1)
		c.after(search.MaxNearerWait)
		if to, g := c.theGrant(); to != jobtest.Node(3) || len(g.Resume) != 1 || g.Resume[0].From.Number != 4 {
			t.Errorf("%s: node %s gets %+v", name, to.Short(), g)
		}
	}
}

func TestMovesThatAreRefused(t *testing.T) {
	running := func(spec jobs.Spec, n int) *talk {
		c := newTalk(t, spec)
		c.p.Member = settled(t).p.Member
		c.offer(1, n)
		c.after(search.MaxNearerWait)
		var ras []jobs.RankAttempt
		for rank := range n {
			ras = append(ras, wiretest.RA(rank, 1))
		}
		c.report(1, jobs.WorkerReady, 0, ras...)
		return c
	}
	group := func(restart string) jobs.Spec {
		return jobs.Spec{Min: 2, Max: 2, Topology: groups.Topology{Groups: []groups.Group{{Name: "sea", Min: 2, Max: 2, Restart: restart}}}}
	}
	alone := func(change func(*talk)) *talk {
		c := settled(t)
		change(c)
		return c
	}
	nobody := func(*talk) {}
	single := running(jobs.Spec{Min: 1, Max: 3, Placing: jobs.Placing{OnePerNode: true}}, 1)
	single.joins(2, wiretest.RA(1, 1))
	for text, q := range map[string]struct {
		c        *talk
		err      error
		rank, to int
	}{
		"starts again as a whole":                   {running(jobs.Spec{Min: 2, Max: 2}, 2), jobs.ErrRefused, 1, -1},
		"starts all of the group of rank 1":         {running(group(groups.RestartGroup), 2), jobs.ErrRefused, 1, -1},
		"'zorilla drain --now' at a node":           {running(group(groups.RestartJob), 2), jobs.ErrRefused, 1, -1},
		"none of its ranks alone":                   {running(jobs.Spec{Min: 2, Max: 2, Access: jobs.Access{ShareWork: true}}, 2), jobs.ErrRefused, 0, -1},
		"is an array":                               {newTalk(t, jobs.Spec{Min: 1, Max: 9, Array: &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: 9, Step: 1}}}}), jobs.ErrRefused, 0, -1},
		"has copies":                                {newTalk(t, jobs.Spec{Min: 1, Max: 1, Replicas: 2}), jobs.ErrRefused, 0, -1},
		"has ranks 0 to 2":                          {alone(nobody), jobs.ErrRange, 3, -1},
		"rank 2 of job aaaaa@zaaaa has not started": {alone(nobody), jobs.ErrNotRunning, 2, -1},
		"is where it runs":                          {alone(nobody), jobs.ErrRefused, 0, 1},
		"is no member":                              {alone(nobody), jobs.ErrRefused, 0, 8},
		"does not suit it":                          {running(jobs.Spec{Min: 1, Max: 2, Slots: 2}, 1), jobs.ErrRefused, 0, 5},
		"which wants one at each node":              {single, jobs.ErrRefused, 0, 2},
		"job aaaaa@zaaaa has ended (CANCELLED)":     {alone(func(c *talk) { c.p.Cancel(c.now, "", true) }), jobs.ErrNotRunning, 0, -1},
		"is ending":                                 {alone(func(c *talk) { c.p.Cancel(c.now, "a user wants that", false) }), jobs.ErrRefused, 0, -1},
		"rank 0 of job aaaaa@zaaaa has ended":       {alone(func(c *talk) { c.report(1, jobs.WorkerEnded, 0, wiretest.RA(0, 1)) }), jobs.ErrNotRunning, 0, -1},
		"waits for a node already": {alone(func(c *talk) {
			c.p.MemberGone(c.now, jobtest.Node(1))
			c.after(goneGrace)
		}), jobs.ErrNotRunning, 0, -1},
		"is being prepared at": {alone(func(c *talk) {
			c.offerOf(3, 1, 77)
			c.after(search.MaxNearerWait)
		}), jobs.ErrNotRunning, 2, -1},
	} {
		q.c.step()
		err := q.c.moves(q.rank, q.to)
		if !errors.Is(err, q.err) || !strings.Contains(fmt.Sprint(err), text) || len(q.c.step()) > 0 {
			t.Errorf("%v, want %q", err, text)
		}
	}
	// All or none, and no more often than the number of workers changes.
	c := alone(nobody)
	list := []jobs.Move{{Rank: 0}, {Rank: 2}}
	if _, err := c.p.Resize(c.now, jobtest.Node(9), &wire.Resize{Job: c.p.Rec.ID, Resize: jobs.Resize{Move: list}}); err == nil || len(c.step()) > 0 {
		t.Errorf("one of two cannot: %v", err)
	}
	for n := range resizeBurst {
		if err := c.moves(0, 3+n%3); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.moves(0, 6); !errors.Is(err, jobs.ErrRefused) || !strings.Contains(err.Error(), "too often") {
		t.Errorf("once more: %v", err)
	}
	if err := c.moves(0, -1); err != nil {
		t.Errorf("nothing new: %v", err)
	}
}
