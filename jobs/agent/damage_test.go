package agent_test

import (
	"testing"
	"time"

	"zorilla/jobs"
)

// Workers of a job that was running when its journal was damaged are let go.
func TestDamagedJournalOfARunningJob(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		n := g.node(0)
		id := g.submit(0, jobs.Spec{Args: []string{"tick", "600"}, Min: 4, Max: 4})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		n.log.Spoil(string(id), 2)
		n.stop()
		n.start()
		if st, _, err := n.service.Status(id); err != nil || st.State != jobs.Failed || st.ExitCode != 125 {
			t.Fatalf("%s with %d, %v", st.State, st.ExitCode, err)
		}
		time.Sleep(30 * time.Second)
		for i := range 2 {
			if busy := g.node(i).service.Busy(); busy != 0 {
				t.Errorf("node %d has %d slots in use", i, busy)
			}
		}
		if st := g.await(0, g.submit(0, jobs.Spec{Args: []string{"echo"}, Min: 4, Max: 4}), time.Minute, final); st.State != jobs.Completed {
			t.Errorf("the next job is %s: %s", st.State, st.Reason)
		}
	})
}
