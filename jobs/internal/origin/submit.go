package origin

import (
	"context"
	"fmt"
	"time"

	"zorilla/jobs"
	"zorilla/transfer"
)

// outcome waits until it is known whether a job is accepted that was begun (ok),
// unless that failed. It waits for the loop.
func (o *Jobs) outcome(ctx context.Context, id jobs.ID, accepted <-chan error, ok bool, failed error) (jobs.ID, error) {
	if !ok {
		return "", jobs.ErrStopped
	}
	if failed != nil {
		return "", failed
	}
	refused, err := whenWritten(ctx, o.disk, accepted)
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

// Submit accepts a job and returns when it is durable. Its inputs must be in
// the store. With the key of a job that this origin knows it returns that job.
// Errors wrap ErrInvalid if the job cannot be run as it is; after ErrStopped it
// may have been accepted all the same.
func (a *API) Submit(ctx context.Context, spec jobs.Spec) (jobs.ID, error) {
	if err := spec.Validate(); err != nil {
		return "", err
	}
	if spec.OnEnd != "" && a.own.cfg.Hooks == nil {
		return "", fmt.Errorf("%w: --on-end: this node runs no commands of its own", jobs.ErrInvalid)
	}
	if err := a.own.loop.Ready(ctx); err != nil {
		return "", err
	}
	for others := map[jobs.ID]bool{}; ; {
		id, old, err := a.submit(ctx, spec, others)
		if err == nil && id == "" {
			id, err = a.own.table.joinOld(&spec, old, others)
		}
		if err != nil || id != "" {
			return id, err
		}
	}
}

// submit is Submit, unless jobs that have ended may have had the key, beyond others: then it returns these.
func (a *API) submit(ctx context.Context, spec jobs.Spec, others map[jobs.ID]bool) (id jobs.ID, old []jobs.ID, err error) {
	accepted := make(chan error, 1)
	var failed error
	ok := a.own.loop.Call(func() { id, old, failed = a.own.table.join(&spec, others, accepted) })
	if len(old) > 0 {
		return "", old, nil
	}
	if !ok || failed != nil || id != "" {
		id, err = a.own.outcome(ctx, id, accepted, ok, failed)
		return id, nil, err
	}
	if err := a.own.cfg.Journal.Stalled(); err != nil {
		return "", nil, fmt.Errorf("accept job: %w", err)
	}
	tree, err := a.own.inputs.load(spec.Inputs) // a job that was accepted keeps its inputs, come what may
	if err != nil {
		return "", nil, err
	}
	j := &job{}
	ok = a.own.loop.Call(func() {
		if id, old, failed = a.own.table.join(&spec, others, accepted); failed != nil || id != "" || len(old) > 0 {
			return // it came twice at the same time
		}
		id = jobs.NewID(a.own.cfg.Rand, a.own.self.ID)
		for a.own.table.knows(id) {
			id = jobs.NewID(a.own.cfg.Rand, a.own.self.ID)
		}
		failed = a.own.begin(j, id, spec, tree, accepted)
	})
	if len(old) > 0 {
		return "", old, nil
	}
	id, err = a.own.outcome(ctx, id, accepted, ok, failed)
	return id, nil, err
}

// Inputs returns the blobs that are kept in the store for a job that has not ended.
func (a *API) Inputs(id jobs.ID) []transfer.Hash { return a.own.inputs.of(id) }

// begin makes the primary of a job with these inputs. It runs in the loop.
func (o *Jobs) begin(j *job, id jobs.ID, spec jobs.Spec, tree transfer.Manifest, accepted chan<- error) error {
	if err := o.inputs.keep(id, tree, spec.Inputs); err != nil {
		return err
	}
	if err := o.disk.openFiles(j, id, &spec, true); err != nil {
		o.inputs.drop(id)
		return err
	}
	if !spec.Stdin {
		j.stdin.Close()
	}
	j.submitters = []chan<- error{accepted}
	j.Job = o.core.Submit(time.Now(), id, spec, tree.Distinct())
	o.table.put(j)
	o.table.last.saw(id, j.Primary.Rec.Stamp)
	return nil
}
