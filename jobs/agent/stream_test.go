package agent_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/jobs/process"
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

// floods writes it in two halves, with a pause between them, in steps; where one rank is
// named, the others wait to be stopped.
func floods(ctx context.Context, w *testnet.FakeWorker) int {
	if len(w.Args) > 1 && w.Args[1] != w.Getenv("ZORILLA_RANK") {
		<-ctx.Done()
		return 2
	}
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

// lax starts workers that write what they like.
type lax struct{ agent.Runner }

func (l lax) Start(ctx context.Context, spec process.Spec) (process.Worker, error) {
	spec.MaxOutput = 0
	return l.Runner.Start(ctx, spec)
}

// A worker that writes more than it may ends its job, whatever that says of failures and
// retries; so does its origin if the node lets it write on. What is within the limit is kept.
func TestMoreOutputThanIsAllowed(t *testing.T) {
	for _, c := range []struct {
		args  []string
		limit int64
	}{{[]string{"tick", "1000000"}, 100}, {[]string{"flood", "1"}, 5 << 20}} {
		for _, strict := range []bool{true, false} {
			bubble(t, 3, 1, func(t *testing.T, g *grid) {
				if !strict {
					for i := range g.order {
						g.node(i).stop()
						g.node(i).wrapRunner = func(r agent.Runner) agent.Runner { return lax{r} }
						g.node(i).start()
					}
				}
				spec := jobs.Spec{Args: c.args, Min: 2, Max: 3, Failing: jobs.Failing{Retries: 5, MaxOutput: c.limit}}
				st := g.await(0, g.submit(0, spec), 5*time.Minute, final)
				if st.State != jobs.Failed || st.ExitCode != 137 || !strings.HasPrefix(st.Reason, "rank ") ||
					!strings.Contains(st.Reason, ": wrote more than "+units.Bytes(c.limit)+" of output (--max-output)") {
					t.Errorf("%v, strict %v: %s, %d, %s", c.args, strict, st.State, st.ExitCode, st.Reason)
				}
				most := 0
				for rank := range st.Workers {
					most = max(most, len(g.output(0, st.ID, rank)))
				}
				if most != int(c.limit) {
					t.Errorf("%v, strict %v: %d bytes are kept", c.args, strict, most)
				}
			})
		}
	}
	bubble(t, 1, 1, func(t *testing.T, g *grid) { // all that it may
		st := g.await(0, g.submit(0, jobs.Spec{Args: []string{"flood"}, Min: 1, Max: 1, Failing: jobs.Failing{MaxOutput: int64(len(flooded("0")))}}), 5*time.Minute, final)
		if st.State != jobs.Completed || g.output(0, st.ID, 0) != flooded("0") {
			t.Errorf("%s: %s", st.State, st.Reason)
		}
	})
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
