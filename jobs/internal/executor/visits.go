package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/process"
	"zorilla/transfer"
)

// Visits finds workers for exec sessions and for snapshots of their files.
type Visits struct{ x *Executor }

// NewVisits returns those of an executor's workers.
func NewVisits(x *Executor) Visits { return Visits{x} }

// Find returns the process of a worker that was begun here, or nil. It runs in the loop.
func (v Visits) Find(id participant.WorkerID) process.Worker {
	if r := v.x.procs[id]; r != nil {
		return r.Worker
	}
	return nil
}

// Inputs returns what a job's workers here had to begin with, nil if that is not known. It
// runs in the loop.
func (v Visits) Inputs(job jobs.ID) *transfer.Manifest {
	in := v.x.inputs[job]
	if in == nil {
		return nil
	}
	select {
	case <-in.done:
		return &in.tree
	default:
		return nil
	}
}

// Snapshot puts what a worker here has made until now into the store, but for inputs that are
// as they were. It takes time, and may be called from any goroutine.
func (v Visits) Snapshot(ctx context.Context, id participant.WorkerID, globs []string, inputs *transfer.Manifest) (out jobs.RankOutput, err error) {
	select {
	case v.x.snapshots <- struct{}{}:
		defer func() { <-v.x.snapshots }()
	case <-ctx.Done():
		return out, context.Cause(ctx)
	}
	pin, done := v.x.recent.Begin(fmt.Sprintf("here/%s/%d/%d", id.Job, id.Rank, id.Attempt))
	defer func() { done(err) }()
	out, _, err = v.read(ctx, id, pin, globs, inputs)
	return out, err
}

// ReadCheckpoint puts a directory of a worker here into the store, pinned until done is called. In the work directory
// itself hidden names are left out, and inputs that are as they were. What is left out says what else is, "" = nothing. It may
// be called from any goroutine.
func (v Visits) ReadCheckpoint(
	ctx context.Context, id participant.WorkerID, dir string, inputs *transfer.Manifest,
) (out jobs.RankOutput, leftOut string, done func(), err error) {
	glob := dir // all of it, also what is hidden
	if dir == "." {
		glob = "**"
	} else {
		inputs = nil
	}
	pin := fmt.Sprintf("checkpoint/%s/%d/%d", id.Job, id.Rank, id.Attempt)
	done = func() { v.x.cfg.Store.Unpin(pin) }
	out, warnings, err := v.read(ctx, id, pin, []string{glob}, inputs)
	if err != nil {
		done()
	}
	if dir != "." && out.Files > 0 { // else it says that there is none
		leftOut = strings.Join(warnings, "; ")
	}
	return out, leftOut, done, err
}

// Root is the directory around a worker's own.
func (v Visits) Root(id participant.WorkerID) string { return v.x.root(id) }

// read puts files of a worker here into the store, pinned for an owner, and warns of what is left out.
func (v Visits) read(
	ctx context.Context, id participant.WorkerID, pin string, globs []string, inputs *transfer.Manifest,
) (out jobs.RankOutput, warnings []string, err error) {
	put := transfer.PinTo(v.x.cfg.Store, pin)
	tree, warnings, err := transfer.Snapshot(ctx, put, filepath.Join(v.x.sharing.around(id, v.x.root(id)), workDir), globs, inputs)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, transfer.ErrChanged):
		return out, nil, fmt.Errorf("%w: %w", jobs.ErrNotRunning, err) // it has just ended, or a file became shorter
	case err != nil:
		return out, nil, err
	}
	out = jobs.RankOutput{Rank: id.Rank, Attempt: id.Attempt, Files: tree.Files(), Bytes: tree.Size()}
	if len(tree.Entries) > 0 {
		out.Manifest, err = transfer.SaveManifest(put, tree)
	}
	return out, warnings, err
}
