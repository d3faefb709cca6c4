package apitest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"zorilla/jobs"
	"zorilla/node/api"
)

// Limits implements api.Service.
func (f *Fake) Limits(context.Context) (jobs.Limits, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.limits, nil
}

// SetLimits implements api.Service.
func (f *Fake) SetLimits(_ context.Context, changes []string) (jobs.Limits, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.limits
	for _, c := range changes {
		if err := next.Change(c); err != nil {
			return jobs.Limits{}, fmt.Errorf("%w: %w", api.ErrInvalid, err)
		}
	}
	f.limits = next
	return next, nil
}

// Queue implements api.Service.
func (f *Fake) Queue(context.Context) ([]jobs.Waiting, error) { return slices.Clone(f.Waiting), nil }

func testOwner(t *testing.T, f *Fake, s api.Service) {
	ctx := t.Context()
	if queue, err := s.Queue(ctx); err != nil || queue == nil && len(f.Waiting) > 0 || len(queue) != 0 {
		t.Errorf("Queue: got %v, %v, want none", queue, err)
	}
	one := Example()
	f.Waiting = []jobs.Waiting{{
		Job: one.ID, Origin: one.Origin, Priority: -3, Wanted: 4, Slots: 2, Memory: 1 << 40, Disk: 1 << 41, GPUs: 1,
		Reason: "busy", Since: one.Submitted, Expires: one.Ended,
	}}
	queue, err := s.Queue(ctx)
	same(t, "Queue", queue, err, f.Waiting)

	want := jobs.Limits{Paused: true, MaxJobs: 2, MaxWorkersPerJob: 3, Allow: []string{"zeb2a", "ö & co"}, Deny: []string{"10.0.0.0/8"}}
	got, err := s.SetLimits(ctx, []string{"paused=yes", "max-jobs=2", "max-workers-per-job=3", "allow=zeb2a,ö & co", "deny+=10.0.0.0/8"})
	same(t, "SetLimits", got, err, want)
	if _, err := s.SetLimits(ctx, []string{"paused=no", "colour=red"}); !errors.Is(err, api.ErrInvalid) {
		t.Errorf("SetLimits with a change that is none: got %v, want ErrInvalid", err)
	}
	got, err = s.Limits(ctx)
	same(t, "Limits", got, err, want)
}
