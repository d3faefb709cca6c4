package model_test

import (
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/model"
)

// A slot that becomes free is offered to the job that waits for it within 100
// milliseconds, whether a worker left it or the owner lifted a limit.
func TestFreeSlotIsOfferedSoon(t *testing.T) {
	const soon = 100 * time.Millisecond
	for seed := range uint64(20) {
		w := newCalm(t, seed, 1, 4, 30*time.Second)
		c := w.Jobs(0)
		first := w.submit(0, jobs.Spec{Min: 4, Max: 4})
		if !w.run(5*time.Second, func() bool { return c.State(first) == jobs.Running }) {
			t.Fatal("it does not run")
		}
		second := w.submit(0, jobs.Spec{Min: 2, Max: 2})
		if !w.run(time.Minute, func() bool { used, _ := c.Slots(); return used < 4 }) {
			t.Fatal("it does not end")
		}
		freed := w.net.Elapsed()
		if !w.run(time.Minute, func() bool { return w.holds(c, second) }) || w.net.Elapsed()-freed > soon {
			t.Fatalf("seed %d: the slots were free after %v and offered %v later", seed, freed, w.net.Elapsed()-freed)
		}

		w = newCalm(t, seed, 1, 4, 30*time.Second)
		c = w.Jobs(0)
		w.limit(0, jobs.Limits{Paused: true})
		first = w.submit(0, jobs.Spec{Min: 2, Max: 2})
		w.run(7*time.Second, func() bool { return w.holds(c, first) })
		if len(c.Core().Claims.Queue) != 1 || w.holds(c, first) {
			t.Fatalf("seed %d: a paused node has %d jobs in its queue", seed, len(c.Core().Claims.Queue))
		}
		w.limit(0, jobs.Limits{})
		lifted := w.net.Elapsed()
		if !w.run(time.Minute, func() bool { return w.holds(c, first) }) || w.net.Elapsed()-lifted > soon {
			t.Fatalf("seed %d: the limit was lifted, and the slots were offered %v later", seed, w.net.Elapsed()-lifted)
		}
	}
}

// holds reports whether slots are held for, or used by, a job.
func (w *world) holds(c *model.Model, id jobs.ID) bool {
	for _, h := range c.Holdings() {
		if h.Job == id {
			return true
		}
	}
	return false
}
