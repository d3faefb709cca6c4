package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"zorilla/jobs"
	"zorilla/node/api"
)

// maxNamesakes is how many nodes are asked at most which of them a job
// originates at.
const maxNamesakes = 16

// of finds a job, and who answers about it: this node if it is the job's origin,
// else that one. The ID is told too if the origin is not reachable.
func (s *jobService) of(ctx context.Context, ref string) (jobs.ID, api.Peer, error) {
	id, err := s.resolve(ctx, ref)
	if err != nil {
		return "", nil, err
	}
	if s.here(id) {
		if !s.jobs.Owns(id) { // forgotten, though a worker may be here still
			return "", nil, fmt.Errorf("job %s %w: it does not originate here, or is forgotten", id.Short(), api.ErrNotFound)
		}
		return id, s.local, nil
	}
	if _, ok := s.net.overlay.Member(id.Origin()); !ok {
		return id, nil, fmt.Errorf("%w: job %s: its node %s is not here: 'zorilla nodes' lists those that are",
			api.ErrUnavailable, id.Short(), id.Origin().Short())
	}
	return id, remote{s.net.at(id.Origin())}, nil
}

// here reports whether a job was submitted at this node.
func (s *jobService) here(id jobs.ID) bool { return id.Origin() == s.net.self }

// remote is the origin of a job that is another node. It is ErrUnavailable if it
// does not tell how the job is soon. Commands for this node are not believed of it: the owner
// may submit the job again here.
type remote struct{ api.Peer }

// Job returns one job.
func (r remote) Job(ctx context.Context, job string) (jobs.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	st, err := r.Peer.Job(ctx, job)
	st = st.Discreet()
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		err = fmt.Errorf("%w: the origin of job %s does not answer: %w", api.ErrUnavailable, jobs.ID(job).Short(), err)
	}
	return st, err
}

// Await returns a job's status when it has changed.
func (r remote) Await(ctx context.Context, job string, since uint64) (jobs.Status, uint64, error) {
	st, version, err := r.Peer.Await(ctx, job, since)
	return st.Discreet(), version, err
}

// resolve completes the ID of a job: that of one that this node knows, or, if
// its random characters are all there, that of the origins it may have.
func (s *jobService) resolve(ctx context.Context, ref string) (jobs.ID, error) {
	if id := jobs.ID(ref); id.Valid() {
		return id, nil
	}
	random, origin, named := strings.Cut(ref, "@")
	if !named || origin == "" || ref == "last" {
		return s.jobs.Find(ref)
	}
	known := s.jobs.Matching(ref)
	if len(known) == 0 {
		if id, err := s.jobs.Find(ref); !errors.Is(err, jobs.ErrNotFound) {
			return id, err // it is stopping
		}
	}
	var others []jobs.ID
	for _, m := range s.net.overlay.Members() {
		id := jobs.ID(random).At(m.ID)
		if strings.HasPrefix(string(m.ID), origin) && id.Valid() && m.ID != s.net.self && !slices.Contains(known, id) {
			others = append(others, id)
		}
	}
	switch {
	case len(known) == 1 && len(others) == 0:
		return known[0], nil
	case len(others) > maxNamesakes && len(known) > 0:
		return jobs.Only(ref, known)
	case len(others) > maxNamesakes:
		return "", fmt.Errorf("job %.40q is %w: the IDs of %d nodes begin with %.30s: write more of it", ref, api.ErrAmbiguous, len(others), origin)
	}
	found, silent := s.known(ctx, others)
	found = append(found, known...)
	switch {
	case len(found) > 0:
		return jobs.Only(ref, found)
	case len(silent) > 0:
		return "", fmt.Errorf("%w: job %.40q may originate at %s, which does not answer", api.ErrUnavailable, ref, silent[0].Origin())
	case len(others) > 0:
		return "", fmt.Errorf("job %.40q %w: no node that is here, and whose ID begins with %s, knows it", ref, api.ErrNotFound, origin)
	case strings.HasPrefix(string(s.net.self), origin):
		return s.jobs.Find(ref)
	}
	return "", fmt.Errorf("%w: job %.40q: no node whose ID begins with %.30s is here: 'zorilla nodes' lists those that are", api.ErrUnavailable, ref, origin)
}

// known asks the origins of jobs whether they know them; silent are those of
// which that is not known.
func (s *jobService) known(ctx context.Context, ids []jobs.ID) (found, silent []jobs.ID) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var mu sync.Mutex
	inParallel(ids, func(id *jobs.ID) {
		_, err := s.net.at(id.Origin()).Job(ctx, string(*id))
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			found = append(found, *id)
		case !errors.Is(err, api.ErrNotFound):
			silent = append(silent, *id)
		}
	})
	return found, silent
}
