package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/executor"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
	"zorilla/jobs/session"
	"zorilla/jobs/session/workerapi"
	"zorilla/vicinity"
)

// visits are of those who want to run something beside a worker.
type visits struct {
	s       *Service
	beside  *keyedLimit // workers here
	relayed *keyedLimit // for other nodes
	recent  *executor.Recent
}

// Enter runs one more command beside that of a rank: in has the client's frames of a session,
// out gets the worker's. It returns when the session has ended, or an error if it could not
// begin, or broke. The job's origin knows where the rank runs, and asks that node. A rank that
// is about to be started is waited for.
func (v visits) Enter(ctx context.Context, id jobs.ID, rank int, in io.Reader, out io.Writer) error {
	s := v.s
	if id.Origin() != s.self.ID {
		return s.peers.Enter(ctx, id.Origin(), peer.Entry{Job: id, Rank: rank}, in, out)
	}
	var w *jobs.WorkerStatus
	st, err := v.awaitWorker(ctx, id, func(st *jobs.Status) (within time.Duration, err error) {
		w, within, err = entered(st, rank)
		return within, err
	})
	if err != nil {
		return err
	}
	return v.at(ctx, &st, w, in, out)
}

// awaitWorker returns the status of a job of this node in which a worker is found, or why there
// is none when find has not found it within the time that it names.
func (v visits) awaitWorker(ctx context.Context, id jobs.ID, find func(st *jobs.Status) (within time.Duration, why error)) (jobs.Status, error) {
	version, deadline := uint64(0), time.Time{}
	var why error
	for begun := time.Now(); ; {
		wait, stop := ctx, context.CancelFunc(func() {})
		if why != nil {
			wait, stop = context.WithDeadline(ctx, deadline)
		}
		st, next, err := v.s.Await(wait, id, version)
		stop()
		switch {
		case err != nil && why != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			return st, why
		case err != nil:
			return st, err
		}
		within, err := find(&st)
		deadline = begun.Add(within)
		if err == nil || !time.Now().Before(deadline) || st.LastKnown { // of which no change is told
			return st, err
		}
		why, version = err, next
	}
}

// at is Enter for a worker of a job of this node.
func (v visits) at(ctx context.Context, st *jobs.Status, w *jobs.WorkerStatus, in io.Reader, out io.Writer) error {
	e := peer.Entry{Job: st.ID, Rank: st.Spec.WorkerOf(w.Rank, w.Replica), Attempt: w.Attempt}
	if w.Node != v.s.self.ID {
		return v.s.peers.Enter(ctx, w.Node, e, in, out)
	}
	return v.here(ctx, e, in, out)
}

// meet is Enter for what a rank asks: about a rank, or the first one that runs at a host.
func (v visits) meet(ctx context.Context, from vicinity.ID, e peer.Entry, in io.Reader, out io.Writer) error {
	s := v.s
	if e.Job.Origin() != s.self.ID {
		return s.peers.Enter(ctx, e.Job.Origin(), e, in, out)
	}
	rank, err := v.rankAt(ctx, from, e)
	if err != nil {
		return err
	}
	return v.Enter(ctx, e.Job, rank, in, out)
}

const (
	startsWithin = 30 * time.Second // how long a rank is waited for that has a node
	foundWithin  = 5 * time.Second  // and one that has none: a node is found sooner than that, or there is no room
)

// rankAt returns the first rank of a job that runs at a host, as the node of another one names
// it, and waits for those that are being started.
func (v visits) rankAt(ctx context.Context, from vicinity.ID, e peer.Entry) (int, error) {
	rank := 0
	_, err := v.awaitWorker(ctx, e.Job, func(st *jobs.Status) (time.Duration, error) {
		node, err := v.nodeOf(st, from, e.Host)
		if err != nil {
			return 0, err
		}
		for _, w := range st.Workers {
			if w.Node == node && w.State == jobs.WorkerRunning {
				rank = w.Rank
				return 0, nil
			}
		}
		return startsWithin, fmt.Errorf("%w: no rank of job %s runs at %s", jobs.ErrNotRunning, e.Job.Short(), e.Host)
	})
	return rank, err
}

// nodeOf returns which node of a job a host is: the one that asks, if it is not another's
// name or address.
func (v visits) nodeOf(st *jobs.Status, from vicinity.ID, host string) (vicinity.ID, error) {
	var named vicinity.ID
	for _, w := range st.Workers {
		switch {
		case w.Node == "":
			continue
		case w.Name == host && named != "" && named != w.Node:
			return "", fmt.Errorf("%w: %.80q is the name of several hosts of job %s: use an address of its host file ($ZORILLA_HOSTFILE)",
				jobs.ErrRefused, host, st.ID.Short())
		case w.Name == host:
			named = w.Node
			continue
		}
		m, ok := v.s.overlay.Member(w.Node)
		if w.Node == v.s.self.ID {
			m, ok = v.s.self, true
		}
		if ok && slices.ContainsFunc(m.Addrs, func(a string) bool { return wire.HostOf([]string{a}) == host }) {
			return w.Node, nil
		}
	}
	if named != "" {
		return named, nil
	}
	if host == "localhost" || host == "127.0.0.1" || host == "::1" {
		return from, nil
	}
	return "", fmt.Errorf("%w: %.80q is no host of job %s: its host file ($ZORILLA_HOSTFILE) has them", jobs.ErrNotFound, host, st.ID.Short())
}

// visit passes on what a process inside a worker here wants.
func (v visits) visit(ctx context.Context, from participant.WorkerID, a workerapi.Ask, in io.Reader, out io.Writer) error {
	if a.Host == "" {
		return v.Enter(ctx, from.Job, a.Rank, in, out)
	}
	return v.meet(ctx, v.s.self.ID, peer.Entry{Job: from.Job, Rank: from.Rank, Host: a.Host}, in, out)
}

// entered returns the worker that runs a rank, or says why there is none, and how long one is
// worth waiting for.
func entered(st *jobs.Status, rank int) (w *jobs.WorkerStatus, within time.Duration, err error) {
	job := st.ID.Short()
	switch {
	case st.Spec.Array != nil:
		return nil, 0, fmt.Errorf("%w: job %s is an array: no commands can be run beside its tasks", jobs.ErrNotRunning, job)
	case st.State.Final():
		return nil, 0, fmt.Errorf("%w: job %s has ended (%s)", jobs.ErrNotRunning, job, st.State)
	case rank >= st.Spec.Max:
		return nil, 0, fmt.Errorf("rank %d %w: job %s has %d ranks", rank, jobs.ErrNotFound, job, st.Spec.Max)
	}
	state := jobs.WorkerWanted
	for i := range st.Workers {
		switch w := &st.Workers[i]; {
		case w.Rank != rank:
		case w.State == jobs.WorkerRunning:
			return w, 0, nil
		default:
			state = w.State
		}
	}
	switch state {
	case jobs.WorkerWanted:
		within = foundWithin
	case jobs.WorkerPreparing, jobs.WorkerReady:
		within = startsWithin
	}
	return nil, within, fmt.Errorf("%w: rank %d of job %s is %s", jobs.ErrNotRunning, rank, job, state)
}

// asked answers other nodes: any of them about jobs that originate here, their origins
// about workers here.
func (v visits) asked(ctx context.Context, from vicinity.ID, e peer.Entry, in io.Reader, out io.Writer) error {
	s := v.s
	if !v.relayed.acquire(e.Job, maxRelayed, maxRelayed) {
		return fmt.Errorf("%w: node %s passes on %d commands already, as many as it may: try again when some have ended",
			jobs.ErrRefused, s.self.ID.Short(), maxRelayed)
	}
	defer v.relayed.release(e.Job)
	switch {
	case e.Host != "" && e.Job.Origin() == s.self.ID:
		return v.meet(ctx, from, e, in, out)
	case e.Attempt == 0 && e.Job.Origin() == s.self.ID:
		return s.Enter(ctx, e.Job, e.Rank, in, out)
	case e.Job.Origin() != from || e.Attempt == 0:
		s.dropped.Refused()
		return fmt.Errorf("%w: job %s does not originate at %s", jobs.ErrRefused, e.Job.Short(), from.Short())
	}
	return v.here(ctx, e, in, out)
}

// process returns the process of a worker here, or nil. One that is just being started is
// waited for: its origin counts it as running.
func (v visits) process(ctx context.Context, id participant.WorkerID) (w process.Worker, err error) {
	s := v.s
	late := time.After(startsWithin)
	for {
		changed, coming := s.loop.Changes(), false
		if !s.loop.Call(func() {
			w = executor.NewVisits(s.exec).Find(id)
			if work := s.core.Part.Works[id.Job]; work != nil {
				coming = slices.ContainsFunc(work.Workers, func(k *participant.Worker) bool {
					return k.RankAttempt == id.RankAttempt && k.Phase <= participant.PhaseStarting
				})
			}
		}) {
			return nil, jobs.ErrStopped
		}
		if w != nil || !coming {
			return w, nil
		}
		select {
		case <-changed:
		case <-late:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// here begins a session with a worker at this node.
func (v visits) here(ctx context.Context, e peer.Entry, in io.Reader, out io.Writer) error {
	s := v.s
	w, err := v.process(ctx, participant.WorkerID{Job: e.Job, RankAttempt: jobs.RankAttempt{Rank: e.Rank, Attempt: e.Attempt}})
	if err != nil {
		return err
	}
	if w == nil {
		return fmt.Errorf("%w: rank %d of job %s does not run at node %s", jobs.ErrNotRunning, e.Rank, e.Job.Short(), s.self.ID.Short())
	}
	start, err := session.ReadStart(session.NewReader(in))
	if err != nil {
		return fmt.Errorf("%w: %w", jobs.ErrRefused, err)
	}
	if !v.beside.acquire(e.Job, maxBeside, maxRelayed) {
		return fmt.Errorf("%w: %d commands run beside the workers of job %s at node %s, as many as may: end some",
			jobs.ErrRefused, maxBeside, e.Job.Short(), s.self.ID.Short())
	}
	defer v.beside.release(e.Job)
	conn, err := w.Enter(ctx, start)
	if errors.Is(err, process.ErrNotEntered) {
		return fmt.Errorf("%w: %w", jobs.ErrNotRunning, err)
	} else if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	go func() {
		_, _ = io.Copy(conn, in) // however it ends: the client is gone
		_ = conn.Close()
	}()
	_, err = io.Copy(out, conn)
	return err
}
