package model_test

import (
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/claims"
	"zorilla/jobs/internal/jobtest"
)

// A gang, ranks of which are given to a node that cannot start them, runs
// elsewhere: that is no failure, and no retry.
func TestRigidJobBesideANodeThatCannotStartWorkers(t *testing.T) {
	for _, spec := range []jobs.Spec{{Min: 3, Max: 3}, {Min: 2, Max: 4}} {
		w := newCalm(t, 7, 3, 3, time.Second)
		bad := w.Jobs(0).Core()
		w.unable[0] = true
		declined := 0
		for range 5 {
			id := w.submit(0, spec)
			if !w.run(5*time.Minute, w.ended(id)) {
				t.Fatalf("-n %d..%d: it has not ended", spec.Min, spec.Max)
			}
			if st := w.status(id); st.State != jobs.Completed {
				t.Errorf("-n %d..%d: it is %s: %s", spec.Min, spec.Max, st.State, st.Reason)
			}
			rec := &bad.Jobs[id].Primary.Rec
			for _, k := range rec.Ranks {
				declined += max(0, k.Attempt-1)
				if k.Retries+rec.Retries > 0 {
					t.Errorf("-n %d..%d: that counts as %d retries", spec.Min, spec.Max, k.Retries+rec.Retries)
				}
			}
			w.wait(time.Minute)
		}
		if declined == 0 {
			t.Error("no rank was declined")
		}
		if bad.Claims.Starts.Broken == "" {
			t.Errorf("the node still offers after %d vain starts", bad.Claims.Starts.Misses)
		}
		w.unable[0] = false
		w.wait(2 * claims.MaxTrialPause)
		if bad.Claims.Starts.Broken != "" {
			t.Error("the node offers nothing though it could")
		}
	}
}

// Three in a row are too many; pauses grow, to an end.
func TestStartsInARow(t *testing.T) {
	var s claims.Starts
	now := jobtest.Start
	for range 2 * (claims.MaxMisses - 1) {
		s.Missed(now, "no room")
		if s.Misses == claims.MaxMisses-1 {
			s.Worked()
		}
	}
	if s.Broken != "" {
		t.Errorf("broken with a success in between: %+v", s)
	}
	for range claims.MaxMisses {
		s.Missed(now, "no room")
	}
	last := time.Duration(0)
	for range 10 {
		if s.Broken != "no room" || s.Next.Sub(now) < last || s.Next.Sub(now) > claims.MaxTrialPause {
			t.Fatalf("%+v", s)
		}
		last, now = s.Next.Sub(now), s.Next
		s.Missed(now, "no room")
	}
	if last != claims.MaxTrialPause {
		t.Errorf("the pauses end with %v", last)
	}
	if s.Worked(); s != (claims.Starts{}) {
		t.Errorf("%+v", s)
	}
}
