package testnet

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
)

// twinKeys make two nodes whose IDs begin with the same five characters.
var twinKeys = []uint64{6, 272}

// withTwins runs a test with three nodes; 0 and 1 share their short ID.
func withTwins(t *testing.T, f func(t *nodesTest)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes, err := StartNodes(NodesConfig{
			Sites: &Sites{[]int{1, 1, 1}, milliseconds([][]float64{{0, 10, 20}, {10, 0, 15}, {20, 15, 0}})},
			State: t.TempDir(), Seed: 1, Keys: twinKeys,
		})
		if err != nil {
			t.Fatal(err)
		}
		n := &nodesTest{t, nodes}
		defer n.stop()
		if n.ID(0) == n.ID(1) || n.ID(0).Short() != n.ID(1).Short() {
			t.Fatalf("%s and %s are no twins", n.ID(0), n.ID(1))
		}
		n.known(5*time.Minute, nodes.Up())
		f(n)
	})
}

// Jobs of nodes that people cannot tell apart are found by every node, by what
// people call them.
func TestJobsOfNodesWithTheSameShortID(t *testing.T) {
	withTwins(t, func(t *nodesTest) {
		spec := jobs.Spec{Args: []string{"cat"}, Min: 1, Max: 1, Stdin: true}
		for origin := range 2 {
			id := t.submit(origin, spec)
			names := []string{string(id), id.Short(), id.Short() + string(t.ID(origin)[5:20])}
			t.await(origin, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
			for asked := range t.Len() {
				for _, name := range names {
					if st, err := t.Service(asked).Job(t.Context(), name); err != nil || st.ID != id || st.LastKnown {
						t.Errorf("job %s of node %d, asked of node %d: %+v, %v", name, origin, asked, st, err)
					}
				}
			}
			waiting := t.submit(2, jobs.Spec{Args: []string{"sleep", "0s"}, Min: 1, Max: 1, After: []jobs.Dependency{{Kind: jobs.AfterOK, Job: id}}})
			const said = "said by the third\n"
			if err := t.Service(2).Stdin(t.Context(), id.Short(), strings.NewReader(said)); err != nil {
				t.Fatal(err)
			}
			t.await(2, id, time.Minute, completed)
			got := ""
			if err := t.Service(2).Output(t.Context(), id.Short(), api.OutputQuery{Rank: -1, Follow: true}, func(o jobs.Output) error {
				got += string(o.Data)
				return nil
			}); err != nil || got != said {
				t.Errorf("output %q, %v", got, err)
			}
			t.await(2, waiting, time.Minute, completed)

			ended := t.submit(origin, spec)
			if err := t.Service(2).Cancel(t.Context(), ended.Short(), false); err != nil {
				t.Error(err)
			}
			t.await(2, ended, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Cancelled })
		}

		// A job that neither has, one of a node that is away, and too little.
		unknown := jobs.ID("zzzzz").At(t.ID(0))
		if _, err := t.Service(2).Job(t.Context(), unknown.Short()); !errors.Is(err, api.ErrNotFound) || !strings.Contains(err.Error(), "no node that is here, and whose ID begins with zrval, knows it") {
			t.Errorf("a job that nobody has: %v", err)
		}
		id := t.submit(1, rigid(1, "sleep", "1s")) // it may have begun, and then goes on without its node
		if err := t.Leave(1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if _, err := t.Service(2).Job(t.Context(), string(id)); !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "its node zrval is not here: 'zorilla nodes' lists") {
			t.Errorf("a job of a node that has left: %v", err)
		}
		if _, err := t.Service(2).Job(t.Context(), "zzzzz@zqqqq"); !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "no node whose ID begins with zqqqq is here: 'zorilla nodes' lists") {
			t.Errorf("a job of a node that nobody knows: %v", err)
		}
		if _, err := t.Service(2).Job(t.Context(), id.Short()); !errors.Is(err, api.ErrNotFound) || !strings.Contains(err.Error(), "no node that is here, and whose ID begins with zrval, knows it") {
			t.Errorf("in short, while its twin is there: %v", err)
		}
	})
}

// A job waits for another as long as the node of that one may come back,
// whoever else answers to its short ID.
func TestDependencyOnANodeWithATwin(t *testing.T) {
	withTwins(t, func(t *nodesTest) {
		for origin := range 2 {
			twin := 1 - origin
			if err := t.Leave(twin); err != nil {
				t.Fatal(err)
			}
			first := t.submit(origin, rigid(1, "sleep", "2m"))
			after := t.submit(2, jobs.Spec{Args: []string{"sleep", "0s"}, Min: 1, Max: 1, After: []jobs.Dependency{{Kind: jobs.AfterOK, Job: first}}})
			time.Sleep(10 * time.Second)
			if err := t.Restart(twin); err != nil {
				t.Fatal(err)
			}
			t.known(5*time.Minute, t.Up())
			st := t.await(2, after, 10*time.Minute, func(st jobs.Status) bool { return st.State.Final() })
			if st.State != jobs.Completed {
				t.Errorf("after a job of node %d: %s: %s", origin, st.State, st.Reason)
			}
		}
	})
}
