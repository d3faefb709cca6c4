package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/output"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Status returns a job and its version. Of a job of another origin that this
// node works for it reports what the node itself knows, marked LastKnown.
func (a *API) Status(id jobs.ID) (st jobs.Status, version uint64, err error) {
	err = a.own.table.inJob(id, func(j *job) { st, version = j.view(a.own.cfg.Journal) })
	if past := (*jobs.ForgottenError)(nil); errors.As(err, &past) {
		return past.St, 1, nil
	}
	if !errors.Is(err, jobs.ErrNotFound) {
		return st, version, err // a node that stops does not know whose job it is
	}
	a.own.loop.Call(func() {
		if w := a.own.core.Part.Works[id]; w != nil {
			st, err = w.Status(a.own.self, a.own.cfg.Written), nil
		}
	})
	return st, 0, err
}

// The status of a job with many workers is dear, and changes with each of them: for so long
// for each, and at most, changes are gathered before they are told.
const (
	gatherFor    = 200 * time.Microsecond
	gatherAtMost = 200 * time.Millisecond
)

// Await returns the status of a job of this origin as soon as its version is
// not since, or soon after that, but its end at once.
func (a *API) Await(ctx context.Context, id jobs.ID, since uint64) (jobs.Status, uint64, error) {
	for {
		changed := a.own.loop.Changes()
		st, version, err := a.Status(id)
		if err == nil && version != since && since != 0 && !st.State.Final() {
			a.gather(ctx, id, min(time.Duration(len(st.Workers))*gatherFor, gatherAtMost))
			st, version, err = a.Status(id)
		}
		if err != nil || version != since || since == 0 {
			return st, version, err
		}
		for same := true; same; { // most changes are of other jobs
			select {
			case <-changed:
			case <-a.own.loop.Stopped.Done():
				return st, version, jobs.ErrStopped
			case <-ctx.Done():
				return st, version, ctx.Err()
			}
			changed = a.own.loop.Changes()
			same = a.own.table.inJob(id, func(j *job) { version = j.version() }) == nil && version == since
		}
	}
}

// gather waits for so long, or until a job of this origin has ended.
func (a *API) gather(ctx context.Context, id jobs.ID, most time.Duration) {
	late := time.NewTimer(most)
	defer late.Stop()
	for {
		changed, over := a.own.loop.Changes(), true
		_ = a.own.table.inJob(id, func(j *job) { over = j.Primary.Rec.State.Final() && len(j.Steps) == 0 }) // who is not here is over
		if over {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			return
		case <-a.own.loop.Stopped.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// Explain reports why a job of this origin waits, or ended as it did.
func (a *API) Explain(id jobs.ID) (e jobs.Explanation, err error) {
	err = a.own.table.inJob(id, func(j *job) {
		e = j.Primary.Explain(time.Now())
		if text := j.problem(a.own.cfg.Journal); text != "" && !e.State.Final() {
			e.Summary = text
		}
	})
	return e, err
}

// Cancel ends a job of this origin, or begins to, and returns when that is durable: the job
// has ended when what runs of it has, and its output and files are here, or at once.
func (a *API) Cancel(id jobs.ID, why string, atOnce bool) error {
	done := make(chan wire.Ack, 1)
	err := a.own.table.inJob(id, func(j *job) {
		j.Primary.Cancel(time.Now(), why, atOnce)
		j.Primary.Do(primary.DoAnswer{Number: a.own.answers.expect(done)})
		a.own.core.Flush(time.Now(), j.Job)
	})
	if errors.Is(err, jobs.ErrForgotten) { // it ended long ago
		return nil
	}
	if err != nil {
		return err
	}
	_, err = whenWritten(context.Background(), a.own.disk, done)
	return err
}

// ResizeHere makes another number of workers the one that a job of this origin wants, for a
// worker at a node or for a user, and returns when that is durable. Errors wrap
// jobs.ErrRange, ErrRefused or ErrNotRunning.
func (a *API) ResizeHere(ctx context.Context, from vicinity.ID, m *wire.Resize) (size jobs.Size, err error) {
	done := make(chan wire.Ack, 1)
	var refused error
	err = a.own.table.inJob(m.Job, func(j *job) {
		size, refused = j.Primary.Resize(time.Now(), from, m)
		j.Primary.Do(primary.DoAnswer{Number: a.own.answers.expect(done)})
		a.own.core.Flush(time.Now(), j.Job)
	})
	if past := (*jobs.ForgottenError)(nil); errors.As(err, &past) {
		return size, fmt.Errorf("%w: job %s has ended (%s)", jobs.ErrNotRunning, m.Job.Short(), past.St.State)
	}
	if err == nil {
		err = refused
	}
	if err != nil {
		return jobs.Size{}, err
	}
	_, err = whenWritten(ctx, a.own.disk, done)
	return size, err
}

// Stdin is the standard input of a job that a node works for, else nil. It may be
// called from any goroutine.
func (o *Jobs) Stdin(from vicinity.ID, id jobs.ID) (stdin *output.Input) {
	o.loop.Call(func() {
		if j := o.table.get(id); j != nil && j.Primary.Parts[from] != nil {
			stdin = j.stdin
		}
	})
	return stdin
}

// Stdin appends r to the standard input of rank 0 of a job of this origin, and
// ends it when r ends. It reads no further ahead of rank 0 than output.InputWindow.
func (a *API) Stdin(ctx context.Context, id jobs.ID, r io.Reader) error {
	var to *job
	if err := a.own.table.inJob(id, func(j *job) { to = j }); err != nil {
		return err
	}
	return a.own.feeds.take(ctx, to, r)
}
