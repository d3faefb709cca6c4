package origin

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/transfer"
)

// keyed is the job that was submitted with a key.
type keyed struct {
	id  jobs.ID
	sum [sha256.Size]byte // of its spec
}

// keys are those of jobs that have not ended.
type keys map[string]keyed

// keep remembers the key of a job until it ends.
func (k keys) keep(spec *jobs.Spec, id jobs.ID) {
	if spec.Key != "" {
		k[spec.Key] = keyed{id, spec.Sum()}
	}
}

// forget forgets the key of a job that has ended, or is not known any more.
func (k keys) forget(key string, id jobs.ID) {
	if key != "" && k[key].id == id {
		delete(k, key)
	}
}

// join lets a submission share the outcome of an earlier one that had the same
// key. The ID is "" if there was none; old are jobs that have ended and may have had it, beyond
// those that are known to have others. It runs in the loop.
func (o *Jobs) join(spec *jobs.Spec, others map[jobs.ID]bool, accepted chan<- error) (id jobs.ID, old []jobs.ID, err error) {
	if spec.Key == "" {
		return "", nil, nil
	}
	k, known := o.keys[spec.Key]
	switch {
	case !known:
		return "", o.archive.keyed(spec.Key, others), nil
	case k.sum != spec.Sum():
		return "", nil, taken(spec.Key, k.id)
	}
	if j := o.jobs[k.id]; j != nil && j.submitters != nil {
		j.submitters = append(j.submitters, accepted)
	} else {
		accepted <- nil
	}
	return k.id, nil, nil
}

// taken is the error of a submission whose key is that of a job which is not the same.
func taken(key string, id jobs.ID) error {
	return fmt.Errorf("%w: --key %s was used for job %s, which is not the same: each job needs a key of its own", jobs.ErrInvalid, key, id.Short())
}

// keyed returns the jobs that may have had a key, but for those that are known to have others.
func (a *archive) keyed(key string, others map[jobs.ID]bool) (list []jobs.ID) {
	hash := hashOf(key)
	for i := range a.order {
		if a.order[i].key == hash {
			if id := a.order[i].id(a.origin); !others[id] {
				list = append(list, id)
			}
		}
	}
	return list
}

// joinOld is join for jobs that have ended; those with another key it adds to others. It
// reads files, and is called outside of the loop.
func joinOld(o *Jobs, spec *jobs.Spec, old []jobs.ID, others map[jobs.ID]bool) (jobs.ID, error) {
	for _, id := range old {
		rec, err := o.disk.read(id)
		if err != nil && !errors.Is(err, jobs.ErrNotFound) { // else it was removed meanwhile
			return "", err
		}
		switch key, sum := keyOf(rec); {
		case key != spec.Key:
			others[id] = true
		case sum != spec.Sum():
			return "", taken(key, id)
		default:
			return id, nil
		}
	}
	return "", nil
}

// keyOf returns the key that a job was submitted with, and the sum of its spec; "" = none.
func keyOf(rec *record.Record) (key string, sum [sha256.Size]byte) {
	switch {
	case rec == nil:
	case rec.Past == nil:
		key, sum = rec.Spec.Key, rec.Spec.Sum()
	case len(rec.Past.Sum) == len(sum):
		key, sum = rec.Past.Key, [sha256.Size]byte(rec.Past.Sum)
	}
	return key, sum
}

// outcome waits until it is known whether a job is accepted that was begun (ok),
// unless that failed. It waits for the loop.
func (o *Jobs) outcome(ctx context.Context, id jobs.ID, accepted <-chan error, ok bool, failed error) (jobs.ID, error) {
	if !ok {
		return "", jobs.ErrStopped
	}
	if failed != nil {
		return "", failed
	}
	refused, err := whenWritten(ctx, o, accepted)
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
			id, err = joinOld(a.own, &spec, old, others)
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
	ok := a.own.loop.Call(func() { id, old, failed = a.own.join(&spec, others, accepted) })
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
	var tree transfer.Manifest
	if !spec.Inputs.IsZero() { // a job that was accepted keeps its inputs, come what may
		var err error
		if tree, err = transfer.LoadManifest(a.own.store, spec.Inputs); err == nil {
			err = syncTree(a.own.store, tree, spec.Inputs)
		}
		if err != nil {
			return "", nil, fmt.Errorf("%w: inputs: %w", jobs.ErrInvalid, err)
		}
	}
	j := &job{}
	ok = a.own.loop.Call(func() {
		if id, old, failed = a.own.join(&spec, others, accepted); failed != nil || id != "" || len(old) > 0 {
			return // it came twice at the same time
		}
		id = jobs.NewID(a.own.cfg.Rand, a.own.self.ID)
		for a.own.knows(id) {
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
func (a *API) Inputs(id jobs.ID) []transfer.Hash { return a.own.store.Pinned(inputsOwner(id)) }

// begin makes the primary of a job with these inputs. It runs in the loop.
func (o *Jobs) begin(j *job, id jobs.ID, spec jobs.Spec, tree transfer.Manifest, accepted chan<- error) error {
	if !spec.Inputs.IsZero() {
		needed := append(tree.Chunks(), spec.Inputs)
		o.store.Pin(inputsOwner(id), needed...)
		for _, h := range needed { // not evicted before they were pinned
			if !o.store.Has(h) {
				o.store.Unpin(inputsOwner(id))
				return fmt.Errorf("%w: inputs: chunk %s: %w", jobs.ErrInvalid, h, transfer.ErrNotFound)
			}
		}
	}
	if err := o.disk.openFiles(j, id, &spec, true); err != nil {
		o.store.Unpin(inputsOwner(id))
		return err
	}
	if !spec.Stdin {
		j.stdin.Close()
	}
	o.jobs[id] = j
	o.keys.keep(&spec, id)
	j.submitters = []chan<- error{accepted}
	j.Job = o.core.Submit(time.Now(), id, spec, tree.Distinct())
	o.sawLast(id, j.Primary.Rec.Stamp)
	return nil
}
