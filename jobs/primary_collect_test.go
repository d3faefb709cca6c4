package jobs

import (
	"testing"

	"zorilla/jobs/process"
)

// A node is lost while its output files are fetched, and the fetch succeeds all
// the same: the rank is looked for again by then, and must not count twice.
func TestFilesOfALostRankComeLate(t *testing.T) {
	c := running(t, Spec{Min: 1, Max: 2, Outputs: []string{"out"}})
	rep := Report{Job: c.p.rec.id, Workers: []WorkerReport{{RankAttempt: ra(0, 1), State: WorkerEnded,
		Exit: &process.Exit{Cause: process.Exited}, Output: &RankOutput{Rank: 0, Attempt: 1}}}}
	c.p.reported(c.now, testNode(1), rep, nil, 0)
	if f := only[doCollect](c); len(f) != 1 {
		t.Fatalf("fetches %+v", f)
	}
	c.after(2 * partLease)
	events := len(c.log)
	c.p.collected(c.now, ra(0, 1), nil)
	c.step()
	if k := c.p.rec.ranks[0]; k.state != WorkerLost || k.collected || len(c.log) != events+1 {
		t.Fatalf("rank 0 is %s, collected %v, after %+v", k.state, k.collected, c.log[events:])
	}
}
