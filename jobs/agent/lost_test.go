package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/peer"
)

// hasty is a job whose ranks write for a while at three of the other nodes, and are lost soon with these.
func hasty(g *grid, patience time.Duration) jobs.ID {
	id := g.submit(0, jobs.Spec{Args: []string{"tick", "12"}, Min: 1, Max: 3, Slots: 2, Where: `name != "node0"`,
		Failing: jobs.Failing{LostAfter: codec.Duration(patience)}})
	g.await(0, id, time.Minute, func(st jobs.Status) bool { return len(st.Workers) == 3 && attempts(2, 1)(st) })
	time.Sleep(3 * time.Second)
	return id
}

// of is the number of the node that has rank 0 of a job.
func of(g *grid, id jobs.ID) int {
	st := g.await(0, id, time.Second, func(jobs.Status) bool { return true })
	return slices.Index(g.order, st.Workers[0].Node)
}

// attempts returns a condition: a rank runs, or has ended, in its nth attempt.
func attempts(rank, n int) func(jobs.Status) bool {
	return func(st jobs.Status) bool {
		w := st.Workers[rank]
		return w.Attempt == n && (w.State == jobs.WorkerRunning || w.State == jobs.WorkerEnded)
	}
}

// The ranks of a machine that has failed run elsewhere in little more than the time that their job
// says, instead of the usual one.
func TestLostAfter(t *testing.T) {
	bubble(t, 5, 2, func(t *testing.T, g *grid) {
		id := hasty(g, 2*time.Second)
		n := of(g, id)
		begun := time.Now()
		killed := make(chan struct{})
		go func() { // what ends with it takes its time
			g.node(n).kill()
			close(killed)
		}()
		g.await(0, id, time.Minute, attempts(0, 2))
		if took := time.Since(begun); took < time.Second || took > 2500*time.Millisecond {
			t.Errorf("the rank of a node that was killed runs elsewhere after %v", took)
		}
		<-killed
		if st := g.await(0, id, time.Minute, final); st.State != jobs.Completed {
			t.Errorf("the job is %s: %s", st.State, st.Reason)
		}
	})
}

// A node that answers when it is knocked at is not lost although its reports do not come for a while.
func TestStarvedNodesAreNotLost(t *testing.T) {
	bubble(t, 5, 2, func(t *testing.T, g *grid) {
		id := hasty(g, 2*time.Second)
		n := of(g, id)
		var starved atomic.Bool
		g.during(func(from, _ *gridNode, path string) error {
			if starved.Load() && from == g.node(n) && path == peer.PathReport {
				return errors.New("no time")
			}
			return nil
		})
		starved.Store(true)
		wantRow(t, "nothing was heard of a node", seen(g.await(0, id, 4*time.Second, func(st jobs.Status) bool { return strings.Contains(st.Reason, "silent") })))
		time.Sleep(4 * time.Second)
		starved.Store(false)
		st := g.await(0, id, time.Minute, final)
		if got := st.Workers[0]; st.State != jobs.Completed || got.Attempt != 1 {
			t.Errorf("the job is %s (%s), with attempt %d of the rank at a node that was starved", st.State, st.Reason, got.Attempt)
		}
	})
}

// A node that is started again in time takes its workers back. One that comes later hears that they are not
// wanted any more, and nothing of what they wrote since is in the result.
func TestNodesThatComeBackEarlyAndLate(t *testing.T) {
	for away, attempt := range map[time.Duration]int{100 * time.Millisecond: 1, 4 * time.Second: 2} {
		bubble(t, 5, 2, func(t *testing.T, g *grid) {
			id := hasty(g, 5*time.Second)
			n := of(g, id)
			g.node(n).crash() // which takes three seconds
			time.Sleep(away)
			g.node(n).start()
			st := g.await(0, id, time.Minute, final)
			if got := st.Workers[0]; st.State != jobs.Completed || got.Attempt != attempt {
				t.Errorf("away for %v: the job is %s (%s), with attempt %d of its rank", away, st.State, st.Reason, got.Attempt)
			}
			want := ""
			for i := range 12 {
				want += fmt.Sprintf("rank 0 at %d\n", i)
			}
			if got := g.output(0, id, 0); got != want {
				t.Errorf("away for %v: the rank wrote %q", away, got)
			}
		})
	}
}
