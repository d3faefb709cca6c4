package model_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/model"
	"zorilla/vicinity"
)

// filled is a world in which the nodes from the second on have two slots, and for 40 s none that is free: a gang waits.
type filled struct {
	*calm
	gang jobs.ID
}

const filledFor = 40 * time.Second

// fill submits what uses all slots, then gangs of so many workers at some nodes. The origin of the first has no slots.
func fill(t *testing.T, w *world, workers int, origins ...int) (f *filled, ids []jobs.ID) {
	t.Helper()
	f = &filled{calm: &calm{w, t}}
	long := map[jobs.ID]bool{}
	w.fate = func(id jobs.ID, _ *jobs.Spec, _ jobs.RankAttempt) model.Fate {
		if long[id] {
			return model.Fate{Prepare: time.Millisecond, Run: filledFor}
		}
		return model.Fate{Prepare: time.Millisecond, Run: 5 * time.Second}
	}
	timed := jobs.Spec{Min: 2, Max: 2, Walltime: codec.Duration(filledFor)}
	for i, n := range w.slots {
		if n > 0 {
			id := f.submit(i, timed)
			long[id] = true
		}
	}
	w.wait(2 * time.Second)
	for _, i := range origins {
		spec := jobs.Spec{Min: workers, Max: workers, Walltime: codec.Duration(20 * time.Second)}
		spec.Search.After(0)
		ids = append(ids, f.submit(i, spec))
	}
	f.gang = ids[0]
	return f, ids
}

// on has something done when a message about a booking is sent that is so, and loses it. It happens once.
func (f *filled) on(what string, do func(to int)) {
	f.lose = func(_, to int, m model.Message) bool {
		if !strings.HasPrefix(m.Describe(), what) {
			return false
		}
		if do != nil {
			then := do
			do = nil
			f.net.Schedule(0, func() { then(to) })
		}
		return true
	}
}

// promise is the start that is promised to a job; nil = none is.
func (f *filled) promise(id jobs.ID) (at time.Time, nodes []vicinity.ID) {
	m := f.origin(id)
	if m == nil || m.Core().Jobs[id].Primary.Rec.Booking == nil {
		return time.Time{}, nil
	}
	b := m.Core().Jobs[id].Primary.Rec.Booking
	for _, p := range b.Parts {
		nodes = append(nodes, p.Node)
	}
	return b.At, nodes
}

func (f *filled) promised(within time.Duration, which func(at time.Time, nodes []vicinity.ID) bool) (at time.Time) {
	f.t.Helper()
	if !f.run(within, func() bool {
		var nodes []vicinity.ID
		at, nodes = f.promise(f.gang)
		return nodes != nil && which(at, nodes)
	}) {
		f.t.Fatalf("after %v no such start is promised: %v; %s", within, at, f.status(f.gang).Reason)
	}
	return at
}

func (f *filled) booked(i int) int { return f.Jobs(i).Core().Claims.Booked() }

// ends fails unless jobs end, and nothing is booked then.
func (f *filled) ends(within time.Duration, ids ...jobs.ID) {
	f.t.Helper()
	if !f.run(within, f.ended(ids...)) {
		f.t.Fatalf("it does not end: %s", f.status(ids[len(ids)-1]).Reason)
	}
	nothing := func() bool {
		return !slices.ContainsFunc(f.net.Live(), func(i int) bool { return f.Jobs(i).Booked() > 0 })
	}
	if !f.run(wire.TentativeLease, nothing) {
		f.t.Error("something is booked still")
	}
	f.sound(f.t)
}

func whichever(time.Time, []vicinity.ID) bool { return true }

// An origin that is killed when its nodes have answered knows of the promise or does not, and so do they: it has one in
// the end.
func TestOriginIsKilledBeforeItConfirms(t *testing.T) {
	for _, away := range []time.Duration{2 * time.Second, 15 * time.Second} {
		f, _ := fill(t, newWorld(1, 0, 2, 2), 4, 0)
		f.on("confirms", func(int) { f.Kill(0, false) })
		if !f.run(20*time.Second, func() bool { return !f.net.Up(0) }) {
			t.Fatal("nothing is confirmed")
		}
		f.lose = nil
		if f.wait(away); (f.booked(1) > 0) != (away < wire.TentativeLease) {
			t.Errorf("after %v %d bookings are left", away, f.booked(1))
		}
		f.revive(0, f.Clock(0))
		f.promised(time.Second, whichever)
		f.promised(15*time.Second, func(time.Time, []vicinity.ID) bool { return f.booked(1) > 0 && f.booked(2) > 0 })
		f.ends(2*time.Minute, f.gang)
	}
}

// A node that is killed before it hears that the start is promised knows what it has booked when it is back; the job is
// promised another start with it.
func TestNodeIsKilledBeforeItConfirms(t *testing.T) {
	f, _ := fill(t, newWorld(2, 0, 2, 2), 4, 0)
	victim := -1
	f.on("confirms", func(to int) {
		victim = to
		f.Kill(to, false)
	})
	if !f.run(20*time.Second, func() bool { return victim >= 0 }) {
		t.Fatal("nothing is confirmed")
	}
	f.lose = nil
	f.wait(time.Second)
	f.revive(victim, f.Clock(victim))
	if f.booked(victim) != 1 {
		t.Errorf("it has %d bookings", f.booked(victim))
	}
	first := f.Jobs(0).Core().Jobs[f.gang].Primary.Rec.Booking.Key
	f.promised(20*time.Second, func(time.Time, []vicinity.ID) bool {
		return f.Jobs(0).Core().Jobs[f.gang].Primary.Rec.Booking.Key != first
	})
	f.ends(2*time.Minute, f.gang)
}

// A job whose node does not come back is promised another start within seconds.
func TestBookedNodeIsGone(t *testing.T) {
	f, _ := fill(t, newWorld(3, 0, 2, 2, 2), 4, 0)
	f.promised(10*time.Second, whichever)
	_, nodes := f.promise(f.gang)
	victim, _ := f.net.Index(nodes[0])
	f.Kill(victim, true)
	if !f.run(time.Minute, func() bool { return !f.Jobs(0).Core().Jobs[f.gang].Primary.Rec.Booking.Has(nodes[0]) }) {
		t.Fatalf("the start is promised with node %s, which is gone", nodes[0].Short())
	}
	if at, nodes := f.promise(f.gang); len(nodes) != 2 || f.net.Elapsed() > 30*time.Second {
		t.Errorf("after %v it is promised %v at %v", f.net.Elapsed(), at, nodes)
	}
	f.ends(2*time.Minute, f.gang)
}

// Gangs that want the same nodes at the same time both get them, one after the other.
func TestGangsBookTheSame(t *testing.T) {
	for seed := range uint64(20) {
		f, ids := fill(t, newWorld(seed+1, 0, 2, 2, 2, 0), 4, 0, 4)
		f.ends(4*time.Minute, ids...)
		if p := f.audit.Promises; p.Made < 2 || p.Late > 0 {
			t.Errorf("seed %d: %+v", seed+1, p)
		}
	}
}

// Clocks that are hours apart do no harm: all times travel as lengths.
func TestBookingsWithWrongClocks(t *testing.T) {
	w := newWorld(5, 0, 2, 2)
	for i := range w.clocks {
		w.clocks[i] += time.Duration(i-1) * 5 * time.Hour
	}
	f, _ := fill(t, w, 4, 0)
	at := f.promised(10*time.Second, whichever)
	if d := at.Add(-f.Clock(0)).Sub(time.Unix(0, 0)); d < filledFor || d > filledFor+5*time.Second {
		t.Errorf("it is promised a start %v after the begin", d)
	}
	f.ends(2*time.Minute, f.gang)
	if p := f.audit.Promises; p.Made != 1 || p.Broken+p.Late > 0 {
		t.Errorf("%+v", p)
	}
}
