package primary

import (
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/process"
)

// A node is lost while its output files are fetched, and the fetch succeeds all
// the same: the rank is looked for again by then, and must not count twice.
func TestFilesOfALostRankComeLate(t *testing.T) {
	c := running(t, jobs.Spec{Min: 1, Max: 2, Outputs: []string{"out"}})
	rep := wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(0, 1), State: jobs.WorkerEnded,
		Exit: &process.Exit{Cause: process.Exited}, Output: &jobs.RankOutput{Rank: 0, Attempt: 1}}}}
	c.p.Reported(c.now, jobtest.Node(1), rep, nil, 0)
	if f := only[DoCollect](c); len(f) != 1 {
		t.Fatalf("fetches %+v", f)
	}
	c.after(2 * wire.PartLease)
	events := len(c.log)
	c.p.Collected(c.now, wiretest.RA(0, 1), nil)
	c.step()
	if k := c.p.Rec.Ranks[0]; k.State != jobs.WorkerLost || k.Collected || len(c.log) != events+1 {
		t.Fatalf("rank 0 is %s, collected %v, after %+v", k.State, k.Collected, c.log[events:])
	}
}
