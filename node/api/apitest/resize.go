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

// Resize implements api.Service for jobs of 2 to 8 workers, of which those have started that
// were asked for.
func (f *Fake) Resize(_ context.Context, name string, q jobs.Resize) (jobs.Size, error) {
	j, err := f.Find(name)
	if err != nil {
		return jobs.Size{}, err
	}
	if err := q.Check(); err != nil {
		return jobs.Size{}, err
	}
	size := jobs.Size{Wanted: 8, Have: 8, Min: 2, Max: 8}
	if q.Workers == 0 && len(q.Release) > 0 {
		q.Workers = size.Have - len(slices.Compact(slices.Sorted(slices.Values(q.Release))))
	}
	if q.Workers != 0 {
		size.Wanted, size.Have = q.Workers, q.Workers
	}
	size.Moving = len(q.Move)
	switch {
	case j.Status().State.Final():
		return jobs.Size{}, fmt.Errorf("%w: job %s has ended", jobs.ErrNotRunning, name)
	case size.Wanted < size.Min || size.Wanted > size.Max:
		return jobs.Size{}, fmt.Errorf("%w: %d workers: job %s has 2 to 8", jobs.ErrRange, size.Wanted, name)
	}
	return size, nil
}

func testResize(t *testing.T, f *Fake, s api.Service) {
	j := submit(t, f, s)
	for _, c := range []struct {
		q    jobs.Resize
		want int
		err  error
	}{
		{jobs.Resize{}, 8, nil},
		{jobs.Resize{Workers: 3, Release: []int{1}}, 3, nil},
		{jobs.Resize{Release: []int{7, 1, 1}}, 6, nil},
		{jobs.Resize{Workers: 9}, 0, jobs.ErrRange},
		{jobs.Resize{Workers: jobs.MaxRanks + 1}, 0, jobs.ErrRange},
		{jobs.Resize{Release: make([]int, 8)}, 7, nil},
		{jobs.Resize{Move: []jobs.Move{{Rank: 1, To: "lima"}, {Rank: 2}}}, 8, nil},
		{jobs.Resize{Workers: 3, Move: []jobs.Move{{Rank: 1}}}, 0, jobs.ErrRange},
	} {
		got, err := s.Resize(t.Context(), "last", c.q)
		if !errors.Is(err, c.err) || got.Wanted != c.want || err == nil && got.Moving != len(c.q.Move) {
			t.Errorf("%+v: %+v, %v", c.q, got, err)
		}
	}
	if _, err := s.Resize(t.Context(), "zzz", jobs.Resize{}); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	j.Update(func(st *jobs.Status) { st.State = jobs.Completed })
	if _, err := s.Resize(t.Context(), "last", jobs.Resize{Workers: 3}); !errors.Is(err, jobs.ErrNotRunning) {
		t.Errorf("got %v, want ErrNotRunning", err)
	}
}
