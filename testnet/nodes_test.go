package testnet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
)

// knownLimit is how long all may take to know all: a node that gossip has
// passed by learns of a member when it next exchanges its whole state.
const knownLimit = 4 * time.Minute

// nodesTest is a test of whole nodes in a bubble.
type nodesTest struct {
	*testing.T
	*Nodes
}

// wholeNodes runs a test with nodes at three sites, 10 to 20 ms from each
// other, that all know each other.
func wholeNodes(t *testing.T, seed uint64, sizes []int, f func(t *nodesTest)) {
	t.Parallel()
	begun := time.Now() // outside of the bubble: real time
	synctest.Test(t, func(t *testing.T) {
		t.Logf("seed %d", seed)
		start := time.Now()
		nodes, err := StartNodes(NodesConfig{
			Sites: &Sites{sizes, milliseconds([][]float64{{0, 10, 20}, {10, 0, 15}, {20, 15, 0}})},
			State: t.TempDir(), Seed: seed,
		})
		if err != nil {
			t.Fatal(err)
		}
		n := &nodesTest{t, nodes}
		defer n.stop()
		n.known(5*time.Minute, nodes.Up()) // gossip misses a few; push/pull repairs that within minutes
		t.Logf("%d nodes all know each other %v after the start of the first: %+v", nodes.Len(), time.Since(start), nodes.Network.Counters())
		f(n)
		t.Logf("%v of virtual time: %+v", time.Since(start), nodes.Network.Counters())
	})
	t.Logf("%v of real time", time.Since(begun).Round(time.Millisecond))
}

func (t *nodesTest) stop() {
	if err := t.Stop(); err != nil {
		t.Error(err)
	}
	for i := range t.Len() {
		if k := t.Runner(i).Running(); k > 0 {
			t.Errorf("%d workers are left at node %d", k, i)
		}
	}
}

// known waits until the nodes know each other, and nobody else.
func (t *nodesTest) known(limit time.Duration, nodes []int) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	took, err := t.AwaitKnown(ctx, nodes)
	if err != nil {
		t.Fatal(err)
	}
	return took
}

func (t *nodesTest) submit(i int, spec jobs.Spec) jobs.ID {
	t.Helper()
	id, err := t.Submit(t.Context(), i, spec)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (t *nodesTest) await(i int, id jobs.ID, limit time.Duration, ok func(jobs.Status) bool) jobs.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	st, err := t.Await(ctx, i, id, ok)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func completed(st jobs.Status) bool { return st.State == jobs.Completed }

// rigid is a job that is all or nothing.
func rigid(n int, args ...string) jobs.Spec { return jobs.Spec{Args: args, Min: n, Max: n} }
