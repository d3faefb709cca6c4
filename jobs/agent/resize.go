package agent

import (
	"context"
	"fmt"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Resize makes another number of workers the one that a malleable job wants, or has some go on at
// other nodes, and returns what is in force when that is durable at the job's origin. Errors wrap jobs.ErrRange,
// ErrRefused, ErrNotRunning, ErrNotFound, or ErrStopped if the origin cannot be asked.
func (v visits) Resize(ctx context.Context, id jobs.ID, q jobs.Resize) (jobs.Size, error) {
	return v.resizeBy(ctx, &wire.Resize{Job: id, Resize: q})
}

// resize is Resize for what a process inside a worker here wants.
func (v visits) resize(ctx context.Context, from participant.WorkerID, q jobs.Resize) (jobs.Size, error) {
	return v.resizeBy(ctx, &wire.Resize{Job: from.Job, By: from.RankAttempt, Resize: q})
}

// resizeWithin bounds how long the origin is waited for.
const resizeWithin = 30 * time.Second

func (v visits) resizeBy(ctx context.Context, m *wire.Resize) (jobs.Size, error) {
	s := v.s
	if err := m.Resize.Check(); err != nil {
		return jobs.Size{}, err
	}
	ctx, stop := context.WithTimeout(ctx, resizeWithin)
	defer stop()
	if m.Job.Origin() == s.self.ID {
		return s.ResizeHere(ctx, s.self.ID, m)
	}
	return s.peers.Resize(ctx, m.Job.Origin(), m)
}

// resizeAsked answers other nodes: any of them about jobs that originate here.
func (v visits) resizeAsked(ctx context.Context, from vicinity.ID, m *wire.Resize) (jobs.Size, error) {
	s := v.s
	if m.Job.Origin() != s.self.ID {
		s.dropped.Refused()
		return jobs.Size{}, fmt.Errorf("%w: job %s does not originate here", jobs.ErrRefused, m.Job.Short())
	}
	return s.ResizeHere(ctx, from, m)
}
