package primary

import (
	"slices"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
)

// readyAt reports ready ranks of node n, whose node has chosen a port for the first, and
// returns what is started.
func (c *talk) readyAt(n, port int, ras ...jobs.RankAttempt) (started []wire.Start) {
	rep := wire.Report{Job: c.p.Rec.ID}
	for _, ra := range ras {
		rep.Workers = append(rep.Workers, wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerReady, Port: port})
		port = 0
	}
	c.p.Reported(c.now, jobtest.Node(n), rep, nil, 0)
	for _, e := range c.step() {
		switch e := e.(type) {
		case DoStart:
			started = append(started, e.Start)
		case DoAnswer:
			if e.Ack.Start != nil {
				started = append(started, *e.Ack.Start)
			}
		}
	}
	return started
}

func (c *talk) wantPort(got []wire.Start, count, port int) {
	c.t.Helper()
	if len(got) != count || slices.ContainsFunc(got, func(s wire.Start) bool { return s.MasterPort() != port }) {
		c.t.Fatalf("got %+v, want %d START with port %d", got, count, port)
	}
}

// All ranks are told what rank 0's node chose last before START, also after a restart of
// the origin.
func TestPortOfRankZero(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 2})
	c.offer(1, 1)
	c.offer(2, 1)
	c.step()
	c.wantPort(c.readyAt(1, 20001, wiretest.RA(0, 1)), 0, 0)
	c.wantPort(c.readyAt(1, 20002, wiretest.RA(0, 1)), 0, 0) // its node was started again
	c.wantPort(c.readyAt(2, 0, wiretest.RA(1, 1)), 2, 20002)
	c.wantPort(c.restarted(time.Second).readyAt(2, 0, wiretest.RA(1, 1)), 1, 20002)

	c = newTalk(t, jobs.Spec{Min: 1, Max: 1})
	c.offer(1, 1)
	c.step()
	c.wantPort(c.readyAt(1, 0, wiretest.RA(0, 1)), 1, wire.WantedPort(c.p.Rec.ID)) // an older node
}

// Each replica has a rank 0 of its own.
func TestPortsOfReplicas(t *testing.T) {
	c := newTalk(t, jobs.Spec{Min: 2, Max: 2, Replicas: 2})
	c.step()
	c.offer(1, 2)
	c.offer(2, 2)
	c.step()
	c.readyAt(1, 20001, wiretest.RA(0, 1), wiretest.RA(1, 1))
	started := c.readyAt(2, 20007, wiretest.RA(2, 1), wiretest.RA(3, 1))
	if len(started) != 2 {
		t.Fatalf("got %+v", started)
	}
	for worker, want := range []int{20001, 20001, 20007, 20007} {
		if s := started[0].OfReplica(&c.p.Rec.Spec, worker); s.MasterPort() != want {
			t.Errorf("worker %d is told %d, want %d", worker, s.MasterPort(), want)
		}
	}
}
