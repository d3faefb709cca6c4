package primary

import (
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/work"
)

// A job that is cancelled ends when what runs has, and its output and files are here. Nothing
// is tried again, and the ranks that did not fail count no less.
func TestCancelKeepsOutput(t *testing.T) {
	for name, spec := range map[string]jobs.Spec{
		"rigid": {Min: 2, Max: 2, Failing: jobs.Failing{Retries: 3}, Outputs: []string{"out"}}, "malleable": {Min: 1, Max: 2, Failing: jobs.Failing{Retries: 3}, Outputs: []string{"out"}},
	} {
		c := running(t, spec)
		first, second := c.p.Rec.Ranks[0].Node, c.p.Rec.Ranks[1].Node
		c.p.Cancel(c.now, "cancelled by a user", false)
		stopped := 0
		for _, r := range only[DoRelease](c) {
			if r.Release.Stop {
				stopped += len(r.Release.Ranks)
			}
		}
		if stopped != 2 || c.p.Rec.State != jobs.Running || c.p.Wake().IsZero() {
			t.Fatalf("%s: %d ranks are stopped, it is %s", name, stopped, c.p.Rec.State)
		}
		c.p.Cancel(c.now, "again", false)
		if c.step(); !strings.Contains(c.p.Status().Reason, "cancelled by a user") {
			t.Errorf("%s: the reason is %q", name, c.p.Status().Reason)
		}
		rep := func(rank, code int, cause work.Cause) wire.Report {
			return wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(rank, 1), State: jobs.WorkerEnded, Stdout: 5,
				Exit: &work.Exit{Code: code, Cause: cause}, Output: &jobs.RankOutput{Rank: rank, Attempt: 1}}}}
		}
		got := map[jobs.RankAttempt]wire.Written{wiretest.RA(0, 1): {Stdout: 5}, wiretest.RA(1, 1): {Stdout: 5}}
		c.p.Reported(c.now, first, rep(0, 7, work.Exited), nil, 0) // its last output is still to come
		if c.step(); c.p.Rec.Ranks[0].State != jobs.WorkerRunning {
			t.Fatalf("%s: rank 0 is %s", name, c.p.Rec.Ranks[0].State)
		}
		c.p.Reported(c.now, first, rep(0, 7, work.Exited), got, 0)
		c.p.Reported(c.now, second, rep(1, 143, work.Stopped), got, 0)
		if f := only[DoCollect](c); len(f) != 2 {
			t.Fatalf("%s: fetches %+v", name, f)
		}
		c.state(jobs.Collecting, -1)
		c.p.Collected(c.now, wiretest.RA(0, 1), nil)
		c.p.Collected(c.now, wiretest.RA(1, 1), nil)
		c.step()
		c.state(jobs.Cancelled, jobs.CodeCancelled)
		if st := c.p.Status(); len(st.Outputs) != 2 || st.Reason != "cancelled by a user" {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// A node that is gone keeps a cancelled job no longer than its lease, and who does not want
// to wait ends it at once.
func TestCancelWithoutANode(t *testing.T) {
	c := running(t, jobs.Spec{Min: 2, Max: 2, Failing: jobs.Failing{Retries: 1}})
	c.p.Cancel(c.now, "cancelled by a user", false)
	c.after(2 * wire.PartLease)
	c.state(jobs.Cancelled, jobs.CodeCancelled)
	c = running(t, jobs.Spec{Min: 2, Max: 2})
	c.p.Cancel(c.now, "cancelled by a user", false)
	c.p.Cancel(c.now, "cancelled by a user", true)
	c.state(jobs.Cancelled, jobs.CodeCancelled)
}

// What was wanted before the origin was started again is still wanted.
func TestCancelOutlivesTheOrigin(t *testing.T) {
	c := running(t, jobs.Spec{Min: 1, Max: 1})
	c.p.Cancel(c.now, "cancelled by a user", false)
	c.step()
	c = c.restarted(time.Second)
	c.exits(1, wiretest.RA(0, 1), 143, work.Stopped)
	c.state(jobs.Cancelled, jobs.CodeCancelled)
}

// Programs hear of their end before when what they make until then may be wanted: not in a job that fails.
func TestWhoHearsOfTheEnd(t *testing.T) {
	rigid := func() *talk { return running(t, jobs.Spec{Min: 4, Max: 4}) }
	cancel := func(c *talk) []DoRelease {
		c.p.Cancel(c.now, "cancelled by a user", false)
		return only[DoRelease](c)
	}
	fail := func(c *talk) []DoRelease { return releases(c.exits(1, wiretest.RA(1, 1), 3, work.Exited)) }
	for name, s := range map[string]struct {
		c      *talk
		events func(c *talk) []DoRelease
		node   int
		last   jobs.RankAttempt
		hears  bool
	}{
		"cancelled":        {rigid(), cancel, 2, wiretest.RA(3, 1), true},
		"fails":            {rigid(), fail, 2, wiretest.RA(3, 1), false},
		"cancelled, fails": {rigid(), func(c *talk) []DoRelease { return append(cancel(c), fail(c)...) }, 2, wiretest.RA(3, 1), true},
		"released": {crowd(t, 1, 3, 3), func(c *talk) []DoRelease {
			if _, err := c.wants(2); err != nil {
				t.Fatal(err)
			}
			return only[DoRelease](c)
		}, 3, wiretest.RA(2, 1), true},
	} {
		told := s.events(s.c)
		if len(told) == 0 {
			t.Errorf("%s: nobody is told", name)
		}
		for _, r := range told {
			if !r.Release.Stop || r.Release.Notice != s.hears {
				t.Errorf("%s: told %+v", name, r.Release)
			}
		}
		if a := s.c.report(s.node, jobs.WorkerRunning, 0, s.last).Workers[0]; !a.Stop || a.Notice != s.hears {
			t.Errorf("%s: answered with %+v", name, a)
		}
	}
}
