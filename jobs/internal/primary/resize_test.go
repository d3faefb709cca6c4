package primary

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/work"
)

// wants asks for so many workers, for rank 0 at node 1.
func (c *talk) wants(workers int, release ...int) (jobs.Size, error) {
	return c.p.Resize(c.now, jobtest.Node(1), &wire.Resize{Job: c.p.Rec.ID, By: wiretest.RA(0, 1), Resize: jobs.Resize{Workers: workers, Release: release}})
}

func (c *talk) sized(size jobs.Size, err error) func(want jobs.Size) {
	return func(want jobs.Size) {
		c.t.Helper()
		if err != nil || size != want {
			c.t.Fatalf("got %+v, %v, want %+v", size, err, want)
		}
	}
}

// crowd is a malleable job whose rank n runs at node n+1.
func crowd(t *testing.T, least, most, running int) *talk {
	t.Helper()
	c := newTalk(t, jobs.Spec{Min: least, Max: most, Outputs: []string{"out-*"}})
	for n := range least {
		c.offer(n+1, 1)
	}
	c.after(search.MaxNearerWait)
	for n := range least {
		c.report(n+1, jobs.WorkerReady, 0, wiretest.RA(n, 1))
	}
	for n := least; n < running; n++ {
		c.joins(n+1, wiretest.RA(n, 1))
	}
	return c
}

// joins has a rank granted to a node, and started.
func (c *talk) joins(node int, ra jobs.RankAttempt) {
	c.t.Helper()
	c.offer(node, 1)
	c.after(search.MaxNearerWait)
	c.report(node, jobs.WorkerReady, 0, ra)
	if k := c.p.Rec.Ranks[ra.Rank]; k.State != jobs.WorkerRunning || k.Attempt != ra.Attempt {
		c.t.Fatalf("%v: %+v", ra, k)
	}
}

// givenBack reports that a rank has ended since it was told to.
func (c *talk) givenBack(node int, ra jobs.RankAttempt, files bool) wire.Ack {
	w := wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerEnded, Exit: &work.Exit{Code: 143, Cause: work.Stopped}}
	if files {
		w.Output = &jobs.RankOutput{Rank: ra.Rank, Attempt: ra.Attempt, Manifest: wiretest.GoldenSpec().Inputs, Files: 1, Bytes: 5}
	}
	c.p.Reported(c.now, jobtest.Node(node), wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{w}}, map[jobs.RankAttempt]wire.Written{ra: {}}, 0)
	var ack wire.Ack
	for _, e := range c.step() {
		if a, ok := e.(DoAnswer); ok {
			ack = a.Ack
		}
	}
	return ack
}

func TestFewerWorkersAreGivenBack(t *testing.T) {
	c := crowd(t, 2, 6, 5)
	c.report(3, jobs.WorkerRunning, 0, wiretest.RA(2, 1))
	epoch := c.p.Rec.Epoch
	c.sized(c.wants(3, 1))(jobs.Size{Wanted: 3, Have: 3, Min: 2, Max: 6})
	releases := only[DoRelease](c)
	if len(releases) != 2 || !releases[0].Release.Stop || releases[0].Release.Ranks[0] != wiretest.RA(1, 1) || releases[1].Release.Ranks[0] != wiretest.RA(4, 1) {
		t.Fatalf("released %+v, want the named rank and the highest", releases)
	}
	if c.p.Rec.Epoch != epoch+1 || len(c.p.table.of(&c.p.Rec)) != 3 {
		t.Fatalf("epoch %d after %d, hosts %+v", c.p.Rec.Epoch, epoch, c.p.table.of(&c.p.Rec))
	}
	if st := c.p.Status(); st.Asked != 3 || st.Reason != "runs with 3 workers; 3 were asked for" {
		t.Fatalf("status: %d, %q", st.Asked, st.Reason)
	}
	// The message may be lost: the answer says the same.
	if ack := c.report(5, jobs.WorkerRunning, 0, wiretest.RA(4, 1)); !ack.Workers[0].Stop || ack.Workers[0].Drop {
		t.Fatalf("got %+v", ack)
	}
	// One ends as it is told, and leaves files, another one fails meanwhile: neither is a failure.
	if ack := c.givenBack(5, wiretest.RA(4, 1), true); ack.Workers[0].Done {
		t.Fatalf("got %+v before its files are here", ack)
	}
	if st := c.p.Status(); st.Workers[4].State != jobs.WorkerStopped || st.Workers[4].Exit == nil {
		t.Fatalf("it is shown as %+v", st.Workers[4])
	} else if n := st.Summary().Count; n.All != 4 || n.Active != 4 || n.Ended != 0 { // rank 1 is being ended
		t.Fatalf("counted as %+v", n)
	}
	c.p.Collected(c.now, wiretest.RA(4, 1), nil)
	c.report(2, jobs.WorkerEnded, 9, wiretest.RA(1, 1))
	c.state(jobs.Running, -1)
	c.after(3 * time.Second)
	if f := only[DoFlood](c); len(f) > 0 || c.p.Rec.Wanted() != 0 {
		t.Fatalf("looks for %d workers: %+v", c.p.Rec.Wanted(), f)
	}
	for n, ra := range []jobs.RankAttempt{wiretest.RA(0, 1), wiretest.RA(2, 1), wiretest.RA(3, 1)} {
		c.report([]int{1, 3, 4}[n], jobs.WorkerEnded, 0, ra)
	}
	c.state(jobs.Completed, 0)
	if st := c.p.Status(); len(st.Outputs) != 1 || st.Outputs[0].Rank != 4 {
		t.Fatalf("outputs: %+v", st.Outputs)
	}
}

func TestMoreWorkersAreLookedFor(t *testing.T) {
	c := crowd(t, 1, 4, 4)
	c.sized(c.wants(2))(jobs.Size{Wanted: 2, Have: 2, Min: 1, Max: 4})
	c.givenBack(4, wiretest.RA(3, 1), true)
	c.p.Collected(c.now, wiretest.RA(3, 1), nil)
	c.step()
	c.sized(c.wants(4))(jobs.Size{Wanted: 4, Have: 2, Min: 1, Max: 4})
	if f := only[DoFlood](c); len(f) != 1 || f[0].Ad.Wanted != 1 {
		t.Fatalf("flooded %+v, want a call for the one number that is free", f)
	}
	c.joins(6, wiretest.RA(3, 2))
	if n := c.p.Rec.Wanted(); n != 0 || c.p.size().Have != 3 {
		t.Fatalf("wants %d while rank 2 is being ended: %+v", n, c.p.size())
	}
	c.p.MemberGone(c.now, jobtest.Node(3)) // with rank 2: nobody misses it
	c.after(goneGrace)
	if n := c.p.Rec.Wanted(); n != 1 || c.p.Rec.Missing() != 0 {
		t.Fatalf("wants %d, misses %d", n, c.p.Rec.Missing())
	}
	c.after(time.Second)
	c.step()
	c.joins(7, wiretest.RA(2, 2))
	// What the first attempt of rank 3 left counts, too.
	for n, ra := range []jobs.RankAttempt{wiretest.RA(0, 1), wiretest.RA(1, 1), wiretest.RA(2, 2), wiretest.RA(3, 2)} {
		c.report([]int{1, 2, 7, 6}[n], jobs.WorkerEnded, 0, ra)
	}
	c.state(jobs.Completed, 0)
	if st := c.p.Status(); len(st.Outputs) != 1 || st.Outputs[0] != *c.p.Rec.Kept[0].Output || !c.p.Rec.CountsOutput(wiretest.RA(3, 1)) || c.p.Rec.CountsOutput(wiretest.RA(2, 1)) {
		t.Fatalf("outputs: %+v, kept %+v", st.Outputs, c.p.Rec.Kept)
	}
}

func TestRanksThatHaveNotStartedAreGivenBack(t *testing.T) {
	c := crowd(t, 1, 4, 2)
	c.offer(3, 1)
	c.after(search.MaxNearerWait)
	c.p.MemberGone(c.now, jobtest.Node(2)) // rank 1 is lost, rank 2 prepares
	c.after(goneGrace)
	c.step()
	c.sized(c.wants(0, 2, 1, 1))(jobs.Size{Wanted: 1, Have: 1, Min: 1, Max: 4})
	if r := only[DoRelease](c); len(r) != 1 || r[0].To != jobtest.Node(3) || r[0].Release.Stop {
		t.Fatalf("released %+v", r)
	}
	if ack := c.report(3, jobs.WorkerReady, 0, wiretest.RA(2, 1)); !ack.Workers[0].Drop || ack.Start != nil {
		t.Fatalf("got %+v", ack)
	}
	// Who is gone is not given back again.
	c.sized(c.wants(0, 2))(jobs.Size{Wanted: 1, Have: 1, Min: 1, Max: 4})
	c.report(1, jobs.WorkerEnded, 0, wiretest.RA(0, 1))
	c.state(jobs.Completed, 0)
}

func TestGivenBackThatDidNotBegin(t *testing.T) {
	c := crowd(t, 1, 3, 3)
	c.sized(c.wants(2))(jobs.Size{Wanted: 2, Have: 2, Min: 1, Max: 3})
	c.p.Reported(c.now, jobtest.Node(3), wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(2, 1), State: jobs.WorkerLost, Declined: true, Reason: "x"}}}, nil, 0)
	if c.p.Rec.Missing() != 0 || c.p.Rec.Wanted() != 0 || len(c.p.Rec.Warnings) > 0 {
		t.Fatalf("misses %d, wants %d, warns %q", c.p.Rec.Missing(), c.p.Rec.Wanted(), c.p.Rec.Warnings)
	}
}

// The number is part of the record, so that a restarted origin keeps it.
func TestNumberOfWorkersIsReplayed(t *testing.T) {
	c := crowd(t, 1, 6, 4)
	c.sized(c.wants(2))(jobs.Size{Wanted: 2, Have: 2, Min: 1, Max: 6})
	c.givenBack(4, wiretest.RA(3, 1), false)
	c.step()
	again := newTalk(t, c.p.Rec.Spec)
	again.p.Rec = record.Record{ID: c.p.Rec.ID, Origin: c.p.Rec.Origin}
	for _, ev := range c.log {
		if !ev.Sound(&again.p.Rec) {
			t.Fatalf("%+v is not sound", ev)
		}
		again.p.Rec.Apply(ev)
	}
	again.now = c.now
	again.p.Resume(again.now)
	again.sized(again.wants(0))(jobs.Size{Wanted: 2, Have: 2, Min: 1, Max: 6})
	if ack := again.report(3, jobs.WorkerRunning, 0, wiretest.RA(2, 1)); !ack.Workers[0].Stop || again.p.Rec.Wanted() != 0 {
		t.Fatalf("got %+v, wants %d", ack, again.p.Rec.Wanted())
	}
	for _, size := range []int{-1, 7} {
		if ev := (record.Event{Kind: record.Resized, Sizing: record.Sizing{Size: size}}); ev.Sound(&again.p.Rec) {
			t.Errorf("a number of %d is sound", size)
		}
	}
}

func TestSizesThatAreRefused(t *testing.T) {
	spec := func(change func(*jobs.Spec)) *talk {
		s := jobs.Spec{Min: 2, Max: 2}
		change(&s)
		return newTalk(t, s)
	}
	started := func(c *talk) *talk {
		c.offer(1, 2)
		c.after(search.MaxNearerWait)
		c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1), wiretest.RA(1, 1))
		return c
	}
	given, ended, growing := crowd(t, 1, 4, 3), crowd(t, 1, 4, 3), crowd(t, 2, 4, 3)
	given.sized(given.wants(1, 0))(jobs.Size{Wanted: 1, Have: 1, Min: 1, Max: 4})
	ended.sized(ended.wants(3))(jobs.Size{Wanted: 3, Have: 3, Min: 1, Max: 4})
	ended.report(3, jobs.WorkerEnded, 0, wiretest.RA(2, 1))
	for text, q := range map[string]struct {
		c       *talk
		err     error
		workers int
		release []int
	}{
		"job aaaaa@zaaaa has 2 workers, no more and no fewer": {started(spec(func(*jobs.Spec) {})), jobs.ErrRefused, 3, nil},
		"is an array": {spec(func(s *jobs.Spec) {
			s.Min, s.Max, s.Array = 1, 9, &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: 9, Step: 1}}}
		}), jobs.ErrRefused, 1, nil},
		"rank 0 (attempt 1) is no worker of job aaaaa@zaaaa any more": {given, jobs.ErrRefused, 2, nil},
		"gets no more workers":                       {ended, jobs.ErrRefused, 4, nil},
		"1 workers: job aaaaa@zaaaa has 2 to 4 (-n)": {growing, jobs.ErrRange, 1, nil},
		"5 workers: job aaaaa@zaaaa has 2 to 4 (-n)": {growing, jobs.ErrRange, 5, nil},
		"1 workers: job":                             {growing, jobs.ErrRange, 0, []int{1, 2}},
		"rank 4: job aaaaa@zaaaa has ranks 0 to 3":   {growing, jobs.ErrRange, 2, []int{4}},
	} {
		by := wire.Resize{Job: q.c.p.Rec.ID, By: wiretest.RA(0, 1), Resize: jobs.Resize{Workers: q.workers, Release: q.release}}
		if q.c.p.Rec.Spec.Array != nil {
			by.By = jobs.RankAttempt{} // a user
		}
		q.c.step()
		_, err := q.c.p.Resize(q.c.now, jobtest.Node(1), &by)
		if !errors.Is(err, q.err) || !strings.Contains(fmt.Sprint(err), text) || len(q.c.step()) > 0 {
			t.Errorf("%v, want %q", err, text)
		}
	}
	if _, err := growing.p.Resize(growing.now, jobtest.Node(2), &wire.Resize{By: wiretest.RA(0, 1)}); !errors.Is(err, jobs.ErrRefused) {
		t.Errorf("a node asks for a worker of another one: %v", err)
	}
	growing.p.Cancel(growing.now, "", true)
	if _, err := growing.wants(3); !errors.Is(err, jobs.ErrNotRunning) {
		t.Errorf("after the end: %v", err)
	}
}

// Changes are written down: no program writes without end.
func TestSizesChangeSoOften(t *testing.T) {
	var p throttle
	now := jobtest.Start
	took := func(d time.Duration, want int) {
		t.Helper()
		now = now.Add(d)
		got := 0
		for p.allows(now) {
			got++
		}
		if got != want {
			t.Fatalf("%d after %v, want %d", got, d, want)
		}
	}
	took(0, resizeBurst)
	took(resizeEvery-1, 0)
	took(1, 1)
	took(3*resizeEvery+resizeEvery/2, 3)
	took(resizeEvery/2, 1)
	took(time.Hour, resizeBurst)
	took(-2*time.Hour, resizeBurst) // a clock that is set back blocks nothing
	c := crowd(t, 1, 4, 1)
	for n := range resizeBurst {
		if _, err := c.wants(2 + n%2); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.wants(4); !errors.Is(err, jobs.ErrRefused) || !strings.Contains(err.Error(), "too often") {
		t.Fatalf("once more: %v", err)
	}
	c.sized(c.wants(3))(jobs.Size{Wanted: 3, Have: 1, Min: 1, Max: 4}) // is in force
}
