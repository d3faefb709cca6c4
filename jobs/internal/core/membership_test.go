package core

import (
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
)

// works is a node whose only job has its only worker at the other one.
func works(t *testing.T) (*pair, jobs.ID) {
	p := newPair(t)
	id := p.submit(1, 1)
	p.offer(1, 1)
	p.pass(300 * time.Millisecond)
	p.report(id, jobs.WorkerReady, 0)
	p.report(id, jobs.WorkerRunning, 0)
	if st := p.core.Jobs[id].Primary.Status(); st.State != jobs.Running {
		t.Fatalf("the job is %s: %s", st.State, st.Reason)
	}
	return p, id
}

// report has the other node tell how its worker is, and whether it will be away.
func (p *pair) report(id jobs.ID, state jobs.WorkerState, away time.Duration) {
	ra := wiretest.RA(0, 1)
	rep := wire.Report{Job: id, Away: away, Workers: []wire.WorkerReport{{RankAttempt: ra, State: state}}}
	p.answers++
	p.core.Reported(p.now, jobtest.Node(2), &rep, map[jobs.RankAttempt]wire.Written{ra: {}}, p.answers)
	p.act()
}

// lost is how long the silence of the other node lasts until the job has failed because of it.
func (p *pair) lost(id jobs.ID) time.Duration {
	p.t.Helper()
	for begun := p.now; p.now.Sub(begun) < time.Hour; {
		p.pass(100 * time.Millisecond)
		if p.core.Jobs[id].Primary.Rec.State == jobs.NodeFail {
			return p.now.Sub(begun)
		}
	}
	p.t.Fatal("the job outlasts its node")
	return 0
}

// What the overlay tells of a node reaches the jobs that it works for: one that is dead is not
// waited for as long as one that is only silent, and one that said it would be away not
// so long any more when it is back and says nothing.
func TestMembershipReachesJobs(t *testing.T) {
	other := jobtest.Node(2)
	p, id := works(t)
	silent := p.lost(id)
	p, id = works(t)
	p.core.Membership(p.now, other, true)
	if alive := p.lost(id); alive != silent {
		t.Errorf("it is lost after %v, want %v: nothing has happened", alive, silent)
	}
	p, id = works(t)
	p.core.Membership(p.now, other, false)
	if dead := p.lost(id); dead > silent/2 {
		t.Errorf("a dead node is lost after %v, a silent one after %v", dead, silent)
	}

	const away = 10 * time.Minute
	p, id = works(t)
	p.report(id, jobs.WorkerRunning, away)
	if gone := p.lost(id); gone < away {
		t.Errorf("who will be away for %v is lost after %v", away, gone)
	}
	p, id = works(t)
	p.report(id, jobs.WorkerRunning, away)
	p.core.Membership(p.now, other, false)
	p.pass(time.Minute)
	p.core.Membership(p.now, other, true)
	if back := p.lost(id); back > time.Minute {
		t.Errorf("who is back from being away and silent is lost after %v", back)
	}
}

// A node that is started again finds the members there: nobody tells it that they are back.
func TestJobsOfAnEarlierLifeKnowMembers(t *testing.T) {
	const away = 10 * time.Minute
	for _, member := range []bool{false, true} {
		p, id := works(t)
		p.report(id, jobs.WorkerRunning, away)
		next := newPair(t)
		if next.now = p.now.Add(time.Second); !member {
			delete(next.few, jobtest.Node(2))
		}
		j := next.core.NewJob(id)
		next.core.Add(j)
		for _, ev := range p.log {
			j.Primary.Rec.Apply(ev)
		}
		next.core.Resume(next.now, j)
		if gone := next.lost(id); member != (gone < time.Minute) {
			t.Errorf("the other node is a member: %v; it is lost after %v", member, gone)
		}
	}
}
