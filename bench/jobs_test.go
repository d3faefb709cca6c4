package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
)

// manyJobs is how many jobs a node keeps when they have ended.
const manyJobs = 1000

// submit has a client submit jobs of /bin/true one after the other, and waits
// until all of them have ended. It returns when the last one was accepted, and
// when the last one had ended.
func submit(ctx context.Context, c *api.Client, n int) (accepted, ended time.Duration, err error) {
	begun := time.Now()
	var ids []jobs.ID
	for range n {
		id, err := c.Submit(ctx, jobs.Spec{Args: []string{"/bin/true"}, Min: 1, Max: 1, Slots: 1})
		if err != nil {
			return 0, 0, err
		}
		ids = append(ids, id)
	}
	accepted = time.Since(begun)
	for len(ids) > 0 { // the last one first: mostly the others have ended by then
		st := jobs.Status{}
		for since := uint64(0); !st.State.Final(); {
			if st, since, err = c.Await(ctx, string(ids[len(ids)-1]), since); err != nil {
				return 0, 0, err
			}
		}
		ended = time.Since(begun)
		all, err := c.Jobs(ctx, false)
		if err != nil {
			return 0, 0, err
		}
		states := map[jobs.ID]jobs.State{}
		for _, st := range all {
			states[st.ID] = st.State
		}
		ids = slices.DeleteFunc(ids, func(id jobs.ID) bool { return states[id] == jobs.Completed })
	}
	return accepted, ended, nil
}

// BenchmarkJobs is how many small jobs a second one client of three nodes can have
// run, one after the other: with a fresh node, and with one that keeps 1000 ended
// jobs. Target: 150 a second, and no fewer with 1000 kept.
func BenchmarkJobs(b *testing.B) {
	for _, kept := range []int{0, manyJobs} {
		b.Run(fmt.Sprint(kept, "-kept"), func(b *testing.B) {
			var accepted, ended time.Duration
			var ticks int64
			for b.Loop() {
				func() {
					b.StopTimer()
					defer b.StartTimer()
					n := start(b, 3, 2)
					defer n.stop()
					c := n.client()
					defer c.Close()
					if _, _, err := submit(b.Context(), c, kept); err != nil {
						b.Fatal(err)
					}
					ticks -= n.ticks()
					b.StartTimer()
					a, e, err := submit(b.Context(), c, manyJobs)
					b.StopTimer()
					ticks += n.ticks()
					if err != nil {
						b.Fatal(err)
					}
					accepted, ended = accepted+a, ended+e
				}()
			}
			all := float64(manyJobs * b.N)
			b.ReportMetric(all/ended.Seconds(), "jobs/s")
			b.ReportMetric(all/accepted.Seconds(), "accepted/s")
			b.ReportMetric(1000*float64(ticks)/ticksPerSecond/all, "node-cpu-ms/job") // of all nodes; not of workers
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkPs is "zorilla ps" at a node that keeps 1000 ended jobs, beside a command
// that asks no node. Target: 20 ms.
func BenchmarkPs(b *testing.B) {
	n := start(b, 1, 2)
	defer n.stop()
	c := n.client()
	defer c.Close()
	list := func(words ...string) func() (time.Duration, error) {
		return timed(func() error { return n.command(words...).Run() })
	}
	for _, kept := range []int{0, manyJobs} {
		if _, _, err := submit(b.Context(), c, kept); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(kept, "-kept"), func(b *testing.B) {
			compete(b, 21, rival{"ps", list("ps", "--all")}, rival{"ps-all", list("ps", "--all", "--members")}, rival{"version", list("version")})
		})
	}
}
