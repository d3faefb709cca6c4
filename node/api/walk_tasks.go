package api

import (
	"cmp"
	"context"
	"errors"

	"zorilla/jobs"
	"zorilla/jobs/process"
	"zorilla/transfer"
)

// ErrEnough is how a function that is told of files says that it needs no more, and how
// WalkTaskFiles says that there are more.
var ErrEnough = errors.New("there is more than was wanted")

// WalkTaskFiles calls f with the output files of the tasks of an array that have ended, task by
// task, or of one (-1 = all), which may be none's. What a file consists of is in put by then. It
// reads so many bytes at most, and ends with ErrEnough if there are more, or if f says so. With an
// error that wraps jobs.ErrDamaged f was told of all that is left.
func WalkTaskFiles(ctx context.Context, s outputTeller, st *jobs.Status, task int, most int64, put transfer.Putter, f func(task int, e transfer.Entry) error) error {
	if st.Spec.Array == nil {
		return nil
	}
	t := &taskFetch{numbers: process.NumberTasks(st.Spec.Array.Tasks), globs: st.Spec.Globs(), task: task, put: put, now: -1, each: f, most: most}
	err := s.Output(ctx, string(st.ID), OutputQuery{Rank: task, Files: true}, t.receive)
	if errors.Is(err, jobs.ErrDamaged) {
		t.finish(nil)
	} else {
		t.finish(err)
	}
	switch {
	case errors.Is(err, ErrEnough), errors.Is(t.broken, ErrEnough):
		return ErrEnough
	}
	return cmp.Or(err, t.broken)
}

// outputTeller is the part of a Service that WalkTaskFiles needs.
type outputTeller interface {
	Output(ctx context.Context, job string, q OutputQuery, f func(jobs.Output) error) error
}
