package jobs_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/process"
)

// undelivered submits a gang that its origin has started, without node 1 hearing
// of it: the START and all reports of node 1 are lost until the network is mended.
func undelivered(t *testing.T, g *grid) (id jobs.ID, mend func()) {
	sent := make(chan struct{}, 100)
	g.during(func(from, to *gridNode, path string) error {
		if to == g.node(1) && path == jobs.PeerPrefix+"start" {
			sent <- struct{}{}
			return errors.New("no route to node 1")
		}
		if from == g.node(1) && to == g.node(0) && len(sent) > 0 {
			return errors.New("no route from node 1")
		}
		return nil
	})
	id = g.submit(0, jobs.Spec{Args: ticking(5), Min: 4, Max: 4})
	for len(sent) == 0 {
		time.Sleep(100 * time.Microsecond)
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
					n.clean = func(root string, keep ...string) error {
						if death == "emptied" {
							if err := process.CleanFiles(root, keep...); err != nil {
								return err
							}
						}
						if death != "long" {
							reached <- struct{}{}
							time.Sleep(time.Millisecond) // its death is sooner: until then no time passes
						}
						return process.CleanFiles(root, keep...)
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
