package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/node/api"
	"zorilla/transfer"
)

// jobService is what clients ask about jobs, wherever these originate.
type jobService struct {
	jobs  *agent.Service
	net   *network
	local origin // answers about the jobs that were submitted here
	blobs *blobService
	nodes *memberService
}

// placed says in which clusters the nodes of a job are, if that counts for it.
func (s *jobService) placed(st *jobs.Status) {
	if !st.Spec.Clustered() {
		return
	}
	names, _ := s.nodes.clusters.of(s.net.near)
	st.Workers = slices.Clone(st.Workers) // others may have the list, too
	for i := range st.Workers {
		st.Workers[i].Cluster = names[st.Workers[i].Node]
	}
}

// Submit accepts a job.
func (s *jobService) Submit(ctx context.Context, spec jobs.Spec) (jobs.ID, error) {
	id, err := s.jobs.Submit(ctx, spec)
	if err == nil {
		s.blobs.submitted(spec.Inputs, s.jobs.Inputs(id))
	}
	return id, err
}

// Job returns one job, as far as this node knows if its origin cannot be asked.
func (s *jobService) Job(ctx context.Context, ref string) (jobs.Status, error) {
	id, at, err := s.of(ctx, ref)
	var st jobs.Status
	if err == nil {
		st, err = at.Job(ctx, string(id))
		err = cmp.Or(err, isOf(&st, id))
	}
	if errors.Is(err, api.ErrUnavailable) {
		if last, _, unknown := s.jobs.Status(id); unknown == nil {
			st, err = last, nil
		}
	}
	s.placed(&st)
	return st, err
}

// isOf refuses a status that its origin has of another job: clients treat the jobs of this node
// as their own.
func isOf(st *jobs.Status, id jobs.ID) error {
	if st.ID == id {
		return nil
	}
	return fmt.Errorf("%w: the origin of job %s answered about another one", api.ErrRefused, id.Short())
}

// Await returns a job's status when it has changed.
func (s *jobService) Await(ctx context.Context, ref string, since uint64) (jobs.Status, uint64, error) {
	id, at, err := s.of(ctx, ref)
	if err != nil {
		return jobs.Status{}, 0, err
	}
	st, version, err := at.Await(ctx, string(id), since)
	err = cmp.Or(err, isOf(&st, id))
	if err == nil && st.State.Final() && s.here(id) {
		s.jobs.Read(id)
	}
	s.placed(&st)
	return st, version, err
}

// awaitUnread is Await for jobs that wait for others, which do not count as
// readers. The ID is whole, so that nobody but the job's own origin can say that
// it is not known.
func (s *jobService) awaitUnread(ctx context.Context, id jobs.ID, since uint64) (jobs.Status, uint64, error) {
	_, at, err := s.of(ctx, string(id))
	if err != nil {
		return jobs.Status{}, 0, err
	}
	return at.Await(ctx, string(id), since)
}

// Tasks lists tasks of an array.
func (s *jobService) Tasks(ctx context.Context, ref string, q jobs.TaskQuery) (jobs.TaskPage, error) {
	id, at, err := s.of(ctx, ref)
	if err != nil {
		return jobs.TaskPage{}, err
	}
	return at.Tasks(ctx, string(id), q)
}

// Explain reports why a job waits.
func (s *jobService) Explain(ctx context.Context, ref string) (jobs.Explanation, error) {
	id, at, err := s.of(ctx, ref)
	if err != nil {
		return jobs.Explanation{}, err
	}
	return at.Explain(ctx, string(id))
}

// Cancel ends a job.
func (s *jobService) Cancel(ctx context.Context, ref string, atOnce bool) error {
	id, at, err := s.of(ctx, ref)
	if err != nil {
		return err
	}
	return at.Cancel(ctx, string(id), atOnce)
}

// Remove forgets a job. Whose node keeps it decides about it, so that it is not
// asked of other nodes.
func (s *jobService) Remove(ctx context.Context, ref string) error {
	id, _, err := s.of(ctx, ref)
	if err != nil {
		return err
	}
	if !s.here(id) {
		return fmt.Errorf("%w: job %s was submitted at node %s: remove it there", api.ErrRefused, id.Short(), id.Origin().Short())
	}
	return s.jobs.Remove(id)
}

// Output reports what a job's workers wrote.
func (s *jobService) Output(ctx context.Context, ref string, q api.OutputQuery, f func(jobs.Output) error) error {
	id, at, err := s.of(ctx, ref)
	if err != nil {
		return err
	}
	return at.Output(ctx, string(id), q, f)
}

// Stdin feeds rank 0.
func (s *jobService) Stdin(ctx context.Context, ref string, r io.Reader) error {
	id, at, err := s.of(ctx, ref)
	if err != nil {
		return err
	}
	return at.Stdin(ctx, string(id), r)
}

// Enter runs one more command beside that of a rank.
func (s *jobService) Enter(ctx context.Context, ref string, rank int, in io.Reader, out io.Writer) error {
	id, _, err := s.of(ctx, ref)
	if err != nil {
		return err
	}
	return s.jobs.Enter(ctx, id, rank, in, out)
}

// Resize asks for another number of workers, or for other nodes for some.
func (s *jobService) Resize(ctx context.Context, ref string, q jobs.Resize) (jobs.Size, error) {
	id, _, err := s.of(ctx, ref)
	if err != nil {
		return jobs.Size{}, err
	}
	if q.Move, err = s.found(ctx, q.Move); err != nil {
		return jobs.Size{}, err
	}
	return s.jobs.Resize(ctx, id, q)
}

// found names the nodes to which ranks are to go by their IDs.
func (s *jobService) found(ctx context.Context, list []jobs.Move) ([]jobs.Move, error) {
	if !slices.ContainsFunc(list, func(m jobs.Move) bool { return m.To != "" && !m.To.Valid() }) {
		return list, nil
	}
	all, err := s.nodes.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	for i := range list {
		if to := &list[i].To; *to != "" && !to.Valid() { // the job's origin may know what this node does not
			n, err := findNode(all, string(*to))
			if err != nil {
				return nil, err
			}
			*to = n.ID
		}
	}
	return list, nil
}

// Snapshot returns what files a rank that runs has made until now.
func (s *jobService) Snapshot(ctx context.Context, ref string, rank int, globs []string) (jobs.RankOutput, error) {
	id, _, err := s.of(ctx, ref)
	if err != nil {
		return jobs.RankOutput{}, err
	}
	return s.jobs.Snapshot(ctx, id, rank, globs)
}

// Chunk returns one chunk: from here, else from the origin of the job.
func (s *jobService) Chunk(ctx context.Context, job string, h transfer.Hash) ([]byte, error) {
	b, err := s.blobs.chunk(h)
	if !errors.Is(err, api.ErrNotFound) {
		if id := jobs.ID(job); id.Valid() {
			s.jobs.Read(id)
		}
		return b, err
	}
	if job == "" {
		return nil, err
	}
	id, at, ofErr := s.of(ctx, job)
	switch {
	case ofErr != nil:
		return nil, ofErr
	case s.here(id):
		return nil, err
	}
	return at.Chunk(ctx, "", h)
}
