package agent_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/agent"
)

func TestJobsThatHaveNotEndedComeFirst(t *testing.T) {
	bubble(t, 1, 2, func(t *testing.T, g *grid) {
		runs := g.submit(0, jobs.Spec{Args: []string{"sleep", "100"}, Min: 1, Max: 1})
		waits := g.submit(0, jobs.Spec{Args: []string{"echo"}, Min: 1, Max: 1, After: []jobs.Dependency{{Kind: jobs.AfterAny, Job: runs}}})
		for range 3 {
			g.await(0, g.submit(0, jobs.Spec{Args: []string{"echo"}, Min: 1, Max: 1}), time.Minute, final)
			time.Sleep(time.Second)
		}
		list := g.node(0).service.List(-1)
		if len(list) != 5 || list[0].ID != waits || list[1].ID != runs {
			t.Fatalf("the list begins with %s, which is %s", list[0].ID, list[0].State)
		}
		for i, st := range list[2:] {
			if !st.State.Final() || i > 0 && st.Submitted.After(list[i+1].Submitted) {
				t.Errorf("job %d of those that ended is %s, submitted %v", i, st.State, st.Submitted)
			}
		}
		g.await(0, waits, 5*time.Minute, final)
	})
}

// A node with very many jobs that have ended starts soon, needs little memory for
// each, and answers as one with few.
func TestManyEndedJobs(t *testing.T) {
	many := 20_000
	if n, err := strconv.Atoi(os.Getenv("ZORILLA_ENDED")); err == nil {
		many = n
	}
	bubble(t, 1, 2, func(t *testing.T, g *grid) {
		n := g.node(0)
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
			id := jobs.NewID(rnd, n.self.ID)
			if i == 0 {
				first = id
			}
			spec := jobs.Spec{Args: []string{"/usr/bin/simulate", "--seed", strconv.Itoa(i)}, Min: 1, Max: 1, Slots: 1, Key: fmt.Sprintf("%032d", i)}
			n.log.Append(agent.Ended(id, now.Add(time.Duration(i)*time.Millisecond), spec, "rank 0 on node7 (zeb2a) ended with 3"), func(err error) { done <- err })
		}
		for range many {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		n.stop()
		took, before := used()
		n.start()
		after, heap := used()
		each := (heap - before) / int64(many)
		t.Logf("%d jobs: %v of CPU time to start, %d bytes of memory each", many, after-took, each)
		if r := n.service.Results(); r.Jobs < many*99/100 { // a few have the same ID
			t.Fatalf("%+v", r)
		}
		if whole := int64(1000 * 20_000); heap-before > int64(many)*550+whole {
			t.Errorf("%d bytes for each of %d jobs", each, many)
		}
		if list := n.service.List(jobs.ListEnded); len(list) != jobs.ListEnded {
			t.Errorf("lists %d jobs", len(list))
		}
		if st, _, err := n.service.Status(first); err != nil || st.ExitCode != 3 || len(st.Spec.Args) != 3 || st.Brief {
			t.Errorf("the first: %+v, %v", st, err)
		}
		if err := n.service.Cancel(first, "too late"); err != nil {
			t.Errorf("cancel the first: %v", err)
		}
	})
}
