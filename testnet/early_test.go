package testnet

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
)

// A job begins two round trips after it was submitted at a node that has not talked to the node of
// its workers: the grant and the report that they are ready are packets. One with a long
// command takes three: both ends connect while the search goes on.
func TestStartsAheadOfConnections(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		most float64 // round trips
	}{
		"short": {[]string{"echo"}, 2.2},
		"long":  {[]string{"echo", strings.Repeat("long ", 300)}, 3.2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, err := StartNodes(NodesConfig{
					Sites: &Sites{[]int{1, 1}, milliseconds([][]float64{{0, 200}, {200, 0}})}, State: t.TempDir(), Seed: 1, Slots: 1,
				})
				if err != nil {
					t.Fatal(err)
				}
				defer nodes.Stop()
				st := far(t, nodes, jobs.Spec{Args: c.args})
				if trips := float64(st.Started.Sub(st.Submitted)) / float64(nodes.RTT(0, 1)); trips > c.most || trips < 1 {
					t.Errorf("begins after %.2f round trips, want at most %.1f", trips, c.most)
				}
			})
		})
	}
}

// A grant whose answer is lost, as a packet, is not done again when it comes over the connection: it
// would be refused then, and the job begin elsewhere, or later.
func TestLostAnswersOfEarlyGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int64
		nodes, err := StartNodes(NodesConfig{
			Sites: &Sites{[]int{1, 1}, milliseconds([][]float64{{0, 200}, {200, 0}})}, State: t.TempDir(), Seed: 1, Slots: 1,
			Lose: func(from int, kind byte, _ []byte) bool {
				if from == 0 || kind != kindEarly {
					return false
				}
				lost.Add(1)
				return true
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer nodes.Stop()
		input := filepath.Join(t.TempDir(), "in") // which takes longer than the grant
		if err := os.WriteFile(input, make([]byte, 3*transfer.ChunkSize), 0o644); err != nil {
			t.Fatal(err)
		}
		h, err := api.Push(t.Context(), nodes.Service(0), []transfer.Input{{Path: input, Name: "in"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		st := far(t, nodes, jobs.Spec{Args: []string{"echo"}, Inputs: h})
		for _, w := range st.Workers {
			if w.Attempt != 1 {
				t.Errorf("rank %d is looked for %d times", w.Rank, w.Attempt)
			}
		}
		if lost.Load() == 0 {
			t.Error("no answer was lost")
		}
	})
}

// far runs a job of two on two nodes of a slot that have not talked lately.
func far(t *testing.T, nodes *Nodes, spec jobs.Spec) jobs.Status {
	t.Helper()
	if _, err := nodes.AwaitKnown(t.Context(), nodes.Up()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Minute) // connections that were made are closed
	spec.Min, spec.Max = 2, 2
	id, err := nodes.Submit(t.Context(), 0, spec)
	if err != nil {
		t.Fatal(err)
	}
	st, err := nodes.Await(t.Context(), 0, id, func(st jobs.Status) bool { return st.State == jobs.Completed })
	if err != nil {
		t.Fatal(err)
	}
	return st
}
