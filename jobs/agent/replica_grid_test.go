package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/testnet"
	"zorilla/transfer"
)

// Every rank runs twice; of the copies one is told of, with its output and files.
func TestReplicas(t *testing.T) {
	bubble(t, 3, 2, func(t *testing.T, g *grid) {
		id := g.submit(0, jobs.Spec{Args: []string{"copy", "30"}, Min: 2, Max: 2, Replicas: 2, Outputs: []string{"left"}})
		st := g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		at := map[int]map[string]bool{}
		for _, w := range st.Workers {
			if at[w.Rank] == nil {
				at[w.Rank] = map[string]bool{}
			}
			at[w.Rank][w.Name] = true
		}
		if len(st.Workers) != 4 || len(at) != 2 || len(at[0]) != 2 || len(at[1]) != 2 {
			t.Fatalf("the workers are %+v", st.Workers)
		}
		time.Sleep(5 * time.Second)
		if out := g.output(0, id, -1); out != "" {
			t.Errorf("told %q before a copy counts", out)
		}
		// A node of the other replica than the origin's goes for good.
		lost := ""
		for i := 1; i < 3 && lost == ""; i++ {
			for _, w := range st.Workers {
				if w.Node == g.order[i] {
					lost = w.Name
					g.node(i).kill()
					break
				}
			}
		}
		st = g.await(0, id, 2*time.Minute, final)
		if st.State != jobs.Completed || st.ExitCode != 0 || len(st.Outputs) != 2 || len(st.Warnings) == 0 || !strings.Contains(st.Warnings[0], lost) {
			t.Fatalf("the job is %s: %s, with outputs %+v and warnings %q", st.State, st.Reason, st.Outputs, st.Warnings)
		}
		for rank := range 2 {
			var won jobs.WorkerStatus
			for _, w := range st.Workers {
				if w.Won && w.Rank == rank {
					won = w
				}
			}
			if won.Name == "" || won.Name == lost {
				t.Errorf("of rank %d counts %+v, node %s was lost", rank, won, lost)
			}
			// Its job is that of its own replica, which is on one node.
			want := fmt.Sprintf("rank %d of 2, replica %d, 1 nodes\n", rank, won.Replica)
			if out := g.output(0, id, rank); out != want {
				t.Errorf("rank %d wrote %q, want %q", rank, out, want)
			}
			m, err := transfer.LoadManifest(g.node(0).store, st.Outputs[rank].Manifest)
			if err != nil || st.Outputs[rank].Rank != rank {
				t.Fatalf("outputs %+v: %v", st.Outputs, err)
			}
			if b, err := g.node(0).store.Get(m.Entries[0].Chunks[0], nil); err != nil || string(b) != fmt.Sprint(rank, " ", won.Replica) {
				t.Errorf("rank %d left %q, %v", rank, b, err)
			}
		}
	})
}

func TestRowsOfReplicas(t *testing.T) {
	bubble(t, 3, 2, func(t *testing.T, g *grid) {
		copies := jobs.Spec{Args: []string{"fail", "7"}, Min: 2, Max: 2, Replicas: 2}
		st := g.await(0, g.submit(0, copies), time.Minute, final)
		wantRow(t, "a rank failed in all of its copies", seen(st))
		if st.ExitCode != 7 {
			t.Errorf("exit code %d", st.ExitCode)
		}
		copies.Min, copies.Max, copies.Replicas = 1, 1, 4
		id := g.submit(0, copies)
		time.Sleep(5 * time.Second)
		st, _, err := g.node(0).service.Status(id)
		if err != nil {
			t.Fatal(err)
		}
		wantRow(t, "there are too few nodes", seen(st))
		g.cancel(id)
		// The origin's own slots are taken, so that the copies are on the others.
		own := g.submit(0, jobs.Spec{Args: []string{"sleep", "100"}, Min: 2, Max: 2})
		g.await(0, own, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		copies.Replicas = 3
		id = g.submit(0, copies)
		time.Sleep(5 * time.Second)
		if st, _, err = g.node(0).service.Status(id); err != nil {
			t.Fatal(err)
		}
		wantRow(t, "enough is offered, by too few nodes", seen(st))
		g.cancel(id)
		id = g.submit(0, jobs.Spec{Args: []string{"sleep", "60"}, Min: 2, Max: 2, Replicas: 2})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		g.node(1).kill()
		time.Sleep(20 * time.Second)
		if st, _, err := g.node(0).service.Status(id); err != nil || st.State != jobs.Running {
			t.Errorf("without one replica the job is %s: %s, %v", st.State, st.Reason, err)
		}
		g.node(2).kill()
		wantRow(t, "all copies of a rank were lost", seen(g.await(0, id, time.Minute, final)))
		g.cancel(own)
	})
}

// copyOf says which copy of which rank it is, and leaves it in a file some
// seconds later.
func copyOf(ctx context.Context, w *testnet.FakeWorker) int {
	rank, replica := w.Getenv("ZORILLA_RANK"), w.Getenv("ZORILLA_REPLICA")
	fmt.Fprintf(w.Stdout, "rank %s of %s, replica %s, %s nodes\n", rank, w.Getenv("WORLD_SIZE"), replica, w.Getenv("ZORILLA_NNODES"))
	d, err := time.ParseDuration(w.Args[1] + "s")
	if err != nil || rank != w.Getenv("RANK") {
		return 2
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return 143
	}
	if err := os.WriteFile(filepath.Join(w.Dir, "left"), []byte(rank+" "+replica), 0o644); err != nil {
		return 3
	}
	return 0
}
