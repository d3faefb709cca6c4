package agent_test

import (
	"testing"
	"time"

	"zorilla/jobs"
)

// A node that the overlay has declared dead is not waited for as long as one that is silent.
func TestDeadNodesAreNotWaitedFor(t *testing.T) {
	for _, told := range []bool{false, true} {
		bubble(t, 2, 1, func(t *testing.T, g *grid) {
			id := g.submit(0, jobs.Spec{Args: []string{"tick", "60"}, Min: 2, Max: 2})
			g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
			time.Sleep(time.Second)
			g.node(1).kill()
			begun := time.Now()
			if told {
				g.node(0).service.Membership(g.node(1).self.ID, false)
			}
			st := g.await(0, id, time.Minute, final)
			if waited := time.Since(begun); st.State != jobs.NodeFail || told != (waited < partSilent/2) {
				t.Errorf("its death is told: %v; after %v the job is %s (%s)", told, waited, st.State, st.Reason)
			}
		})
	}
}
