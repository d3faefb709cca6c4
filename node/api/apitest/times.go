package apitest

import (
	"slices"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/node/api"
)

// testTimes wants the times of output told, as they are known, and one attempt asked for.
func testTimes(t *testing.T, f *Fake, s api.Service) {
	j := submit(t, f, s)
	var when []int64
	for i, at := range []int64{0, 1 << 40, 1 << 40, 1<<40 + 250} {
		p := piece(2, work.Stdout, int64(i), "t")
		p.At = at
		j.Emit(p)
	}
	err := s.Output(t.Context(), "last", api.OutputQuery{Rank: 2, Times: true, Since: 1}, func(o jobs.Output) error {
		when = append(when, o.At)
		return nil
	})
	if err != nil || !slices.Equal(when, []int64{0, 1 << 40, 1 << 40, 1<<40 + 250}) || f.Asked().Since != 1 || !f.Asked().Times {
		t.Errorf("times: %d, %v, asked for %+v", when, err, f.Asked())
	}
	err = s.Output(t.Context(), "last", api.OutputQuery{Rank: 2, Attempt: 3}, func(jobs.Output) error { return nil })
	if err != nil || f.Asked().Attempt != 3 {
		t.Errorf("an attempt: %v, asked for %+v", err, f.Asked())
	}
}
