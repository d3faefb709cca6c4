package agent_test

import (
	"testing"
	"time"

	"zorilla/jobs"
)

// The key of a submission names its job as long as its record is kept.
func TestForgottenJobKeepsItsKey(t *testing.T) {
	bubble(t, 1, 2, func(t *testing.T, g *grid) {
		spec := jobs.Spec{Key: "nightly", Args: []string{"echo"}, Min: 1, Max: 1}
		id := g.submit(0, spec)
		g.await(0, id, time.Minute, final)
		time.Sleep(8 * 24 * time.Hour)
		for range 3 {
			g.wantForgotten(id, jobs.Completed, 0)
			if again := g.submit(0, spec); again != id {
				t.Fatalf("submitted again it is %s, want %s", again, id)
			}
			g.node(0).stop()
			g.node(0).start()
		}
		if err := g.node(0).service.Remove(id); err != nil {
			t.Fatal(err)
		}
		if st := g.await(0, g.submit(0, spec), time.Minute, final); st.Gone() != nil {
			t.Error("the key of a removed job is kept")
		}
	})
}
