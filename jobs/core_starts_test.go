package jobs

import (
	"testing"
	"time"
)

// A gang, ranks of which are given to a node that cannot start them, runs
// elsewhere: that is no failure, and no retry.
func TestRigidJobBesideANodeThatCannotStartWorkers(t *testing.T) {
	for _, spec := range []Spec{{Min: 3, Max: 3}, {Min: 2, Max: 4}} {
		w := newCalm(t, 7, 3, 3, time.Second)
		bad := w.nodes[0]
		bad.unable = true
		declined := 0
		for range 5 {
			id := w.submit(0, spec)
			if !w.run(5*time.Minute, w.ended(id)) {
				t.Fatalf("-n %d..%d: it has not ended", spec.Min, spec.Max)
			}
			if st := w.status(id); st.State != Completed {
				t.Errorf("-n %d..%d: it is %s: %s", spec.Min, spec.Max, st.State, st.Reason)
			}
			rec := &bad.core.core.jobs[id].core.rec
			for _, k := range rec.ranks {
				declined += max(0, k.attempt-1)
				if k.retries+rec.retries > 0 {
					t.Errorf("-n %d..%d: that counts as %d retries", spec.Min, spec.Max, k.retries+rec.retries)
				}
			}
			w.wait(time.Minute)
		}
		if declined == 0 {
			t.Error("no rank was declined")
		}
		if bad.core.core.claims.starts.broken == "" {
			t.Errorf("the node still offers after %d vain starts", bad.core.core.claims.starts.misses)
		}
		bad.unable = false
		w.wait(2 * maxTrialPause)
		if bad.core.core.claims.starts.broken != "" {
			t.Error("the node offers nothing though it could")
		}
	}
}

// Three in a row are too many; pauses grow, to an end.
func TestStartsInARow(t *testing.T) {
	var s starts
	now := start
	for range 2 * (maxMisses - 1) {
		s.missed(now, "no room")
		if s.misses == maxMisses-1 {
			s.worked()
		}
	}
	if s.broken != "" {
		t.Errorf("broken with a success in between: %+v", s)
	}
	for range maxMisses {
		s.missed(now, "no room")
	}
	last := time.Duration(0)
	for range 10 {
		if s.broken != "no room" || s.next.Sub(now) < last || s.next.Sub(now) > maxTrialPause {
			t.Fatalf("%+v", s)
		}
		last, now = s.next.Sub(now), s.next
		s.missed(now, "no room")
	}
	if last != maxTrialPause {
		t.Errorf("the pauses end with %v", last)
	}
	if s.worked(); s != (starts{}) {
		t.Errorf("%+v", s)
	}
}
