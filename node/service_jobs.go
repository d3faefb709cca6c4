package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// Submit accepts a job.
func (s *service) Submit(ctx context.Context, spec jobs.Spec) (jobs.ID, error) {
	id, err := s.n.jobs.Submit(ctx, spec)
	if err == nil && !spec.Inputs.IsZero() && !s.uploads.idle() { // the job keeps them itself
		if tree, err := transfer.LoadManifest(s.n.store, spec.Inputs); err == nil {
			s.uploads.submitted(append(tree.Chunks(), spec.Inputs)...)
		}
	}
	return id, err
}

// Jobs lists jobs, with all those of every member. Other origins are asked how
// the jobs are that this node works for.
func (s *service) Jobs(ctx context.Context, all bool) ([]jobs.Status, error) {
	list := s.n.jobs.List(jobs.ListEnded)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if !all {
		inParallel(list, func(st *jobs.Status) {
			if !st.LastKnown {
				return
			}
			if now, err := s.Job(ctx, string(st.ID)); err == nil {
				*st = now
			}
		})
		slices.SortFunc(list, jobs.InOrder) // an origin may have told of an end
		return list, nil
	}
	var mu sync.Mutex
	inParallel(s.n.overlay.Members(), func(m *vicinity.Member) {
		more, err := s.at(m.ID).Jobs(ctx, false)
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		list = append(list, more...)
	})
	return merge(list), nil
}

// merge keeps one status of each job, its origin's where there is one, in the
// order of jobs.InOrder.
func merge(list []jobs.Status) []jobs.Status {
	best := map[jobs.ID]jobs.Status{}
	for _, st := range list {
		if old, ok := best[st.ID]; !ok || old.LastKnown && !st.LastKnown {
			best[st.ID] = st
		}
	}
	out := make([]jobs.Status, 0, len(best))
	for _, st := range best {
		out = append(out, st)
	}
	slices.SortFunc(out, jobs.InOrder)
	return out
}

// Job returns one job.
func (s *service) Job(ctx context.Context, ref string) (jobs.Status, error) {
	id, remote, err := s.locate(ctx, ref)
	if err == nil && remote != nil {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		st, rerr := remote.Job(ctx, string(id))
		if rerr == nil || errors.Is(rerr, api.ErrNotFound) {
			return st, rerr
		}
		err = fmt.Errorf("%w: the origin of job %s does not answer: %w", api.ErrUnavailable, id.Short(), rerr)
	}
	if err != nil && !errors.Is(err, api.ErrUnavailable) {
		return jobs.Status{}, err
	}
	st, _, known := s.n.jobs.Status(id)
	if known != nil {
		return st, cmp.Or(err, known)
	}
	return st, nil
}

// Await returns a job's status when it has changed.
func (s *service) Await(ctx context.Context, ref string, since uint64) (jobs.Status, uint64, error) {
	id, remote, err := s.locate(ctx, ref)
	if err != nil {
		return jobs.Status{}, 0, err
	}
	if remote != nil {
		return remote.Await(ctx, string(id), since)
	}
	st, version, err := s.n.jobs.Await(ctx, id, since)
	if err == nil && st.State.Final() {
		s.n.jobs.Read(id)
	}
	return st, version, err
}

// awaitJob is Await for jobs that wait for others, which do not count as readers. The ID is whole, so that
// nobody but the job's own origin can say that it is not known.
func (s *service) awaitJob(ctx context.Context, id jobs.ID, since uint64) (jobs.Status, uint64, error) {
	whole, remote, err := s.locate(ctx, string(id))
	if err != nil {
		return jobs.Status{}, 0, notKnown(err)
	}
	if remote == nil {
		return s.n.jobs.Await(ctx, whole, since)
	}
	st, version, err := remote.Await(ctx, string(id), since)
	return st, version, notKnown(err)
}

// notKnown makes the error of another node that of package jobs.
func notKnown(err error) error {
	if errors.Is(err, api.ErrNotFound) {
		err = fmt.Errorf("%w: %w", jobs.ErrNotFound, err)
	}
	return err
}

// Tasks lists tasks of an array.
func (s *service) Tasks(ctx context.Context, ref string, q jobs.TaskQuery) (jobs.TaskPage, error) {
	id, remote, err := s.locate(ctx, ref)
	if err != nil {
		return jobs.TaskPage{}, err
	}
	if remote != nil {
		return remote.Tasks(ctx, string(id), q)
	}
	return s.n.jobs.Tasks(id, q)
}

// Explain tells why a job waits.
func (s *service) Explain(ctx context.Context, ref string) (jobs.Explanation, error) {
	id, remote, err := s.locate(ctx, ref)
	if err != nil {
		return jobs.Explanation{}, err
	}
	if remote != nil {
		return remote.Explain(ctx, string(id))
	}
	return s.n.jobs.Explain(id)
}

// Cancel ends a job.
func (s *service) Cancel(ctx context.Context, ref string) error {
	id, remote, err := s.locate(ctx, ref)
	if err != nil {
		return err
	}
	if remote != nil {
		return remote.Cancel(ctx, string(id))
	}
	return s.n.jobs.Cancel(id, "cancelled by a user")
}

// Remove forgets a job. Whose node keeps it decides about it, so that it is not
// asked of other nodes.
func (s *service) Remove(ctx context.Context, ref string) error {
	id, remote, err := s.locate(ctx, ref)
	if err != nil {
		return err
	}
	if remote != nil {
		return fmt.Errorf("%w: job %s was submitted at node %s: remove it there", api.ErrRefused, id.Short(), id.Origin().Short())
	}
	return s.n.jobs.Remove(id)
}

// Output tells what a job's workers wrote.
func (s *service) Output(ctx context.Context, ref string, q api.OutputQuery, f func(jobs.Output) error) error {
	id, remote, err := s.locate(ctx, ref)
	if err != nil {
		return err
	}
	if remote != nil {
		return remote.Output(ctx, string(id), q, f)
	}
	if err = s.n.jobs.Output(ctx, id, q, f); err == nil {
		s.n.jobs.Read(id)
	}
	return err
}

// Stdin feeds rank 0.
func (s *service) Stdin(ctx context.Context, ref string, r io.Reader) error {
	id, remote, err := s.locate(ctx, ref)
	if err != nil {
		return err
	}
	if remote != nil {
		return remote.Stdin(ctx, string(id), r)
	}
	err = s.n.jobs.Stdin(ctx, id, r)
	if errors.Is(err, jobs.ErrEnded) {
		err = fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	}
	return err
}
