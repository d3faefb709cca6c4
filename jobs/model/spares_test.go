package model_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/model"
	"zorilla/jobs/placement/mapping"
	"zorilla/testnet/sim"
)

// A job with spares goes on at once when it loses nodes, one after the other, although others wait for every slot;
// also after its origin was killed in between. When it ends nothing is left of them.
func TestSparesTakeOver(t *testing.T) {
	site := []time.Duration{0, 20 * time.Millisecond}
	layout := sim.Layout{Sizes: []int{5, 5}, RTT: [][]time.Duration{site, {site[1], 0}}}
	for name, spec := range map[string]jobs.Spec{
		"mapped":    {Min: 4, Max: 4, Strategy: "maheve", Placing: jobs.Placing{Spares: 2, Graph: &mapping.Listed{Name: "ring:4"}}},
		"malleable": {Min: 3, Max: 4, Placing: jobs.Placing{Spares: 2}},
		"apart":     {Min: 3, Max: 4, Placing: jobs.Placing{Spares: 2, OnePerNode: true}},
		"compact":   {Min: 3, Max: 4, Strategy: "compact", Placing: jobs.Placing{Spares: 2}},
	} {
		for seed := range uint64(8) {
			w := &calm{newWorldAt(layout, seed+1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1), t}
			w.fate = sim.Lasting(time.Millisecond, 10*time.Minute)
			id := w.submit(0, spec)
			fail := func(format string, args ...any) {
				t.Helper()
				t.Fatalf("%s, seed %d: %s: %s", name, seed+1, fmt.Sprintf(format, args...), w.status(id).Reason)
			}
			runs := func(spares int) func() bool {
				return func() bool {
					st := w.status(id)
					running := slices.DeleteFunc(st.Workers, func(k jobs.WorkerStatus) bool { return k.State != jobs.WorkerRunning })
					return len(running) == 4 && ready(st.Spares) == spares
				}
			}
			if !w.run(time.Minute, runs(2)) {
				fail("it has no spares: %+v", w.status(id).Spares)
			}
			for _, k := range w.status(id).Spares {
				if slices.ContainsFunc(w.status(id).Workers, func(r jobs.WorkerStatus) bool { return r.Node == k.Node }) {
					fail("spares and ranks are at one node")
				}
			}
			for range 8 {
				w.submit(5, jobs.Spec{Min: 1, Max: 1})
			}
			w.wait(20 * time.Second)
			for _, left := range []int{1, 0} {
				victim, _ := w.net.Index(w.status(id).Workers[1+left].Node)
				w.Kill(victim, true)
				w.wait(time.Second)
				if left == 0 {
					w.Kill(0, false)
					w.wait(2 * time.Second)
					w.Revive(0, w.Clock(0))
				}
				if !w.run(20*time.Second, runs(left)) {
					fail("with %d nodes lost it has %+v, %+v", 2-left, w.status(id).Workers, w.status(id).Spares)
				}
			}
			if !w.run(time.Hour, func() bool { return w.state(id).Final() }) {
				fail("it does not end")
			}
			w.wait(time.Minute)
			for i := range w.slots {
				if m := w.Jobs(i); m != nil && len(m.Core().Claims.Spares) > 0 {
					fail("node %d still has spares", i)
				}
			}
			w.sound(t)
		}
	}
}

// ready returns how many spares have the inputs.
func ready(list []jobs.Spare) (n int) {
	for _, s := range list {
		if s.Ready {
			n += s.Workers
		}
	}
	return n
}

// The origin keeps spares itself as others do, and a node that is drained gives them back.
func TestSparesAtTheOrigin(t *testing.T) {
	w := newCalm(t, 3, 3, 1, time.Second)
	first := w.submit(0, jobs.Spec{Min: 1, Max: 1})
	w.wait(500 * time.Millisecond)
	w.fate = sim.Lasting(time.Millisecond, 10*time.Minute)
	id := w.submit(0, jobs.Spec{Min: 1, Max: 2, Placing: jobs.Placing{Spares: 1}})
	kept := func() bool {
		list := w.status(id).Spares
		return w.state(first).Final() && ready(list) == 1 && list[0].Node == w.net.ID(0)
	}
	if !w.run(2*time.Minute, kept) {
		t.Fatalf("its spares are %+v: %s", w.status(id).Spares, w.status(id).Reason)
	}
	w.Do(0, func(m *model.Model, now time.Time) model.Actions { return m.Drain(now, false) })
	if !w.run(5*time.Second, func() bool { used, _ := w.Jobs(0).Slots(); return used == 0 && len(w.status(id).Spares) == 0 }) {
		t.Errorf("a node that is drained keeps %+v", w.status(id).Spares)
	}
}
