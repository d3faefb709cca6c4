package agent_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/testnet"
)

// vanish takes its own work directory away, as a disk that fails would.
func vanish(_ context.Context, w *testnet.FakeWorker) int {
	if os.RemoveAll(w.Dir) != nil {
		return 1
	}
	return 0
}

func TestLostOutputsAreAFailure(t *testing.T) {
	bubble(t, 2, 4, func(t *testing.T, g *grid) {
		for _, spec := range []jobs.Spec{{Min: 2, Max: 2}, {Min: 1, Max: 2}, {Min: 1, Max: 2, Failing: jobs.Failing{Retries: 2}}} {
			spec.Args, spec.Outputs = []string{"vanish"}, []string{"out"}
			st := g.await(0, g.submit(0, spec), time.Minute, final)
			if st.State != jobs.Failed || st.ExitCode != 125 || !strings.Contains(st.Reason, "its outputs are lost: ") || strings.Contains(st.Reason, "\n") {
				t.Errorf("%d..%d: %s with %d: %s", spec.Min, spec.Max, st.State, st.ExitCode, st.Reason)
			}
			tries := 0
			for _, text := range st.Warnings {
				if strings.HasSuffix(text, ": trying again") {
					tries++
				}
			}
			if least := spec.Retries; tries < least {
				t.Errorf("%d..%d: tried again %d times, want %d: %q", spec.Min, spec.Max, tries, least, st.Warnings)
			}
		}
	})
}
