package agent_test

import (
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/vicinity"
)

// A job that wants more than its nodes are known to have waits, and runs at the one that is
// found to have it.
func TestPowerThatIsFoundLater(t *testing.T) {
	bubble(t, 3, 2, func(t *testing.T, g *grid) {
		id := g.submit(0, jobs.Spec{Args: []string{"tick", "1"}, Min: 1, Max: 1, Where: "power >= 1000"})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Pending && st.Reason != "" })
		time.Sleep(time.Minute) // it has asked everybody
		n := g.node(2)
		m := n.service.Self()
		m.Speeds = vicinity.Speeds{Power: 1010}
		n.service.Describe(m)
		st := g.await(0, id, 10*time.Minute, final)
		if st.State != jobs.Completed || len(st.Workers) != 1 || st.Workers[0].Node != m.ID {
			t.Errorf("%s: %s; %+v", st.State, st.Reason, st.Workers)
		}
	})
}
