package executor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/quota"
	"zorilla/transfer"
)

// workDir is where in its root a worker has its files.
const workDir = "work"

// inputs is what a job's workers on this node need to begin.
type inputs struct {
	ctx    context.Context // ends when no worker is wanted, or the node leaves
	cancel context.CancelFunc
	done   chan struct{} // closed when the input files are in the store, or failed says why they are not
	tree   transfer.Manifest
	failed error
	came   atomic.Int64                       // how often it was told that fetching them gets on
	laid   map[jobs.RankAttempt]*atomic.Int64 // steps of writing them for each worker; owned by the loop
	// again brings them into the store, once more if it has lost some.
	again func(tell func(transfer.Stats)) (transfer.Manifest, error)
}

// inputsPin and outputPin name what keeps blobs in the store: the inputs of a job, the
// outputs of a worker.
func inputsPin(job jobs.ID) string { return "input/" + string(job) }

func outputPin(id participant.WorkerID) string {
	return fmt.Sprintf("output/%s/%d/%d", id.Job, id.Rank, id.Attempt)
}

// noInputs are those of a job without any.
func noInputs(leaving context.Context) *inputs {
	in := &inputs{done: make(chan struct{})}
	in.ctx, in.cancel = context.WithCancel(leaving)
	close(in.done)
	return in
}

// steps returns what counts the steps of writing the inputs for a worker.
func (in *inputs) steps(ra jobs.RankAttempt) *atomic.Int64 {
	if in.laid == nil {
		in.laid = map[jobs.RankAttempt]*atomic.Int64{}
	}
	if in.laid[ra] == nil {
		in.laid[ra] = &atomic.Int64{}
	}
	return in.laid[ra]
}

// addProgress notes in reports of workers that are prepared how far fetching and writing them is.
func (in *inputs) addProgress(list []wire.WorkerReport) {
	for i := range list {
		if w := &list[i]; w.State == jobs.WorkerPreparing {
			if w.Laid = in.came.Load(); in.laid[w.RankAttempt] != nil {
				w.Laid += in.laid[w.RankAttempt].Load()
			}
		}
	}
}

// maxLays bounds how often inputs are written that others change meanwhile.
const maxLays = 3

// lay writes the inputs to the directory of a worker, as how says. The last
// one who gets them on this node may have the files themselves; if it changes those before
// another one is placed here, they are fetched again.
func (in *inputs) lay(store transfer.PinStore, dir string, how transfer.How) error {
	tree := in.tree
	for try := 1; ; try++ {
		how.Fresh = try == 1
		err := tree.WriteTo(in.ctx, store, dir, how)
		if in.again == nil || !errors.Is(err, transfer.ErrNotFound) || try == maxLays {
			return err
		}
		dropDamaged(store, tree)
		if tree, err = in.again(nil); err != nil {
			return fmt.Errorf("fetch inputs: %w", err)
		}
	}
}

// dropDamaged has a store find all chunks of a tree that are not what they were, not only those
// that were read so far.
func dropDamaged(store transfer.PinStore, tree transfer.Manifest) {
	var buf []byte
	for _, c := range tree.DistinctChunks() {
		if store.Has(c.Hash) {
			buf, _ = store.Get(c.Hash, buf) // whoever needs it hears why it is not there
		}
	}
}

// takeBack has a store take inputs back that a worker had, before its root is removed.
func takeBack(store transfer.PinStore, root string) {
	store.TakeBack(filepath.Join(root, workDir), quota.Leave)
}
