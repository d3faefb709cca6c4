package agent_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/session"
)

// Who wants to run something beside a rank that has no node yet, or is being prepared, waits
// for it, but not for ever. Emulated workers refuse it: then it was found.
func TestEnterWaitsForARank(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		enter := func(id jobs.ID, rank int) (waited time.Duration, err error) {
			var in bytes.Buffer
			if err := session.NewWriter(&in).Start(&session.Start{Args: []string{"true"}}); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			err = g.node(0).service.Enter(t.Context(), id, rank, &in, io.Discard)
			return time.Since(begun), err
		}
		const found = "an emulated worker runs no other commands"
		if waited, err := enter("k7f3q@zabcd"+jobs.ID(strings.Repeat("a", 22)), 0); err == nil || waited > 0 {
			t.Errorf("a job that nobody knows is waited for %v: %v", waited, err)
		}
		first := g.submit(0, jobs.Spec{Args: []string{"tick", "8"}, Min: 2, Max: 2})
		if _, err := enter(first, 1); err == nil || !strings.Contains(err.Error(), found) {
			t.Errorf("of a job that was just submitted: %v", err)
		}
		// Its room is taken for longer than a rank without a node is waited for, and then not.
		second := g.submit(0, jobs.Spec{Args: []string{"tick", "3"}, Min: 2, Max: 2})
		if waited, err := enter(second, 0); err == nil || !strings.HasSuffix(err.Error(), "is wanted") || waited.Round(time.Second) != 5*time.Second {
			t.Errorf("of a job without room, after %v: %v", waited, err)
		}
		if waited, err := enter(second, 0); err == nil || !strings.Contains(err.Error(), found) || waited < time.Second {
			t.Errorf("when there is room, after %v: %v", waited, err)
		}
		g.await(0, second, time.Minute, final)
		if waited, err := enter(second, 0); err == nil || !strings.HasSuffix(err.Error(), "has ended (COMPLETED)") || waited > 0 {
			t.Errorf("of a job that has ended, after %v: %v", waited, err)
		}
	})
}
