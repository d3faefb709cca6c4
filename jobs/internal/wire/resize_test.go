package wire_test

import (
	"slices"
	"testing"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
)

func TestResizeIsChecked(t *testing.T) {
	good := func() wire.Resize {
		return wire.Resize{Job: wiretest.Job, By: wiretest.RA(3, 2), Resize: jobs.Resize{Workers: 4, Release: []int{0, 9}}}
	}
	for name, change := range map[string]func(*wire.Resize){
		"no job":          func(r *wire.Resize) { r.Job = "" },
		"no attempt":      func(r *wire.Resize) { r.By.Attempt = 0 },
		"no rank":         func(r *wire.Resize) { r.By.Rank = -1 },
		"fewer than none": func(r *wire.Resize) { r.Workers = -1 },
		"too many":        func(r *wire.Resize) { r.Workers = jobs.MaxRanks + 1 },
		"release no rank": func(r *wire.Resize) { r.Release[1] = jobs.MaxRanks },
		"release below":   func(r *wire.Resize) { r.Release[1] = -1 },
		"move no rank":    func(r *wire.Resize) { r.Resize = jobs.Resize{Move: []jobs.Move{{Rank: -1}}}; r.By = jobs.RankAttempt{} },
		"move nowhere": func(r *wire.Resize) {
			r.Resize = jobs.Resize{Move: []jobs.Move{{To: "node7"}}}
			r.By = jobs.RankAttempt{}
		},
		"a worker moves":   func(r *wire.Resize) { r.Resize = jobs.Resize{Move: []jobs.Move{{Rank: 3}}} },
		"move and release": func(r *wire.Resize) { r.Move, r.By = []jobs.Move{{Rank: 3}}, jobs.RankAttempt{} },
		"move very many": func(r *wire.Resize) {
			r.Resize = jobs.Resize{Move: make([]jobs.Move, jobs.MaxRelease+1)}
			r.By = jobs.RankAttempt{}
		},
		"release very many": func(r *wire.Resize) { r.Release = make([]int, jobs.MaxRelease+1) },
	} {
		r := good()
		if change(&r); r.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	moves := wire.Resize{Job: wiretest.Job, Resize: jobs.Resize{Move: []jobs.Move{{Rank: 3, To: wiretest.Job.Origin()}, {Rank: 4}}}}
	for _, r := range []wire.Resize{good(), {Job: wiretest.Job}, moves} {
		var got wire.Resize
		if err := codec.Unmarshal(codec.MustMarshal(r), &got); err != nil || got.Check() != nil || got.By != r.By || got.Workers != r.Workers || len(got.Release) != len(r.Release) ||
			!slices.Equal(got.Move, r.Move) {
			t.Errorf("%+v became %+v, %v", r, got, err)
		}
	}
}
