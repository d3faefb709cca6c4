package agent

import (
	"context"
	"fmt"

	"zorilla/jobs"
	"zorilla/jobs/internal/executor"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// Snapshot returns what files a rank that runs has made until now, of those that globs name,
// once their chunks are at the job's origin, which keeps them for some minutes. The hash of
// the manifest is zero if there are none. Errors wrap jobs.ErrNotRunning, ErrNotFound,
// ErrRefused, or ErrStopped if a node cannot be asked.
func (v visits) Snapshot(ctx context.Context, id jobs.ID, rank int, globs []string) (out jobs.RankOutput, err error) {
	s := v.s
	m := wire.Snapshot{Job: id, RankAttempt: jobs.RankAttempt{Rank: rank}, Globs: globs}
	if err := m.Check(); err != nil {
		return out, fmt.Errorf("%w: %w", jobs.ErrRefused, err)
	}
	if id.Origin() != s.self.ID {
		return s.peers.Snapshot(ctx, id.Origin(), &m)
	}
	if !v.relayed.acquire(id, maxBeside, maxRelayed) {
		return out, fmt.Errorf("%w: node %s fetches as many files of ranks that run as it may: try again", jobs.ErrRefused, s.self.ID.Short())
	}
	defer v.relayed.release(id)
	st, _, err := s.Status(id)
	if err != nil {
		return out, err
	}
	w, _, err := entered(&st, rank)
	if err != nil {
		return out, err
	}
	m.RankAttempt = jobs.RankAttempt{Rank: st.Spec.WorkerOf(w.Rank, w.Replica), Attempt: w.Attempt}
	if w.Node == s.self.ID {
		out, err = v.snapshotHere(ctx, &m)
	} else {
		out, err = s.peers.Snapshot(ctx, w.Node, &m)
	}
	if err != nil || out.Manifest.IsZero() {
		return out, err
	}
	out.Rank, out.Attempt = rank, w.Attempt
	pin, done := v.recent.Begin(fmt.Sprintf("from/%s/%d", id, rank))
	defer func() { done(err) }()
	tree, _, err := s.cfg.Fetch(ctx, pin, out.Manifest, []vicinity.ID{w.Node}, nil)
	if err != nil {
		return out, err
	}
	for _, e := range tree.Entries {
		if !transfer.MatchOutput(globs, e.Path) && !transfer.MatchedBefore(globs, e.Path) { // who reads the list leaves those
			return out, fmt.Errorf("%w: node %s sent %.80q, which was not asked for", jobs.ErrRefused, w.Node.Short(), e.Path)
		}
	}
	out.Files, out.Bytes = tree.Files(), tree.Size()
	return out, nil
}

// snapshotHere is Snapshot for a worker of this node.
func (v visits) snapshotHere(ctx context.Context, m *wire.Snapshot) (out jobs.RankOutput, err error) {
	s, id := v.s, participant.WorkerID{Job: m.Job, RankAttempt: m.RankAttempt}
	w, err := v.process(ctx, id)
	if err != nil {
		return out, err
	}
	if w == nil {
		return out, fmt.Errorf("%w: rank %d of job %s does not run at node %s", jobs.ErrNotRunning, m.Rank, m.Job.Short(), s.self.ID.Short())
	}
	visits, inputs := executor.NewVisits(s.exec), (*transfer.Manifest)(nil)
	if !s.loop.Call(func() { inputs = visits.Inputs(m.Job) }) {
		return out, jobs.ErrStopped
	}
	return visits.Snapshot(ctx, id, m.Globs, inputs)
}

// snapshotAsked answers other nodes: any of them about jobs that originate here, their
// origins about workers here.
func (v visits) snapshotAsked(ctx context.Context, from vicinity.ID, m *wire.Snapshot) (jobs.RankOutput, error) {
	s := v.s
	switch {
	case m.Attempt == 0 && m.Job.Origin() == s.self.ID:
		return v.Snapshot(ctx, m.Job, m.Rank, m.Globs)
	case m.Job.Origin() != from || m.Attempt == 0:
		s.dropped.Refused()
		return jobs.RankOutput{}, fmt.Errorf("%w: job %s does not originate at %s", jobs.ErrRefused, m.Job.Short(), from.Short())
	}
	return v.snapshotHere(ctx, m)
}
