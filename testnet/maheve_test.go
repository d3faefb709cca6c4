package testnet

import (
	"slices"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/placement/mapping"
)

// A job that is mapped by its task graph has a node for each rank, at the site with most free nodes; a rank
// whose node is lost runs again at that site, while the others go on.
func TestMappedJob(t *testing.T) {
	const small, large = 4, 9
	wholeNodes(t, 11, []int{small, large, small}, func(t *nodesTest) {
		time.Sleep(time.Minute)
		const origin = 1
		spec := jobs.Spec{Args: []string{"sleep", "200"}, Min: 6, Max: 6, Strategy: "maheve", Placing: jobs.Placing{Graph: &mapping.Listed{Name: "grid:2x3"}}}
		id := t.submit(origin, spec)
		st := t.await(origin, id, time.Minute, func(st jobs.Status) bool { return count(st, jobs.WorkerRunning) == 6 })
		at := func(st jobs.Status) (nodes []int) {
			for _, w := range st.Workers {
				i, _ := t.Index(w.Node)
				nodes = append(nodes, i)
			}
			return nodes
		}
		began := at(st)
		if one := slices.Compact(slices.Sorted(slices.Values(began))); len(one) != 6 || one[0] < small || one[5] >= small+large {
			t.Fatalf("it is at nodes %v, want six of %d to %d", began, small, small+large-1)
		}
		t.Logf("mapped to nodes %v %v after it was submitted", began, st.Started.Sub(st.Submitted))
		lost := began[2]
		t.Crash(lost)
		st = t.await(origin, id, time.Minute, func(st jobs.Status) bool {
			return count(st, jobs.WorkerRunning) == 6 && !slices.Contains(at(st), lost)
		})
		for _, w := range st.Workers {
			i, _ := t.Index(w.Node)
			if again := w.Rank == 2; again != (w.Attempt == 2) || !again && i != began[w.Rank] || i < small || i >= small+large || again && slices.Contains(began, i) {
				t.Errorf("rank %d was at node %d, and is at node %d with attempt %d", w.Rank, began[w.Rank], i, w.Attempt)
			}
			if again := w.Rank == 2; again != (w.Replaced != nil) || again && (!w.Replaced.Same || w.Replaced.RTT <= 0) {
				t.Errorf("rank %d is there since %+v", w.Rank, w.Replaced)
			}
		}
		t.await(origin, id, 10*time.Minute, completed)
	})
}
