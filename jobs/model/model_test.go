package model_test

import (
	"errors"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/testnet/sim"
)

// calm is a world of equal nodes whose workers run for so long.
type calm struct {
	*world
	t *testing.T
}

func newCalm(t *testing.T, seed uint64, nodes, slots int, run time.Duration) *calm {
	each := make([]int, nodes)
	for i := range each {
		each[i] = slots
	}
	w := newWorld(seed, each...)
	w.fate = sim.Lasting(time.Millisecond, run)
	return &calm{w, t}
}

func (w *calm) submit(node int, spec jobs.Spec) jobs.ID {
	w.t.Helper()
	id, err := w.world.submit(node, spec)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *calm) run(limit time.Duration, until func() bool) bool {
	w.t.Helper()
	ok := w.world.run(limit, until)
	w.sound(w.t)
	return ok
}

func (w *calm) status(id jobs.ID) jobs.Status {
	if m := w.origin(id); m != nil {
		st, _ := m.Status(id)
		return st
	}
	return jobs.Status{}
}

func TestCoresRunAJob(t *testing.T) {
	w := newCalm(t, 1, 5, 2, 10*time.Second)
	id := w.submit(0, jobs.Spec{Min: 7, Max: 7})
	if !w.run(time.Minute, w.ended(id)) {
		t.Fatal("the job did not end")
	}
	st := w.status(id)
	if st.State != jobs.Completed || len(st.Workers) != 7 || st.Started.Sub(st.Submitted) > time.Second || st.Ended.Sub(st.Started) < 10*time.Second {
		t.Fatalf("it is %s (%s), started after %v, ran %v", st.State, st.Reason, st.Started.Sub(st.Submitted), st.Ended.Sub(st.Started))
	}
	if !w.run(20*time.Second, w.idle) {
		t.Fatal("slots are still in use")
	}
	if _, _, err := w.Jobs(0).Submit(w.Local(0), jobs.Spec{}); !errors.Is(err, jobs.ErrInvalid) {
		t.Fatalf("an empty job: %v", err)
	}
}

// Jobs from everywhere, packets that get lost, and more work than room: every
// job ends, and no slot is used twice on the way.
func TestCoresShareSlots(t *testing.T) {
	for seed := range uint64(5) {
		w := newCalm(t, seed, 6, 2, time.Second)
		w.net.SetNoise(sim.Noise{Loss: 0.1})
		var ids []jobs.ID
		for i := range 18 {
			ids = append(ids, w.submit(i%6, jobs.Spec{Min: 1 + i%4, Max: 1 + i%4 + i%3}))
		}
		if !w.run(20*time.Minute, w.ended(ids...)) || !w.run(time.Minute, w.idle) {
			t.Fatalf("seed %d: not all jobs ended, or slots are still in use", seed)
		}
	}
}

func TestCoresReplaceALostNode(t *testing.T) {
	w := newCalm(t, 3, 4, 2, time.Minute)
	id := w.submit(0, jobs.Spec{Min: 4, Max: 6})
	running := func() bool {
		st := w.status(id)
		return st.State == jobs.Running && len(st.Workers) == 6
	}
	if !w.run(10*time.Second, running) {
		t.Fatal("it does not run")
	}
	w.wait(time.Second)
	for _, k := range w.status(id).Workers {
		if victim, _ := w.net.Index(k.Node); victim != 0 {
			w.Kill(victim, true)
			break
		}
	}
	if !w.run(5*time.Minute, w.ended(id)) {
		t.Fatal("the job did not end")
	}
	if st := w.status(id); st.State != jobs.Completed || len(st.Warnings) == 0 {
		t.Fatalf("it is %s, warnings %q", st.State, st.Warnings)
	}
}

// A node is killed and comes back: its workers have gone on, and so do the jobs
// that were submitted there.
func TestCoreIsRevived(t *testing.T) {
	for _, victim := range []int{0, 1} {
		w := newCalm(t, 5, 2, 2, 20*time.Second)
		id := w.submit(0, jobs.Spec{Min: 4, Max: 4, Outputs: []string{"out"}})
		waiting := w.submit(0, jobs.Spec{Min: 3, Max: 3})
		w.run(5*time.Second, func() bool { return w.state(id) == jobs.Running })
		w.wait(time.Second)
		w.Kill(victim, false)
		w.wait(4 * time.Second)
		w.Revive(victim, w.Clock(victim))
		if used, _ := w.Jobs(victim).Slots(); used != 2 {
			t.Errorf("node %d uses %d slots after its start", victim, used)
		}
		if !w.run(2*time.Minute, w.ended(id, waiting)) {
			t.Fatalf("node %d: the jobs are %s and %s", victim, w.state(id), w.state(waiting))
		}
		if st := w.status(id); st.State != jobs.Completed || st.Workers[3].Attempt != 1 || st.Ended.Sub(st.Started) > 23*time.Second {
			t.Errorf("node %d: the job is %s (%s) after %v", victim, st.State, st.Reason, st.Ended.Sub(st.Started))
		}
		if st := w.status(waiting); st.State != jobs.Completed {
			t.Errorf("node %d: the other job is %s: %s", victim, st.State, st.Reason)
		}
	}
}

// What the machine took away is lost, and the job ends so.
func TestCoreWhoseMachineFails(t *testing.T) {
	w := newCalm(t, 6, 2, 2, 20*time.Second)
	id := w.submit(0, jobs.Spec{Min: 4, Max: 4})
	w.run(5*time.Second, func() bool { return w.state(id) == jobs.Running })
	w.wait(time.Second)
	w.Kill(1, true)
	w.wait(time.Second)
	w.Revive(1, w.Clock(1)+time.Hour)
	if !w.run(time.Minute, w.ended(id)) || w.state(id) != jobs.NodeFail {
		t.Fatalf("it is %s", w.state(id))
	}
	if !w.run(time.Minute, w.idle) {
		t.Fatal("slots are in use")
	}
}

// A node that is stopped says so, and is waited for.
func TestCoreLeaves(t *testing.T) {
	w := newCalm(t, 7, 2, 2, 20*time.Second)
	id := w.submit(0, jobs.Spec{Min: 4, Max: 4})
	w.run(5*time.Second, func() bool { return w.state(id) == jobs.Running })
	w.wait(time.Second)
	w.stop(1)
	w.wait(time.Minute)
	if w.net.Up(1) || w.state(id) != jobs.Running {
		t.Fatalf("the job is %s", w.state(id))
	}
	w.Revive(1, w.Clock(1))
	if !w.run(10*time.Second, w.ended(id)) || w.state(id) != jobs.Completed {
		t.Fatalf("the job is %s", w.state(id))
	}
}

func TestCoreCancel(t *testing.T) {
	w := newCalm(t, 4, 3, 2, 0)
	id := w.submit(1, jobs.Spec{Min: 5, Max: 5})
	w.wait(5 * time.Second)
	c := w.Jobs(1)
	if used, _ := c.Slots(); c.State(id) != jobs.Running || used != 2 {
		t.Fatalf("it is %s with %d slots in use at the origin", c.State(id), used)
	}
	w.cancel(1, id)
	if !w.run(5*time.Second, w.idle) || c.State(id) != jobs.Cancelled {
		t.Fatalf("it is %s, and slots are in use", c.State(id))
	}
}

// A run can be repeated: what a Core does depends on nothing but its inputs.
func TestCoresAreDeterministic(t *testing.T) {
	var traces [2]string
	for i := range traces {
		s := weathered(9, 20*time.Second, true)
		s.sound(t)
		traces[i] = s.trace.about("", 1<<20)
	}
	if traces[0] != traces[1] || len(traces[0]) < 1000 {
		t.Fatalf("two runs with one seed differ (%d and %d bytes of trace)", len(traces[0]), len(traces[1]))
	}
}
