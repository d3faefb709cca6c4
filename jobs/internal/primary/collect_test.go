package primary

import (
	"errors"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/work"
)

// A node is lost while its output files are fetched, and the fetch succeeds all
// the same: the rank is looked for again by then, and must not count twice.
func TestFilesOfALostRankComeLate(t *testing.T) {
	c := running(t, jobs.Spec{Min: 1, Max: 2, Outputs: []string{"out"}})
	rep := wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(0, 1), State: jobs.WorkerEnded,
		Exit: &work.Exit{Cause: work.Exited}, Output: &jobs.RankOutput{Rank: 0, Attempt: 1}}}}
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

// How far inputs are is told of all nodes that get them together, with the rate and the
// time that is left as soon as there is one.
func TestHowFarInputsAre(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 3, Max: 3})
	c.p.Staged.Total = 1000
	c.offer(1, 2)
	c.offer(2, 1)
	tell := func(n int, state jobs.WorkerState, fetched, cached int64, ranks ...int) {
		for _, rank := range ranks {
			c.p.Reported(c.now, jobtest.Node(n), wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(rank, 1),
				State: state, Fetched: fetched, Cached: cached}}}, nil, 0)
			fetched, cached = 0, 0 // told of one of its workers only
		}
		c.step()
	}
	want := func(m jobs.Moving, reason string) {
		t.Helper()
		m.What = jobs.MovingInputs
		st := c.p.Status()
		if st.Moving == nil || *st.Moving != m || st.Reason != reason {
			t.Fatalf("it tells %+v, %q, want %+v, %q", st.Moving, st.Reason, m, reason)
		}
	}
	c.step()
	want(jobs.Moving{Total: 2000, Nodes: 2, Holders: 1}, "inputs are sent to 2 nodes: 0 B of 2 KiB are there")
	tell(1, jobs.WorkerPreparing, 100, 200, 0, 1)
	want(jobs.Moving{Done: 300, Total: 2000, Nodes: 2, Holders: 1}, "inputs are sent to 2 nodes: 300 B of 2 KiB are there")
	c.now = c.now.Add(time.Second)
	tell(2, jobs.WorkerPreparing, 200, 0, 2)
	want(jobs.Moving{Done: 500, Total: 2000, Nodes: 2, Holders: 1, Rate: 200, Left: codec.Duration(8 * time.Second)},
		"inputs are sent to 2 nodes: 500 B of 2 KiB are there, 200 B/s, 8s left")
	tell(1, jobs.WorkerReady, 800, 200, 0, 1)
	want(jobs.Moving{Done: 1200, Total: 2000, Nodes: 2, Holders: 2, Rate: 900, Left: codec.Duration(time.Second)},
		"inputs are sent to 2 nodes: 1.2 KiB of 2 KiB are there, 900 B/s, 1s left")
	tell(2, jobs.WorkerReady, 1000, 0, 2)
	if st := c.p.Status(); st.Moving != nil {
		t.Errorf("all is there, and it tells %+v", st.Moving)
	}
}

// So is how far outputs are, of what is fetched and was just fetched.
func TestHowFarOutputsAre(t *testing.T) {
	c := running(t, jobs.Spec{Min: 2, Max: 2, Outputs: []string{"out"}})
	var again wire.Report
	for rank, bytes := range []int64{100, 300} {
		again = wire.Report{Job: c.p.Rec.ID, Workers: []wire.WorkerReport{{RankAttempt: wiretest.RA(rank, 1), State: jobs.WorkerEnded,
			Exit: &work.Exit{Cause: work.Exited}, Output: &jobs.RankOutput{Rank: rank, Attempt: 1, Bytes: bytes}}}}
		c.p.Reported(c.now, c.p.Rec.Ranks[rank].Node, again, nil, 0)
	}
	c.step()
	want := func(m jobs.Moving, reason string) {
		t.Helper()
		m.What = jobs.MovingOutputs
		if st := c.p.Status(); st.Moving == nil || *st.Moving != m || st.Reason != reason {
			t.Fatalf("it tells %+v, %q, want %+v, %q", st.Moving, st.Reason, m, reason)
		}
	}
	want(jobs.Moving{Total: 400, Nodes: 2}, "fetching the outputs of 2 workers: 0 B of 400 B are there")
	version := c.p.Version
	c.p.Arriving(c.now, wiretest.RA(0, 1), 60)
	c.p.Arriving(c.now, wiretest.RA(0, 1), 50)  // an older word
	c.p.Arriving(c.now, wiretest.RA(0, 2), 900) // nobody fetches that
	want(jobs.Moving{Done: 60, Total: 400, Nodes: 2}, "fetching the outputs of 2 workers: 60 B of 400 B are there")
	if c.p.Version != version+1 {
		t.Errorf("%d news, want 1", c.p.Version-version)
	}
	c.p.Collected(c.now, wiretest.RA(1, 1), errors.New("the connection broke")) // beside the other, and is begun anew
	want(jobs.Moving{Done: 60, Total: 100, Nodes: 1}, "fetching the outputs of 1 worker: 60 B of 100 B are there")
	c.p.Reported(c.now, c.p.Rec.Ranks[1].Node, again, nil, 0)
	c.step()
	want(jobs.Moving{Done: 60, Total: 400, Nodes: 2}, "fetching the outputs of 2 workers: 60 B of 400 B are there")
	c.now = c.now.Add(2 * time.Second)
	c.p.Collected(c.now, wiretest.RA(0, 1), nil)
	c.step()
	want(jobs.Moving{Done: 100, Total: 400, Nodes: 1, Rate: 20, Left: codec.Duration(15 * time.Second)}, "fetching the outputs of 1 worker: 100 B of 400 B are there, 20 B/s, 15s left")
	c.p.Arriving(c.now, wiretest.RA(1, 1), 200)
	c.p.Collected(c.now, wiretest.RA(1, 1), errors.New("the connection broke")) // and it is tried again
	c.p.Reported(c.now, c.p.Rec.Ranks[1].Node, again, nil, 0)
	c.step()
	if m := c.p.Status().Moving; m == nil || m.Total > 400 || m.Done >= 400 {
		t.Errorf("after a fetch that failed it tells %+v", m)
	}
	c.p.Arriving(c.now, wiretest.RA(1, 1), 5000)
	if st := c.p.Status(); st.Moving != nil || st.Reason != "fetching the outputs of 1 worker" {
		t.Errorf("all is there, and it tells %+v, %q", st.Moving, st.Reason)
	}
	c.p.Collected(c.now, wiretest.RA(1, 1), nil)
	c.step()
	c.state(jobs.Completed, 0)
}
