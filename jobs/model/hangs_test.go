package model_test

import (
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/model"
)

// Jobs end beside a node that is alive and does nothing, whether it knows that or not: others have
// room for them. It has its part again when its disk answers.
func TestJobsEndBesideANodeThatDoesNothing(t *testing.T) {
	for _, knows := range []bool{false, true} {
		for _, spec := range []jobs.Spec{{Min: 3, Max: 3}, {Min: 2, Max: 4}, {Min: 1, Max: 1}} {
			w := newCalm(t, 7, 3, 2, time.Second)
			idle := func(yes bool) {
				w.hangs[1] = yes
				if knows || !yes {
					w.Do(1, func(m *model.Model, now time.Time) model.Actions { return m.Answers(now, !yes) })
				}
			}
			idle(true)
			for range 5 {
				id := w.submit(0, spec)
				if !w.run(5*time.Minute, w.ended(id)) {
					t.Fatalf("-n %d..%d, knows %v: it has not ended: %+v", spec.Min, spec.Max, knows, w.status(id))
				}
				if st := w.status(id); st.State != jobs.Completed {
					t.Errorf("-n %d..%d, knows %v: it is %s: %s", spec.Min, spec.Max, knows, st.State, st.Reason)
				}
			}
			if why := w.Jobs(1).Core().Claims.Disk.Hangs; why != knows {
				t.Errorf("%s: %v", wire.ReasonHangs, why)
			}
			idle(false)
			w.wait(2 * time.Minute)
			if n := w.Jobs(1).Core().Claims.HeldSlots(); n != 0 {
				t.Errorf("-n %d..%d, knows %v: %d slots are not free again", spec.Min, spec.Max, knows, n)
			}
		}
	}
}
