package agent_test

import (
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
)

func TestDrain(t *testing.T) {
	bubble(t, 3, 2, func(t *testing.T, g *grid) {
		id := g.submit(0, jobs.Spec{Args: ticking(60), Min: 1, Max: 4, Outputs: []string{"left"}})
		st := g.await(0, id, time.Minute, func(st jobs.Status) bool {
			return st.State == jobs.Running && len(st.Workers) == 4 && st.Workers[3].State == jobs.WorkerRunning
		})
		victim := g.nodes[st.Workers[3].Node]
		time.Sleep(time.Second)
		victim.service.Drain(false, false)
		if d := victim.service.Drained(); d != (jobs.Drained{Draining: true, Workers: 2}) {
			t.Errorf("got %+v", d)
		}
		other := g.submit(0, jobs.Spec{Args: []string{"echo"}, Min: 3, Max: 3, GiveUp: 5e9})
		if st := g.await(0, other, time.Minute, final); st.State != jobs.Failed || !strings.Contains(st.Reason, "1 draining") {
			t.Errorf("the next job is %s: %s", st.State, st.Reason)
		}
		if victim.runner.Running() != 2 {
			t.Errorf("%d workers run at the draining node", victim.runner.Running())
		}
		victim.service.Undrain()
		if d := victim.service.Drained(); d != (jobs.Drained{Workers: 2}) {
			t.Errorf("got %+v", d)
		}
		victim.service.Drain(true, false)
		st = g.await(0, id, time.Minute, func(st jobs.Status) bool {
			return st.Workers[3].State == jobs.WorkerRunning && st.Workers[3].Attempt == 2 && st.Workers[2].State == jobs.WorkerRunning
		})
		if st.Workers[3].Node == victim.self.ID || victim.runner.Running() != 0 {
			t.Errorf("%d workers run at the drained node; the ranks are %+v", victim.runner.Running(), st.Workers)
		}
		time.Sleep(time.Second)
		if d := victim.service.Drained(); d != (jobs.Drained{Draining: true}) {
			t.Errorf("got %+v", d)
		}
		if st := g.await(0, id, 5*time.Minute, final); st.State != jobs.Completed || g.output(0, id, 3) != ticks(3, 60) {
			t.Errorf("the job is %s: %s", st.State, st.Reason)
		}
	})
}

// A rigid job cannot go on without the node.
func TestDrainNowUnderARigidJob(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		id := g.submit(0, jobs.Spec{Args: []string{"sleep", "1000"}, Min: 4, Max: 4})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		time.Sleep(time.Second)
		g.node(1).service.Drain(true, false)
		if st := g.await(0, id, 10*time.Second, final); st.State != jobs.NodeFail || !strings.Contains(st.Reason, "draining") {
			t.Errorf("the job is %s: %s", st.State, st.Reason)
		}
	})
}

func TestOffersOfADrainingNodeAreVoid(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		g.node(1).service.Drain(false, false)
		id := g.submit(0, jobs.Spec{Args: []string{"echo"}, Min: 4, Max: 4})
		time.Sleep(10 * time.Second)
		e, err := g.node(0).service.Explain(id)
		if err != nil || e.Declined["draining"] != 1 {
			t.Errorf("got %+v, %v", e, err)
		}
		g.node(1).service.Undrain()
		if st := g.await(0, id, time.Minute, final); st.State != jobs.Completed {
			t.Errorf("the job is %s: %s", st.State, st.Reason)
		}
	})
}
