package jobs_test

import (
	"testing"
	"time"

	"zorilla/jobs"
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
