package agent_test

import (
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/jobs/process"
	"zorilla/jobs/remover"
)

// undelivered submits a gang that its origin has started, without node 1 hearing
// of it: the START and all reports of node 1 are lost until the network is mended.
func undelivered(t *testing.T, g *grid) (id jobs.ID, mend func()) {
	const (
		others  = iota // node 0 does not hear that its own workers are ready
		nobody         // nor, from now on, of node 1
		origin         // node 0 hears of its own
		started        // and has sent the START
	)
	var phase atomic.Int32
	g.during(func(from, to *gridNode, path string) error {
		now := phase.Load()
		switch {
		case to == g.node(1) && path == agent.PeerPrefix+"start":
			phase.Store(started)
		case from == g.node(1) && to == g.node(0) && now > others:
		case from == g.node(0) && to == g.node(0) && now < origin && path == agent.PeerPrefix+"report":
		default:
			return nil
		}
		return errors.New("no route to host")
	})
	id = g.submit(0, jobs.Spec{Args: ticking(5), Min: 4, Max: 4})
	g.await(0, id, time.Minute, func(st jobs.Status) bool {
		ready := 0
		for _, w := range st.Workers {
			if w.State == jobs.WorkerReady {
				ready++
			}
		}
		return ready == 2
	})
	phase.Store(nobody)
	time.Sleep(10 * hop)
	phase.Store(origin)
	for phase.Load() != started {
		time.Sleep(100 * time.Microsecond)
	}
	if n := g.node(1).runner.Started(); n > 0 {
		t.Fatalf("node 1 has started %d workers", n)
	}
	return id, func() { g.during(func(*gridNode, *gridNode, string) error { return nil }) }
}

// Whenever a node dies whose workers may have been started, and were not, its next
// life knows that.
func TestNodeDiesBeforeItHearsOfAStart(t *testing.T) {
	// deaths lists after what steps of laying a worker's directory out again the
	// lives of the node end.
	for name, deaths := range map[string][]string{
		"ready":            {},
		"emptied":          {"emptied"},
		"half emptied":     {"begun"},
		"again and again":  {"begun", "emptied", "begun", "emptied"},
		"given back twice": {"long", "long"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, 2, func(t *testing.T, g *grid) {
				id, mend := undelivered(t, g)
				n := g.node(1)
				if len(deaths) > 0 {
					g.node(0).crash() // it would give the job up: all that takes longer than it waits
				}
				for _, death := range deaths {
					n.crash()
					reached := make(chan struct{}, 10)
					n.clean = func(root string, pace remover.Pace, keep ...string) error {
						if death == "emptied" {
							if err := process.CleanFiles(root, pace, keep...); err != nil {
								return err
							}
						}
						if death != "long" {
							reached <- struct{}{}
							time.Sleep(time.Millisecond) // its death is sooner: until then no time passes
						}
						return process.CleanFiles(root, pace, keep...)
					}
					n.start()
					if death == "long" { // it gives its workers back
						time.Sleep(30 * time.Second)
						if busy, d := n.service.Busy(), n.service.Drained(); busy != 0 || d.Workers != 0 {
							t.Errorf("%d slots and %d workers are held for an origin that is silent", busy, d.Workers)
						}
						continue
					}
					<-reached
				}
				n.crash()
				n.clean = nil
				mend()
				n.start()
				if len(deaths) > 0 {
					g.node(0).start()
				}
				st := g.await(0, id, 5*time.Minute, final)
				if st.State != jobs.Completed {
					t.Fatalf("the job is %s: %s", st.State, st.Reason)
				}
				for rank := range 4 {
					if got := g.output(0, id, rank); got != ticks(rank, 5) {
						t.Errorf("rank %d wrote %q", rank, got)
					}
				}
				time.Sleep(time.Minute)
				if left, err := os.ReadDir(n.dir + "/work"); err != nil || len(left) != 0 {
					t.Errorf("left: %v, %v", left, err)
				}
			})
		})
	}
}

// An origin may need longer for its start than others wait for it.
func TestOriginDiesAfterAStartThatIsNotDelivered(t *testing.T) {
	for _, away := range []time.Duration{time.Second, 30 * time.Second, 20 * time.Minute} {
		bubble(t, 3, 2, func(t *testing.T, g *grid) {
			id, mend := undelivered(t, g)
			g.node(0).crash()
			mend()
			time.Sleep(away)
			g.node(0).start()
			if st := g.await(0, id, 5*time.Minute, final); st.State != jobs.Completed {
				t.Errorf("after %v the job is %s: %s", away, st.State, st.Reason)
			}
		})
	}
}

// What a node gave back, because its origin was silent, does not shorten the lease
// of what the origin grants it later.
func TestGrantAfterASilenceHasItsOwnLease(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		n := g.node(1)
		g.during(func(from, _ *gridNode, path string) error {
			if from == n && path == agent.PeerPrefix+"report" {
				return errors.New("no route from node 1")
			}
			return nil
		})
		id := g.submit(0, jobs.Spec{Args: ticking(5), Min: 4, Max: 4})
		var spans []time.Duration
		for begun := time.Now(); len(spans) < 3 && time.Since(begun) < 5*time.Minute; time.Sleep(100 * time.Millisecond) {
			held := time.Now()
			for n.service.Busy() > 0 {
				time.Sleep(100 * time.Millisecond)
			}
			if d := time.Since(held); d > 0 {
				spans = append(spans, d)
			}
		}
		for i, d := range spans {
			if d < 9*time.Second || d > 13*time.Second {
				t.Errorf("grant %d of %d was kept for %v", i+1, len(spans), d)
			}
		}
		if len(spans) < 3 {
			t.Errorf("it was granted the job %d times", len(spans))
		}
		g.during(func(*gridNode, *gridNode, string) error { return nil })
		if st := g.await(0, id, 5*time.Minute, final); st.State != jobs.Completed {
			t.Errorf("the job is %s: %s", st.State, st.Reason)
		}
		time.Sleep(time.Minute)
	})
}
