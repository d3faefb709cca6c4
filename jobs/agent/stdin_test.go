package agent_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// A program never works on input that the disk changed.
func TestDamagedInput(t *testing.T) {
	for _, flip := range []bool{true, false} {
		bubble(t, 1, 1, func(t *testing.T, g *grid) {
			n := g.node(0)
			first := g.submit(0, jobs.Spec{Args: ticking(60), Min: 1, Max: 1})
			g.await(0, first, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
			id := g.submit(0, jobs.Spec{Args: []string{"cat"}, Min: 1, Max: 1, Stdin: true})
			if err := n.service.Stdin(t.Context(), id, strings.NewReader("input")); err != nil {
				t.Fatal(err)
			}
			n.stop()
			if path := filepath.Join(n.dir, "jobs", string(id), "stdin"); flip {
				if err := os.WriteFile(path, []byte("inqut"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			n.start()
			st := g.await(0, id, 10*time.Minute, final)
			g.await(0, first, 10*time.Minute, final)
			if flip {
				wantRow(t, "its standard input is damaged", seen(st))
			}
			if !flip && (st.State != jobs.Completed || g.output(0, id, 0) != "input" || len(st.Warnings) > 0) {
				t.Errorf("%s with %d: %s, %q", st.State, st.ExitCode, st.Reason, st.Warnings)
			}
		})
	}
}
