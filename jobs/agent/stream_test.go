package agent_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/testnet"
)

// flooded is what floods writes: far more than a report holds.
func flooded(rank string) string {
	var b strings.Builder
	for i := range 64 {
		fmt.Fprintf(&b, "%s %0*d\n", rank, 128<<10, i)
	}
	return b.String()
}

// floods writes it in two halves, with a pause between them, in steps.
func floods(ctx context.Context, w *testnet.FakeWorker) int {
	text := flooded(w.Getenv("ZORILLA_RANK"))
	for i := 0; i < len(text); i += 1 << 20 {
		if _, err := io.WriteString(w.Stdout, text[i:min(len(text), i+1<<20)]); err != nil {
			return 1
		}
		pause := time.Millisecond
		if i == 4<<20 {
			pause = 30 * time.Second
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return 2
		}
	}
	return 0
}

// What no report can hold comes whole, in order and once, also if either end dies meanwhile.
func TestMoreOutputThanReportsHold(t *testing.T) {
	for _, dies := range []int{-1, 0, 1} {
		bubble(t, 2, 1, func(t *testing.T, g *grid) {
			id := g.submit(0, jobs.Spec{Args: []string{"flood"}, Min: 2, Max: 2})
			g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running && st.Workers[1].Stdout > 0 })
			if dies >= 0 {
				g.node(dies).crash()
				g.node(dies).start()
			}
			st := g.await(0, id, 5*time.Minute, final)
			for rank := range 2 {
				if got, want := g.output(0, id, rank), flooded(fmt.Sprint(rank)); st.State != jobs.Completed || got != want {
					t.Errorf("node %d dies: %s (%s), rank %d wrote %d bytes of %d, or others", dies, st.State, st.Reason, rank, len(got), len(want))
				}
			}
		})
	}
}
