package model_test

import (
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/testnet/sim"
)

// Nodes a second or two away, behind satellites or on lines that are full, take workers: alone,
// and together with one that is near.
func TestWorkersTwoSecondsAway(t *testing.T) {
	for _, far := range []time.Duration{time.Second, 2 * time.Second} {
		for name, c := range map[string]struct {
			own, near int // slots of the origin, and of another node at its site
			job       jobs.Spec
		}{
			"a worker":                {0, 0, jobs.Spec{Min: 1, Max: 1}},
			"a gang":                  {0, 0, jobs.Spec{Min: 4, Max: 4}},
			"a gang, some of it here": {2, 0, jobs.Spec{Min: 5, Max: 5}},
			"a gang, some of it near": {0, 2, jobs.Spec{Min: 5, Max: 5}},
			"at least one":            {2, 2, jobs.Spec{Min: 1, Max: 8}},
			"compact":                 {2, 1, jobs.Spec{Min: 6, Max: 6, Strategy: "compact"}},
			"copies":                  {3, 0, jobs.Spec{Min: 1, Max: 1, Replicas: 3}},
			"spread":                  {1, 1, jobs.Spec{Min: 4, Max: 4, Strategy: "spread"}},
		} {
			layout := sim.Layout{Sizes: []int{2, 2}, RTT: [][]time.Duration{{0, far}, {far, 0}}}
			for seed := range uint64(5) {
				w := newWorldAt(layout, seed+1, c.own, c.near, 2, 2)
				id, err := w.submit(0, c.job)
				if err != nil {
					t.Fatal(err)
				}
				began := w.net.Elapsed()
				all := w.run(2*time.Minute, func() bool {
					st, _ := w.Jobs(0).Status(id)
					running := 0
					for _, k := range st.Workers {
						if k.State == jobs.WorkerRunning {
							running++
						}
					}
					return running == c.job.Workers()
				})
				w.sound(t)
				if took := w.net.Elapsed() - began; !all || took > 7*far {
					st, _ := w.Jobs(0).Status(id)
					t.Errorf("%s, %v away, seed %d: after %v it is %s: %s", name, far, seed+1, took, st.State, st.Reason)
				}
			}
		}
	}
}

// Near slots that a gang needs are kept for it until nodes far away can have answered, also when
// it has waited for long and asks seldom.
func TestGangsOfNearAndFarNodesThatHadToWait(t *testing.T) {
	layout := sim.Layout{Sizes: []int{2, 2}, RTT: [][]time.Duration{{0, 2 * time.Second}, {2 * time.Second, 0}}}
	for seed := range uint64(5) {
		w := &calm{newWorldAt(layout, seed+1, 0, 2, 2, 2), t}
		w.fate = sim.Lasting(time.Millisecond, 270*time.Second)
		first := w.submit(0, jobs.Spec{Min: 2, Max: 2})
		w.wait(time.Second)
		gang := w.submit(0, jobs.Spec{Min: 6, Max: 6})
		if !w.run(10*time.Minute, w.ended(first)) {
			t.Fatal("the first job does not end")
		}
		if !w.run(30*time.Second, func() bool { return w.state(gang) == jobs.Running }) {
			t.Errorf("seed %d: half a minute after there is room it is %s: %s", seed+1, w.state(gang), w.status(gang).Reason)
		}
	}
}
