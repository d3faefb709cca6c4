package jobs

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"zorilla/internal/codec"
)

// maxKey bounds the key of a submission.
const maxKey = 64

func (s *Spec) checkKey() error {
	if len(s.Key) > maxKey || strings.Trim(s.Key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:") != "" {
		return fmt.Errorf("--key %.80q: want at most %d letters, digits and -_.: in it", s.Key, maxKey)
	}
	return nil
}

// keyed is the job that was submitted with a key.
type keyed struct {
	id  ID
	sum [sha256.Size]byte // of its spec
}

func (s *Spec) sum() [sha256.Size]byte { return sha256.Sum256(codec.MustMarshal(s)) }

// keep remembers the key of a job for as long as the job is known.
func (s *Service) keep(spec *Spec, id ID) {
	if spec.Key != "" {
		s.keys[spec.Key] = keyed{id, spec.sum()}
	}
}

// unkey forgets the key of a job that is not known any more.
func (s *Service) unkey(key string, id ID) {
	if key != "" && s.keys[key].id == id {
		delete(s.keys, key)
	}
}

// join lets a submission share the outcome of an earlier one that had the same
// key. The ID is "" if there was none. It runs in the loop.
func (s *Service) join(spec *Spec, accepted chan<- error) (ID, error) {
	k, known := s.keys[spec.Key]
	if spec.Key == "" || !known {
		return "", nil
	}
	if k.sum != spec.sum() {
		return "", fmt.Errorf("%w: --key %s was used for job %s, which is not the same: each job needs a key of its own", ErrInvalid, spec.Key, k.id.Short())
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
func (s *Service) outcome(ctx context.Context, id ID, accepted <-chan error, ok bool, failed error) (ID, error) {
	if !ok {
		return "", ErrStopped
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
