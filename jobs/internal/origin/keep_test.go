package origin_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/seeds"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/journal"
)

func TestJobsThatHaveNotEndedComeFirst(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		runs := h.submit(jobs.Spec{Args: []string{"wait"}})
		waits := h.submit(jobs.Spec{Args: []string{"echo"}, After: []jobs.Dependency{{Kind: jobs.AfterAny, Job: runs}}})
		for range 3 {
			h.await(h.submit(jobs.Spec{Args: []string{"echo"}}))
			time.Sleep(time.Second)
		}
		list := h.List(-1)
		if len(list) != 5 || list[0].ID != waits || list[1].ID != runs {
			t.Fatalf("the list begins with %s, which is %s", list[0].ID, list[0].State)
		}
		for i, st := range list[2:] {
			if !st.State.Final() || i > 0 && st.Submitted.After(list[i+1].Submitted) {
				t.Errorf("job %d of those that ended is %s, submitted %v", i, st.State, st.Submitted)
			}
		}
		if err := h.Cancel(runs, "enough", true); err != nil {
			t.Fatal(err)
		}
		h.await(waits)
	})
}

// A burst leaves memory as its jobs end, though nobody submits another one.
func TestEndedJobsLeaveMemory(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		const burst = 800
		first := h.submit(jobs.Spec{Args: []string{"wait"}})
		for range burst {
			h.submit(jobs.Spec{Args: []string{"echo"}, After: []jobs.Dependency{{Kind: jobs.AfterOK, Job: first}}})
		}
		h.await(first, jobs.Running)
		if n := h.own.Whole(); n != burst+1 {
			t.Errorf("%d jobs are in memory before they end", n)
		}
		if err := h.Cancel(first, "enough", true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if r := h.Results(); r.Jobs != burst+1 {
			t.Errorf("%d have ended", r.Jobs)
		}
		if n := h.own.Whole(); n > 600 {
			t.Errorf("%d jobs are in memory, and all have ended", n)
		}
	})
}

// ended is the journal of a job that ended without a worker.
func ended(id jobs.ID, at time.Time, spec jobs.Spec, reason string) (list []journal.Entry) {
	for _, ev := range []record.Event{
		{Kind: record.Submitted, At: at, Spec: &spec, Stamp: jobs.Stamp(at.UnixMilli() << 16)},
		{Kind: record.Ended, At: at, State: jobs.Failed, Code: 3, Reason: reason},
	} {
		list = append(list, journal.Entry{Key: string(id), Data: codec.MustMarshal(ev)})
	}
	return list
}

// A node with very many jobs that have ended starts soon, needs little memory for
// each, and answers as one with few.
func TestManyEndedJobs(t *testing.T) {
	many := seeds.Fewer(20_000, 2_000)
	if n, err := strconv.Atoi(os.Getenv("ZORILLA_ENDED")); err == nil {
		many = n
	}
	atHome(t, func(t *testing.T, h *home) {
		used := func() (time.Duration, int64) {
			var r syscall.Rusage
			if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return time.Duration(r.Utime.Nano() + r.Stime.Nano()), int64(m.HeapAlloc)
		}
		rnd := rand.New(rand.NewPCG(1, 1))
		now := time.Now()
		var first jobs.ID
		done := make(chan error, many)
		for i := range many {
			id := jobs.NewID(rnd, h.self.ID)
			if i == 0 {
				first = id
			}
			spec := jobs.Spec{Args: []string{"/usr/bin/simulate", "--seed", strconv.Itoa(i)}, Min: 1, Max: 1, Slots: 1, Key: fmt.Sprintf("%032d", i)}
			h.log.Append(ended(id, now.Add(time.Duration(i)*time.Millisecond), spec, "rank 0 on node7 (zeb2a) ended with 3"), func(err error) { done <- err })
		}
		for range many {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		h.stop()
		took, before := used()
		h.start()
		after, heap := used()
		each := (heap - before) / int64(many)
		t.Logf("%d jobs: %v of CPU time to start, %d bytes of memory each", many, after-took, each)
		if r := h.Results(); r.Jobs < many*99/100 { // a few have the same ID
			t.Fatalf("%+v", r)
		}
		if whole := int64(500*8_000 + 1000*600); heap-before > int64(many)*48+whole {
			t.Errorf("%d bytes for each of %d jobs", each, many)
		}
		if list := h.List(jobs.ListEnded); len(list) != jobs.ListEnded {
			t.Errorf("lists %d jobs", len(list))
		}
		if st, _, err := h.Status(first); err != nil || st.ExitCode != 3 || len(st.Spec.Args) != 3 || st.Brief {
			t.Errorf("the first: %+v, %v", st, err)
		}
		if err := h.Cancel(first, "too late", true); err != nil {
			t.Errorf("cancel the first: %v", err)
		}
	})
}
