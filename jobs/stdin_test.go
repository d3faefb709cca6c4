package jobs_test

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"zorilla/jobs"
)

// An origin dies after it was fed all of a job's input, and while it is fed.
func TestInputAndTheEndOfItsOrigin(t *testing.T) {
	for _, whole := range []bool{true, false} {
		bubble(t, 2, 1, func(t *testing.T, g *grid) {
			id := g.submit(0, jobs.Spec{Args: []string{"cat"}, Min: 1, Max: 1, Stdin: true})
			r, w := io.Pipe()
			fed := make(chan error, 1)
			service := g.node(0).service
			go func() { fed <- service.Stdin(t.Context(), id, r) }()
			fmt.Fprintln(w, "begin")
			g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
			if whole {
				fmt.Fprintln(w, "end")
				w.Close()
				if err := <-fed; err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				g.node(0).crash()
				g.node(0).start()
			}
			st := g.await(0, id, time.Minute, final)
			want := map[bool]string{true: "begin\nend\n", false: "begin\n"}[whole]
			if got := g.output(0, id, 0); st.State != jobs.Completed || got != want {
				t.Errorf("whole %v: %s (%s), wrote %q", whole, st.State, st.Reason, got)
			}
			warned := slices.Contains(st.Warnings, "its standard input may be incomplete: the node that took it died meanwhile")
			if warned == whole || len(st.Warnings) > 1 {
				t.Errorf("whole %v: warnings %q", whole, st.Warnings)
			}
			if !whole {
				w.Close()
				if err := <-fed; err == nil {
					t.Error("the rest was accepted by a node that was dead")
				}
			}
		})
	}
}
