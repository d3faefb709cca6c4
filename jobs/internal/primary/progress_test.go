package primary

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/docs/tables"
	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/work"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// granted is a gang of two at two nodes, of which the first is ready.
func granted(t *testing.T, spec jobs.Spec) *talk {
	spec.Min, spec.Max = 2, 2
	c := newTalk(t, spec)
	c.offer(1, 1)
	c.offer(2, 1)
	c.after(search.MaxNearerWait)
	c.step()
	c.report(1, jobs.WorkerReady, 0, wiretest.RA(0, 1))
	return c
}

// says has node 2 tell of its rank, after what was done to the report.
func (c *talk) says(ra jobs.RankAttempt, state jobs.WorkerState, change func(*wire.WorkerReport)) wire.WorkerAck {
	c.t.Helper()
	w := wire.WorkerReport{RankAttempt: ra, State: state}
	if change != nil {
		change(&w)
	}
	c.p.Reported(c.now, jobtest.Node(2), wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{w}}, nil, 0)
	for _, e := range c.step() {
		if a, ok := e.(DoAnswer); ok && len(a.Ack.Workers) == 1 {
			return a.Ack.Workers[0]
		}
	}
	return wire.WorkerAck{}
}

// lasts lets time pass while node 1 is ready, and node 2 tells of its first attempt.
func (c *talk) lasts(d time.Duration, state jobs.WorkerState, change func(*wire.WorkerReport)) {
	c.t.Helper()
	for end := c.now.Add(d); c.now.Before(end); {
		c.after(wire.ReportEvery)
		c.report(1, c.p.Rec.Ranks[0].State, 0, wiretest.RA(0, 1))
		c.says(wiretest.RA(1, 1), state, change)
	}
}

func (c *talk) warned(text string) bool {
	return slices.ContainsFunc(c.p.Rec.Warnings, func(w string) bool { return strings.Contains(w, text) })
}

const mayHang = "no progress for 1m0s: its disk or program may hang"

func wantRow(t *testing.T, name, reason string) {
	t.Helper()
	if err := tables.Check("../../../docs/exit-codes.md", name, tables.Seen{Reason: reason}); err != nil {
		t.Error(err)
	}
}

// A node that reports and gets nowhere is given up, named and avoided; one that gets on is not.
func TestNodeThatGetsNowhereIsGivenUp(t *testing.T) {
	c := granted(t, jobs.Spec{})
	c.lasts(noProgress-2*wire.ReportEvery, jobs.WorkerPreparing, nil)
	c.state(jobs.Staging, -1)
	c.lasts(3*wire.ReportEvery, jobs.WorkerPreparing, nil)
	c.state(jobs.Pending, -1)
	who := jobs.Label("n", jobtest.Node(2))
	if k := c.p.Rec.Ranks[1]; k.Attempt != 1 || !strings.Contains(k.Retried, who+": "+mayHang) || !c.warned("rank 1 placed again: node "+who+": "+mayHang) {
		t.Errorf("%+v; warnings %q", k, c.p.Rec.Warnings)
	}
	wantRow(t, "no progress for …: its disk or program may hang", c.p.Search.Answers[jobtest.Node(2)].Reason)
	if n := c.p.Rec.Retries + c.p.Rec.Ranks[1].Retries; n != 0 {
		t.Errorf("%d retries are used up", n)
	}
	if c.p.patience(jobtest.Node(2), c.now, time.Time{}) != 2*noProgress || c.p.patience(jobtest.Node(1), c.now, time.Time{}) != noProgress {
		t.Error("a node that may only be slow is not given more time the next time")
	}
}

func TestNodesThatGetOnAreNotGivenUp(t *testing.T) {
	steps := int64(0)
	for what, change := range map[string]func(*wire.WorkerReport){
		"bytes": func(w *wire.WorkerReport) { steps++; w.Fetched = steps },
		"files": func(w *wire.WorkerReport) { steps++; w.Laid = steps },
	} {
		c := granted(t, jobs.Spec{})
		c.p.Staged.Total = 1 << 40
		if c.lasts(10*noProgress, jobs.WorkerPreparing, change); c.p.Rec.State != jobs.Staging {
			t.Errorf("%s are told of, and the job is %s: %q", what, c.p.Rec.State, c.p.Rec.Warnings)
		}
	}
	c := granted(t, jobs.Spec{}) // whose origin is paused meanwhile
	c.now = c.now.Add(5 * noProgress)
	c.p.Stalled(c.now)
	if c.lasts(noProgress-2*wire.ReportEvery, jobs.WorkerPreparing, nil); c.p.Rec.State != jobs.Staging {
		t.Errorf("after a pause of its origin the job is %s: %q", c.p.Rec.State, c.p.Rec.Warnings)
	}
	c = newTalk(t, jobs.Spec{Min: 1, Max: 1}) // nobody else could
	c.p.Members = func() int { return 2 }
	c.p.Search.Answered(c.now, vicinity.Member{ID: jobtest.Node(0)}, 1, wire.Answer{Job: c.p.Rec.ID, Reason: wire.ReasonWhere}, false)
	c.offer(2, 1)
	c.after(search.MaxNearerWait)
	c.step()
	for range 5 * int(noProgress/wire.ReportEvery) {
		c.after(wire.ReportEvery)
		c.says(wiretest.RA(0, 1), jobs.WorkerPreparing, nil)
	}
	c.state(jobs.Staging, -1)
}

// A worker that was to begin, and never does, runs elsewhere.
func TestWorkerThatDoesNotBeginRunsElsewhere(t *testing.T) {
	c := granted(t, jobs.Spec{})
	c.says(wiretest.RA(1, 1), jobs.WorkerReady, nil)
	c.state(jobs.Running, -1)
	c.lasts(noProgress+2*wire.ReportEvery, jobs.WorkerReady, nil)
	if k := c.p.Rec.Ranks[1]; !strings.Contains(k.Retried, mayHang) || c.p.Rec.Retries != 0 || !c.p.Rec.Started.IsZero() && c.p.Rec.Ranks[1].State != jobs.WorkerWanted {
		t.Errorf("%+v, %d retries", k, c.p.Rec.Retries)
	}
}

// With --give-up a job is placed elsewhere before it fails.
func TestGivingUpTriesElsewhereFirst(t *testing.T) {
	c := granted(t, jobs.Spec{GiveUp: codec.Duration(20 * time.Second)})
	c.lasts(11*time.Second, jobs.WorkerPreparing, nil)
	c.state(jobs.Pending, -1)
	for c.p.Rec.Wanted() > 0 && c.p.Rec.State == jobs.Pending {
		c.after(time.Second)
		c.step()
		c.offerAgain(1, 1)
		c.offerAgain(3, 1)
		c.after(search.MaxNearerWait)
	}
	for _, g := range only[DoGrant](c) {
		if c.report(nodeNumber(g.To), jobs.WorkerReady, 0, g.Grant.Ranks...); nodeNumber(g.To) == 2 {
			t.Error("the node that got nowhere has it again")
		}
	}
	c.state(jobs.Running, -1)
}

// A node that does not end a rank at its walltime is not waited for.
func TestWalltimeIsTheOriginsAffairToo(t *testing.T) {
	const wall = time.Minute
	begin := func() *talk {
		c := granted(t, jobs.Spec{Walltime: codec.Duration(wall), Failing: jobs.Failing{KillOnBadExit: kill(false)}})
		c.says(wiretest.RA(1, 1), jobs.WorkerReady, nil)
		c.says(wiretest.RA(1, 1), jobs.WorkerRunning, nil)
		return c
	}
	c := begin()
	c.report(1, jobs.WorkerEnded, 0, wiretest.RA(0, 1))
	c.lasts(wall+overtime-2*wire.ReportEvery, jobs.WorkerRunning, nil)
	c.state(jobs.Running, -1)
	c.lasts(3*wire.ReportEvery, jobs.WorkerRunning, nil)
	c.state(jobs.Timeout, jobs.CodeTimeout)
	if !c.warned("did not end it at its walltime") {
		t.Errorf("warnings: %q", c.p.Rec.Warnings)
	}

	c = begin() // the other one goes on, and this one is let go of
	c.p.Rec.Spec.Walltime = codec.Duration(wall)
	c.lasts(wall, jobs.WorkerRunning, func(w *wire.WorkerReport) {})
	c.p.runs[0] = run{}
	c.lasts(overtime+wire.ReportEvery, jobs.WorkerRunning, nil)
	if a := c.says(wiretest.RA(1, 1), jobs.WorkerRunning, nil); !a.Drop || a.Done {
		t.Errorf("told %+v, want that it is dropped", a)
	}

	c = begin() // what it has left is still being stored
	c.report(1, jobs.WorkerEnded, 0, wiretest.RA(0, 1))
	c.lasts(wall, jobs.WorkerRunning, nil)
	c.lasts(storing/2, jobs.WorkerRunning, func(w *wire.WorkerReport) { w.Storing = true })
	c.state(jobs.Running, -1)
	c.lasts(storing, jobs.WorkerRunning, func(w *wire.WorkerReport) { w.Storing = true })
	c.state(jobs.Timeout, jobs.CodeTimeout)

	c = begin() // this node heard nobody meanwhile
	c.report(1, jobs.WorkerEnded, 0, wiretest.RA(0, 1))
	c.now = c.now.Add(10 * wall)
	c.p.Stalled(c.now)
	c.lasts(overtime-2*wire.ReportEvery, jobs.WorkerRunning, nil)
	c.state(jobs.Running, -1)
}

// Files of which nothing comes, though their node lives, are lost.
func TestFilesThatDoNotComeAreLost(t *testing.T) {
	ended := func(w *wire.WorkerReport) {
		w.Exit = &work.Exit{Cause: work.Exited}
		w.Output = &jobs.RankOutput{Rank: 1, Attempt: 1, Manifest: transfer.HashOf([]byte("x")), Files: 1, Bytes: 9}
	}
	for _, test := range []struct {
		why  error
		want jobs.State
	}{
		{fmt.Errorf("fetch: %w", transfer.ErrNoHolder), jobs.NodeFail},
		{errors.New("the disk here is full"), jobs.Collecting},
	} {
		c := granted(t, jobs.Spec{})
		c.says(wiretest.RA(1, 1), jobs.WorkerReady, nil)
		c.report(1, jobs.WorkerEnded, 0, wiretest.RA(0, 1))
		c.says(wiretest.RA(1, 1), jobs.WorkerEnded, ended)
		for end := c.now.Add(fetchFor); c.now.Before(end); {
			c.state(jobs.Collecting, -1)
			c.after(time.Second)
			c.p.Collected(c.now, wiretest.RA(1, 1), test.why)
			c.says(wiretest.RA(1, 1), jobs.WorkerEnded, ended)
		}
		if c.p.Rec.State != test.want {
			t.Errorf("%v: the job is %s: %s", test.why, c.p.Rec.State, c.p.Rec.Reason)
		}
	}
}
