package origin

import (
	"context"
	"errors"
	"fmt"
	"os"

	"zorilla/jobs"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/onend"
	"zorilla/jobs/internal/output"
)

// Output calls f with the output of a job of this origin, of one rank or of
// all (-1), in the order of its arrival; of an array, of one task or of all (see
// arrayOutput), whose ID is the rank of what it tells. Of a job with replicas each rank is told
// as a whole once a copy of it counts, or the job has ended. With follow it goes on until the job
// has ended. Of a job that has ended only the attempts that count are told. ErrDamaged comes
// after all that is left if the disk lost something of it. F must not keep what it is given.
func (a *API) Output(ctx context.Context, id jobs.ID, q jobs.OutputQuery, f func(jobs.Output) error) error {
	if q.Since > 0 && !q.Files {
		since := output.Since{From: q.Since, Tell: f}
		f = since.Take
	}
	t, err := a.own.table.telling(id)
	if err != nil {
		return err
	}
	err = t.read(ctx, q, f)
	if errors.Is(err, os.ErrNotExist) { // forgotten meanwhile
		if gone := a.own.table.inJob(id, func(*job) {}); gone != nil {
			err = gone
		}
	}
	if err != nil || q.Attempt > 0 || t.counts == nil {
		return err
	}
	return a.own.table.damaged(t.job, q.Rank) // or that the node stops, which ends its files, too
}

// telling reads the output of a job for one who asks.
type telling struct {
	loop *loop.Loop
	job  *job
	// counts reports whether the output of a worker is told; nil = it is told task by task.
	counts func(jobs.RankAttempt) bool
}

// telling returns a job to read its output. It waits for the loop.
func (t *table) telling(id jobs.ID) (of *telling, err error) {
	err = t.inJob(id, func(j *job) { of = &telling{loop: t.loop, job: j, counts: j.counted()} })
	return of, err
}

// read calls f with what is asked for. It waits for the loop.
func (t *telling) read(ctx context.Context, q jobs.OutputQuery, f func(jobs.Output) error) error {
	switch {
	case q.Files && t.job.Primary.Rec.Tasks == nil:
		return fmt.Errorf("%w: job %s has no tasks: files of its ranks are in manifests", jobs.ErrNotFound, t.job.output.Job.Short())
	case q.Attempt > 0:
		return t.attempt(ctx, q, f)
	case t.counts == nil:
		return t.tasks(q, f).read(ctx, q.Follow)
	}
	return t.job.output.Read(ctx, q.Follow, func(ra jobs.RankAttempt) bool {
		return (q.Rank < 0 || ra.Rank == q.Rank) && t.counts(ra)
	}, f)
}

// tail calls f with what the job wrote last, which has ended. It waits for the loop.
func (t *telling) tail(ctx context.Context, f func(jobs.Output) error) error {
	if t.counts != nil {
		return t.job.output.Tail(ctx, t.counts, f)
	}
	r := t.tasks(jobs.OutputQuery{Rank: -1}, f)
	r.late(onend.TailBytes)
	return r.read(ctx, false)
}

// tasks calls f with the output of tasks, or with their files, when it is read.
func (t *telling) tasks(q jobs.OutputQuery, f func(jobs.Output) error) *arrayOutput {
	r := &arrayOutput{loop: t.loop, job: t.job, files: q.Files, f: f,
		want: func(id int) bool { return q.Rank < 0 || id == q.Rank }, pieces: map[output.StreamOf][]stretch{}}
	if t.job.Primary.Rec.Spec.Replicas > 1 {
		r.replicas = &replicaOutput{loop: t.loop, told: map[jobs.RankAttempt]bool{}}
	}
	return r
}
