package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"zorilla/jobs"
	"zorilla/jobs/internal/output"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/wire"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// Submit accepts a job and returns when it is durable. Its inputs must be in
// the store. With the key of a job that this origin knows it returns that job.
// Errors wrap ErrInvalid if the job cannot be run as it is; after ErrStopped it
// may have been accepted all the same.
func (s *Service) Submit(ctx context.Context, spec jobs.Spec) (jobs.ID, error) {
	if err := spec.Validate(); err != nil {
		return "", err
	}
	if err := s.waitReady(ctx); err != nil {
		return "", err
	}
	accepted := make(chan error, 1)
	var id jobs.ID
	var failed error
	ok := s.loop.Call(func() { id, failed = s.join(&spec, accepted) })
	if !ok || failed != nil || id != "" {
		return s.outcome(ctx, id, accepted, ok, failed)
	}
	if err := s.cfg.Journal.Stalled(); err != nil {
		return "", fmt.Errorf("accept job: %w", err)
	}
	if !spec.Inputs.IsZero() { // a job that was accepted keeps its inputs, come what may
		tree, err := transfer.LoadManifest(s.store, spec.Inputs)
		if err == nil {
			err = s.syncStore(tree, spec.Inputs)
		}
		if err != nil {
			return "", fmt.Errorf("%w: inputs: %w", jobs.ErrInvalid, err)
		}
	}
	j := &job{}
	ok = s.loop.Call(func() {
		if id, failed = s.join(&spec, accepted); failed != nil || id != "" {
			return // it came twice at the same time
		}
		id = jobs.NewID(s.cfg.Rand, s.self.ID)
		for s.knows(id) {
			id = jobs.NewID(s.cfg.Rand, s.self.ID)
		}
		failed = s.begin(j, id, spec, accepted)
	})
	return s.outcome(ctx, id, accepted, ok, failed)
}

// begin makes the job's primary. It runs in the loop.
func (s *Service) begin(j *job, id jobs.ID, spec jobs.Spec, accepted chan<- error) error {
	tree, err := transfer.PinManifest(s.store, inputsOwner(id), spec.Inputs)
	if err == nil {
		for _, h := range tree.Chunks() {
			if !s.store.Has(h) {
				err = fmt.Errorf("chunk %s: %w", h, transfer.ErrNotFound)
			}
		}
	}
	if err != nil {
		s.store.Unpin(inputsOwner(id))
		return fmt.Errorf("%w: inputs: %w", jobs.ErrInvalid, err)
	}
	if err := s.openFiles(j, id, true); err != nil {
		s.store.Unpin(inputsOwner(id))
		return err
	}
	if !spec.Stdin {
		j.stdin.Close()
	}
	s.jobs[id] = j
	s.keep(&spec, id)
	j.submitters = []chan<- error{accepted}
	j.Job = s.core.Submit(s.loop.Now(), id, spec, tree.Distinct())
	s.sawLast(id, j.Core.Rec.Stamp)
	s.shed()
	return nil
}

func (s *Service) waitReady(ctx context.Context) error {
	select {
	case <-s.loop.Running():
		return nil
	case <-s.loop.Stopped.Done():
		return jobs.ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Status returns a job and its version. Of a job of another origin that this
// node works for it tells what the node itself knows, marked LastKnown.
func (s *Service) Status(id jobs.ID) (st jobs.Status, version uint64, err error) {
	err = s.inJob(id, func(j *job) { st, version = s.view(j) })
	if past := (*jobs.ForgottenError)(nil); errors.As(err, &past) {
		return past.St, 1, nil
	}
	if !errors.Is(err, jobs.ErrNotFound) {
		return st, version, err // a node that stops does not know whose job it is
	}
	s.loop.Call(func() {
		if w := s.core.Part.Works[id]; w != nil {
			st, err = w.Status(s.self, s.exec.Written), nil
		}
	})
	return st, 0, err
}

// Await returns the status of a job of this origin as soon as its version is
// not since.
func (s *Service) Await(ctx context.Context, id jobs.ID, since uint64) (jobs.Status, uint64, error) {
	for {
		changed := s.Changes()
		st, version, err := s.Status(id)
		if err != nil || version != since || since == 0 {
			return st, version, err
		}
		select {
		case <-changed:
		case <-s.loop.Stopped.Done():
			return st, version, jobs.ErrStopped
		case <-ctx.Done():
			return st, version, ctx.Err()
		}
	}
}

// Explain tells why a job of this origin waits, or ended as it did.
func (s *Service) Explain(id jobs.ID) (e jobs.Explanation, err error) {
	err = s.inJob(id, func(j *job) {
		e = j.Core.Explain(s.loop.Now())
		if text := s.hindrance(j); text != "" && !e.State.Final() {
			e.Summary = text
		}
	})
	return e, err
}

// Cancel ends a job of this origin and returns when that is durable.
func (s *Service) Cancel(id jobs.ID, why string) error {
	done := make(chan wire.Ack, 1)
	err := s.inJob(id, func(j *job) {
		j.Core.Cancel(s.loop.Now(), why)
		j.Core.Do(primary.DoAnswer{Number: s.awaited(done)})
		s.core.Flush(s.loop.Now(), j.Job)
	})
	if errors.Is(err, jobs.ErrForgotten) { // it ended long ago
		return nil
	}
	if err != nil {
		return err
	}
	_, err = whenWritten(context.Background(), s, done)
	return err
}

// awaited returns the number under which the answer to a request comes. It runs in
// the loop.
func (s *Service) awaited(answer chan<- wire.Ack) uint64 {
	s.number++
	s.answers[s.number] = answer
	return s.number
}

// answer hands an answer to who waits for it. It runs in the loop.
func (s *Service) answer(a primary.DoAnswer) {
	s.answers[a.Number] <- a.Ack // which has room for one
	delete(s.answers, a.Number)
}

// Output calls f with the output of a job of this origin, of one rank or of
// all (-1), in the order of its arrival; of an array, of one task or of all (see
// arrayOutput), whose ID is the rank of what it tells. Of a job with replicas each rank is told
// as a whole once a copy of it counts, or the job has ended. With follow it goes on until the job
// has ended. Of a job that has ended only the attempts that count are told. ErrDamaged comes
// after all that is left if the disk lost something of it.
func (s *Service) Output(ctx context.Context, id jobs.ID, q jobs.OutputQuery, f func(jobs.Output) error) error {
	var of *job
	array := false
	counts := map[jobs.RankAttempt]bool{}
	final := false
	err := s.inJob(id, func(j *job) {
		of, final = j, j.Core.Rec.State.Final() && j.Core.Rec.Broken == ""
		if array = j.Core.Rec.Tasks != nil || j.Core.Rec.Replicated(); array {
			return
		}
		for i := range j.Core.Rec.Ranks {
			counts[jobs.RankAttempt{Rank: i, Attempt: j.Core.Rec.Ranks[i].Attempt}] = true
		}
	})
	if err != nil {
		return err
	}
	if q.Files && of.Core.Rec.Tasks == nil {
		return fmt.Errorf("%w: job %s has no tasks: files of its ranks are in manifests", jobs.ErrNotFound, id.Short())
	}
	if array {
		err = s.readTasks(ctx, of, q, f)
	} else {
		err = of.output.Read(ctx, q.Follow, func(ra jobs.RankAttempt) bool {
			return (q.Rank < 0 || ra.Rank == q.Rank) && (!final || counts[ra])
		}, f)
	}
	if errors.Is(err, os.ErrNotExist) { // forgotten meanwhile
		if gone := s.inJob(id, func(*job) {}); gone != nil {
			err = gone
		}
	}
	if err != nil || array {
		return err
	}
	return s.damaged(of, q.Rank) // or that the node stops, which ends its logs, too
}

// Stdin appends r to the standard input of rank 0 of a job of this origin, and
// ends it when r ends.
func (s *Service) Stdin(ctx context.Context, id jobs.ID, r io.Reader) error {
	var stdin *output.Spool
	if err := s.inJob(id, func(j *job) { stdin = j.stdin }); err != nil {
		return err
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			switch werr := stdin.Append(buf[:n]); {
			case errors.Is(werr, os.ErrClosed):
				return fmt.Errorf("%w: job %s takes no input any more", jobs.ErrEnded, id.Short())
			case werr != nil:
				return fmt.Errorf("keep input: %w", werr)
			}
		}
		if err == io.EOF {
			if s.loop.Stopped.Err() != nil {
				return jobs.ErrStopped
			}
			// Whoever restores the job must know whether this was all.
			if _, closed, _ := stdin.State(); closed { // by the end of the job
				return nil
			}
			if err := s.keepStdinEnd(id, stdin); err != nil {
				return fmt.Errorf("keep input: %w", err)
			}
			return stdin.Close()
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Self returns the node that the service runs at.
func (s *Service) Self() vicinity.Member { return s.self }
