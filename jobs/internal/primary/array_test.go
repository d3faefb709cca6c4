package primary

import (
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// arrayOf is an array of n tasks with at most two workers.
func arrayOf(n int) jobs.Spec {
	return jobs.Spec{Min: 1, Max: 2, Array: &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: n, Step: 1}}}}
}

// tasks reports what a worker of node n did: the tasks that it has got, and
// results of some of them.
func (c *talk) tasks(n int, ra jobs.RankAttempt, added, from int, rs ...process.TaskResult) *wire.WorkerTasksAck {
	rep := wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: ra, State: jobs.WorkerRunning,
		Tasks: &wire.WorkerTasks{From: from, Added: added, Ended: from + len(rs), Results: wire.PackResults(rs)}}}}
	var ack wire.Ack
	c.p.Reported(c.now, jobtest.Node(n), rep, map[jobs.RankAttempt]wire.Written{ra: {}}, 0)
	for _, e := range c.step() {
		if a, ok := e.(DoAnswer); ok {
			ack = a.Ack
		}
	}
	return ack.Workers[0].Tasks
}

// taskless reports that a worker has ended after so many tasks.
func (c *talk) taskless(n int, ra jobs.RankAttempt, ended, code int) {
	rep := wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: ra, State: jobs.WorkerEnded,
		Exit: &work.Exit{Code: code, Cause: work.Exited}, Tasks: &wire.WorkerTasks{From: ended, Added: ended, Ended: ended}}}}
	c.p.Reported(c.now, jobtest.Node(n), rep, map[jobs.RankAttempt]wire.Written{ra: {}}, 0)
	c.step()
}

func (c *talk) want(got *wire.WorkerTasksAck, results, before int, last bool, places ...int) {
	c.t.Helper()
	var have []int
	for _, r := range got.Ranges {
		for i := range r.Count {
			have = append(have, r.From+i)
		}
	}
	if got.Results != results || got.Before != before || got.Last != last || len(have) != len(places) {
		c.t.Fatalf("acknowledged with %+v, want %d results, then from %d on %v, last %t", got, results, before, places, last)
	}
	for i := range places {
		if have[i] != places[i] {
			c.t.Fatalf("leased %v, want %v", have, places)
		}
	}
}

func did(place, code int) process.TaskResult {
	return process.TaskResult{Place: place, Code: code, Took: time.Second}
}

func TestArrayGivesTasksToWhoNeedsThem(t *testing.T) {
	c := running(t, arrayOf(4))
	first, second := wiretest.RA(0, 1), wiretest.RA(1, 1)
	c.want(c.tasks(1, first, 0, 0), 0, 0, false, 0)
	c.want(c.tasks(1, first, 0, 0), 0, 0, false, 0) // the answer was lost
	c.want(c.tasks(1, second, 0, 0), 0, 0, false, 1)
	c.want(c.tasks(1, first, 1, 0, did(0, 0)), 1, 1, false, 2)
	c.want(c.tasks(1, first, 1, 0, did(0, 9)), 1, 1, false, 2) // it counted already
	c.want(c.tasks(1, first, 2, 1, did(2, 5)), 2, 2, false, 3)
	c.want(c.tasks(1, second, 1, 0, did(1, 0)), 1, 1, true)
	c.taskless(1, second, 1, 0)
	c.state(jobs.Running, -1)
	c.want(c.tasks(1, first, 3, 2, did(3, 0)), 3, 3, true)
	c.state(jobs.Running, -1)
	c.taskless(1, first, 3, 0)
	c.state(jobs.Failed, 5)
	if st := c.p.Status(); st.Reason != "1 of 4 tasks failed, task 3 with 5" || *st.Array != (jobs.ArrayStatus{Tasks: 4, Done: 4, Failed: 1}) {
		t.Errorf("%q, %+v", st.Reason, st.Array)
	}
	page := c.p.TaskPage(jobs.TaskQuery{Failed: true})
	if len(page.Tasks) != 1 || page.Tasks[0].ID != 3 || page.Tasks[0].Code != 5 || page.Next != 0 {
		t.Errorf("%+v", page)
	}
	if page := c.p.TaskPage(jobs.TaskQuery{From: 1, Limit: 2}); len(page.Tasks) != 2 || page.Tasks[0].ID != 2 || page.Next != 3 {
		t.Errorf("%+v", page)
	}
}

func TestArrayTriesTasksAgain(t *testing.T) {
	spec := arrayOf(1)
	spec.Max, spec.Retries = 1, 1
	c := running(t, spec)
	c.want(c.tasks(1, wiretest.RA(0, 1), 0, 0), 0, 0, false, 0)
	c.want(c.tasks(1, wiretest.RA(0, 1), 1, 0, did(0, 4)), 1, 1, false, 0)
	c.want(c.tasks(1, wiretest.RA(0, 1), 2, 1, did(0, 0)), 2, 2, true)
	c.taskless(1, wiretest.RA(0, 1), 2, 0)
	c.state(jobs.Completed, 0)
}

func TestArrayStopsWhenTooManyFail(t *testing.T) {
	spec := arrayOf(100)
	spec.MaxFails = 1
	c := running(t, spec)
	c.tasks(1, wiretest.RA(0, 1), 0, 0)
	c.tasks(1, wiretest.RA(1, 1), 0, 0)
	c.tasks(1, wiretest.RA(0, 1), 1, 0, did(0, 2))
	ack := c.tasks(1, wiretest.RA(1, 1), 1, 0, did(1, 3))
	c.want(ack, 1, 1, false)
	for i := range 2 {
		rep := wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(i, 1), State: jobs.WorkerEnded,
			Exit: &work.Exit{Code: 143, Cause: work.Stopped}, Tasks: &wire.WorkerTasks{From: 1, Added: 2, Ended: 1}}}}
		c.p.Reported(c.now, jobtest.Node(1), rep, nil, 0)
	}
	c.state(jobs.Failed, 3)
	if r := c.p.Status().Reason; !strings.Contains(r, "98 were not done") {
		t.Errorf("the reason is %q", r)
	}
}

// What a lost worker had to do is done by others; what it had done counts, with
// its files, which came with it.
func TestArrayOutlivesAWorker(t *testing.T) {
	spec := arrayOf(3)
	spec.Outputs = []string{"*"}
	c := running(t, spec)
	c.tasks(1, wiretest.RA(0, 1), 0, 0)
	c.tasks(1, wiretest.RA(0, 1), 1, 0, did(0, 0))
	c.tasks(1, wiretest.RA(1, 1), 0, 0)
	c.p.MemberGone(c.now, jobtest.Node(1))
	c.after(wire.PartLease)
	c.step()
	if st, want := c.p.Status(), (jobs.ArrayStatus{Tasks: 3, Done: 1, Left: 2}); *st.Array != want || c.p.Rec.Wanted() != 2 {
		t.Errorf("%+v, %d wanted, want %+v, 2", st.Array, c.p.Rec.Wanted(), want)
	}
}

// What a worker did last may come after the news of its end, and counts.
func TestArrayAwaitsTheResultsOfAWorkerThatHasEnded(t *testing.T) {
	spec := arrayOf(2)
	spec.Max = 1
	c := running(t, spec)
	c.tasks(1, wiretest.RA(0, 1), 0, 0)
	c.want(c.tasks(1, wiretest.RA(0, 1), 1, 0, did(0, 0)), 1, 1, false, 1)
	c.taskless(1, wiretest.RA(0, 1), 2, 0)
	c.state(jobs.Running, -1)
	if w := c.p.Status().Workers[0]; w.Attempt != 1 || w.State != jobs.WorkerRunning {
		t.Errorf("attempt %d is %s, because %q", w.Attempt, w.State, w.Retried)
	}
	c.want(c.tasks(1, wiretest.RA(0, 1), 2, 1, did(1, 0)), 2, 2, true)
	c.taskless(1, wiretest.RA(0, 1), 2, 0)
	c.state(jobs.Completed, 0)
}

// A worker that ends with tasks undone is replaced, but not for ever.
func TestArrayGivesUpWhenWorkersBreak(t *testing.T) {
	spec := arrayOf(1)
	spec.Max = 1
	c := running(t, spec)
	for n := 1; n <= maxBroken+1; n++ {
		c.state(jobs.Running, -1)
		c.tasks(n, wiretest.RA(0, n), 0, 0)
		c.taskless(n, wiretest.RA(0, n), 0, 125)
		if n <= maxBroken {
			c.offerAgain(n, 1)
			c.after(search.MaxNearerWait)
			c.after(search.MaxNearerWait)
			if g := only[DoGrant](c); len(g) > 0 {
				t.Fatalf("granted %+v, where the worker broke", g)
			}
			c.offer(n+1, 1)
			c.after(search.MaxNearerWait)
			c.step()
			c.report(n+1, jobs.WorkerReady, 0, wiretest.RA(0, n+1))
		}
	}
	c.state(jobs.Failed, 125)
	if r := c.p.Status().Reason; !strings.Contains(r, "before its tasks were done") {
		t.Errorf("the reason is %q", r)
	}
}

// The record of an array is what its events say.
func TestArrayIsReplayed(t *testing.T) {
	c := running(t, arrayOf(50))
	c.tasks(1, wiretest.RA(0, 1), 0, 0)
	c.tasks(1, wiretest.RA(1, 1), 0, 0)
	c.tasks(1, wiretest.RA(0, 1), 1, 0, did(0, 3))
	again := record.Record{ID: c.p.Rec.ID}
	for _, ev := range c.log {
		var read record.Event
		if err := codec.Unmarshal(codec.MustMarshal(ev), &read); err != nil {
			t.Fatal(err)
		}
		if !read.Sound(&again) {
			t.Fatalf("%+v is not sound", read)
		}
		again.Apply(read)
	}
	if got, want := *again.Tasks.Status(), *c.p.Rec.Tasks.Status(); got != want || got.Failed != 1 || got.Running != 2 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// What tasks left and nobody has asked for is counted once each, and one warning names it.
func TestArrayReportsWhatTasksLeft(t *testing.T) {
	c := running(t, arrayOf(3))
	first, second := wiretest.RA(0, 1), wiretest.RA(1, 1)
	c.tasks(1, first, 0, 0)
	c.tasks(1, second, 0, 0)
	end := func(ra jobs.RankAttempt, ended int, left *work.Left) {
		rep := wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: ra, State: jobs.WorkerEnded,
			Exit: &work.Exit{Cause: work.Exited, Left: left}, Tasks: &wire.WorkerTasks{From: ended, Added: ended, Ended: ended}}}}
		for range 2 { // the answer was lost
			c.p.Reported(c.now, jobtest.Node(1), rep, map[jobs.RankAttempt]wire.Written{ra: {}}, 0)
			c.step()
		}
	}
	c.tasks(1, first, 1, 0, did(0, 0))
	c.tasks(1, second, 1, 0, did(1, 0))
	end(second, 1, &work.Left{Tasks: 1, Task: 2, Name: "result.txt"})
	filed := did(2, 0)
	filed.Files = 70
	rep := wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: first, State: jobs.WorkerRunning,
		Tasks: &wire.WorkerTasks{From: 1, Added: 2, Ended: 2, Results: wire.PackResults([]process.TaskResult{filed})}}}}
	c.p.Reported(c.now, jobtest.Node(1), rep, map[jobs.RankAttempt]wire.Written{first: {Stderr: 70}}, 0)
	c.step()
	if st := c.p.Status(); len(st.Warnings) > 0 {
		t.Errorf("before the end it warns %q", st.Warnings)
	}
	end(first, 2, &work.Left{Tasks: 1, Task: 3, Name: "other"})
	c.state(jobs.Completed, 0)
	st := c.p.Status()
	if len(st.Warnings) != 1 || st.Warnings[0] != "2 tasks left files that no -o names and that were removed, such as result.txt of task 2" {
		t.Errorf("it warns %q", st.Warnings)
	}
	if *st.Array != (jobs.ArrayStatus{Tasks: 3, Done: 3, Filed: 1}) {
		t.Errorf("%+v", st.Array)
	}
}
