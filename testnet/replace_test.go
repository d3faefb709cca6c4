package testnet

import (
	"slices"
	"testing"
	"time"

	"zorilla/jobs"
)

// A rank whose node is lost runs again at the site where it was, although there is room nearer to its origin.
func TestLostRankIsReplacedAtItsSite(t *testing.T) {
	const site = 8 // nodes at each
	wholeNodes(t, 7, []int{site, site, site}, func(t *nodesTest) {
		time.Sleep(time.Minute)
		const origin = 2
		near := t.submit(origin, rigid(2*site, "sleep", "60")) // all that is nearer
		t.await(origin, near, time.Minute, func(st jobs.Status) bool { return count(st, jobs.WorkerRunning) == 2*site })
		id := t.submit(origin, jobs.Spec{Args: []string{"sleep", "300"}, Min: 1, Max: 4})
		st := t.await(origin, id, time.Minute, func(st jobs.Status) bool { return count(st, jobs.WorkerRunning) == 4 })
		var nodes []int
		for _, w := range st.Workers {
			i, _ := t.Index(w.Node)
			nodes = append(nodes, i)
		}
		if slices.Min(nodes) < site || slices.Max(nodes) >= 2*site {
			t.Fatalf("the job is at nodes %v, want some of %d to %d", nodes, site, 2*site-1)
		}
		t.await(origin, near, 2*time.Minute, completed)
		lost := nodes[0]
		t.Crash(lost)
		crashed := time.Now()
		st = t.await(origin, id, time.Minute, func(st jobs.Status) bool {
			return !slices.ContainsFunc(st.Workers, func(w jobs.WorkerStatus) bool {
				i, _ := t.Index(w.Node)
				return i == lost || w.State != jobs.WorkerRunning
			})
		})
		for _, w := range st.Workers {
			i, _ := t.Index(w.Node)
			if again := nodes[w.Rank] == lost; i < site || i >= 2*site || again != (w.Attempt == 2) {
				t.Errorf("rank %d was at node %d, and is at node %d with attempt %d; want one of %d to %d", w.Rank, nodes[w.Rank], i, w.Attempt, site, 2*site-1)
			}
		}
		t.Logf("node %d was lost; all run again %v later", lost, time.Since(crashed))
	})
}
