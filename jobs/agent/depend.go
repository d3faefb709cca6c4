package agent

import (
	"context"
	"errors"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/wire"
)

// AwaitFunc returns a job's status when its version is not since; see
// Service.Await. It wraps ErrNotFound if the job's origin does not know it.
type AwaitFunc func(ctx context.Context, id jobs.ID, since uint64) (jobs.Status, uint64, error)

// follow finds out how a job ends that another one waits for.
func (s *Service) follow(e core.DoFollow) {
	s.loop.Go(func() {
		if state, ok := s.awaitEnd(e.After); ok {
			s.loop.Post(func() {
				s.core.Update(time.Now(), e.Job, func(p *primary.Primary) { p.Followed(time.Now(), e.After, state) })
			})
		}
	})
}

// awaitEnd returns the final state of a job, "" if nobody knows it; ok is false
// if the service stops first.
func (s *Service) awaitEnd(id jobs.ID) (state jobs.State, ok bool) {
	await := s.cfg.Await
	if await == nil {
		await = s.Await
	}
	version := uint64(0)
	for s.loop.Stopped.Err() == nil {
		st, v, err := await(s.loop.Stopped, id, version)
		switch {
		case err == nil && st.State.Final() && !st.LastKnown:
			return st.State, true
		case errors.Is(err, jobs.ErrNotFound):
			return "", true
		case err == nil && v != version:
			version = v
			continue
		}
		select {
		case <-time.After(wire.AskAgain):
		case <-s.loop.Stopped.Done():
		}
	}
	return "", false
}
