package agent

import (
	"context"
	"crypto/sha256"
	"fmt"

	"zorilla/jobs"
)

// keyed is the job that was submitted with a key.
type keyed struct {
	id  jobs.ID
	sum [sha256.Size]byte // of its spec
}

// keep remembers the key of a job for as long as the job is known.
func (s *Service) keep(spec *jobs.Spec, id jobs.ID) {
	if spec.Key != "" {
		s.keys[spec.Key] = keyed{id, spec.Sum()}
	}
}

// unkey forgets the key of a job that is not known any more.
func (s *Service) unkey(key string, id jobs.ID) {
	if key != "" && s.keys[key].id == id {
		delete(s.keys, key)
	}
}

// join lets a submission share the outcome of an earlier one that had the same
// key. The ID is "" if there was none. It runs in the loop.
func (s *Service) join(spec *jobs.Spec, accepted chan<- error) (jobs.ID, error) {
	k, known := s.keys[spec.Key]
	if spec.Key == "" || !known {
		return "", nil
	}
	if k.sum != spec.Sum() {
		return "", fmt.Errorf("%w: --key %s was used for job %s, which is not the same: each job needs a key of its own", jobs.ErrInvalid, spec.Key, k.id.Short())
	}
	if j := s.jobs[k.id]; j != nil && j.submitters != nil {
		j.submitters = append(j.submitters, accepted)
	} else {
		accepted <- nil
	}
	return k.id, nil
}

// outcome waits until it is known whether a job is accepted that was begun (ok),
// unless that failed.
func (s *Service) outcome(ctx context.Context, id jobs.ID, accepted <-chan error, ok bool, failed error) (jobs.ID, error) {
	if !ok {
		return "", jobs.ErrStopped
	}
	if failed != nil {
		return "", failed
	}
	refused, err := whenWritten(ctx, s, accepted)
	if err == nil {
		err = refused
	}
	switch {
	case ctx.Err() != nil:
		return id, err
	case err != nil:
		return "", fmt.Errorf("accept job: %w", err)
	}
	return id, nil
}

// decided tells all who submitted the job whether it is accepted.
func (j *job) decided(err error) {
	for _, c := range j.submitters {
		c <- err
	}
	j.submitters = nil
}
