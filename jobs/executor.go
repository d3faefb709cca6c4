package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"zorilla/transfer"
)

// executor does what the participant of a Service decides: it has the processes and
// directories of workers, and tells the participant what becomes of them. Its maps
// are the loop's; what takes time is done in a goroutine, one at a time for each
// worker.
type executor struct {
	s      *Service
	part   *participant
	inputs map[ID]*inputs
	procs  map[workerID]*handle
	trials chan trial // capacity 1: the latest, while none runs
}

// inputs is what a job's workers on this node need to begin.
type inputs struct {
	ctx    context.Context // ends when no worker is wanted, or the node leaves
	cancel context.CancelFunc
	done   chan struct{} // closed when the input files are in the store, or failed says why they are not
	tree   transfer.Manifest
	failed error
}

func newExecutor(s *Service, part *participant) *executor {
	x := &executor{s: s, part: part, inputs: map[ID]*inputs{}, procs: map[workerID]*handle{}, trials: make(chan trial, 1)}
	x.trials <- trial{}
	return x
}

// rootName is the name of a worker's own directory.
func rootName(job ID, ra RankAttempt) string {
	return fmt.Sprintf("%s-%d-%d", job, ra.Rank, ra.Attempt)
}

func (x *executor) root(id workerID) string {
	return filepath.Join(x.s.cfg.Work, rootName(id.Job, id.RankAttempt))
}

// spawn does something that takes time, and has the participant told by what it returns;
// nil = nothing is to be told.
func (x *executor) spawn(f func() (tell func(now time.Time))) {
	x.s.children.Go(func() {
		if tell := f(); tell != nil {
			x.s.post(func() { tell(x.s.now()) })
		}
	})
}

// execute does one effect. It runs in the loop.
func (x *executor) execute(e effect) {
	switch e := e.(type) {
	case doFetch:
		x.fetch(e)
	case doEnd:
		if proc := x.procs[e.worker]; proc != nil {
			proc.halted()
			x.s.children.Go(func() {
				if e.note {
					x.note(e.worker)
				}
				proc.Stop(stopGrace)
			})
		}
	case doTry:
		x.spawn(func() func(time.Time) {
			trouble := x.try(e.since)
			return func(now time.Time) { x.judge(now, e.worker, trouble) }
		})
	case doReport:
		x.report(e)
	case doAck:
		if proc := x.procs[e.worker]; proc != nil {
			proc.acknowledged(e)
		}
	case doTable:
		x.table(e)
	case doCancelWork:
		if in := x.inputs[e.job]; in != nil {
			in.cancel()
		}
	case doForgetWork:
		if in := x.inputs[e.job]; in != nil {
			in.cancel()
			delete(x.inputs, e.job)
		}
		x.s.store.Unpin(inputsPin(e.job))
	default:
		x.step(e)
	}
}

// step does what takes a worker one step on. It runs in the loop.
func (x *executor) step(e effect) {
	since := x.s.now()
	switch e := e.(type) {
	case doClaim:
		x.close(e.worker)
		x.spawn(func() func(time.Time) {
			err := x.claim(e)
			return func(now time.Time) { x.part.claimed(now, e.worker, err, since) }
		})
	case doLay:
		in := x.inputs[e.worker.Job]
		x.spawn(func() func(time.Time) {
			ctx, tree := x.s.leavingCtx, transfer.Manifest{}
			if in != nil {
				ctx, tree = in.ctx, in.tree
			}
			err := tree.Write(ctx, x.s.store, filepath.Join(x.root(e.worker), "work"))
			return func(now time.Time) { x.part.laid(now, e.worker, err, since) }
		})
	case doRun:
		x.spawn(func() func(time.Time) { return x.run(e, since) })
	case doAdopt:
		x.spawn(func() func(time.Time) { return x.adopt(e, since) })
	case doGather:
		in := x.inputs[e.worker.Job]
		x.spawn(func() func(time.Time) {
			out, warn, err := x.gather(e, in)
			return func(now time.Time) { x.part.gathered(now, e.worker, out, warn, err) }
		})
	case doPark:
		x.close(e.worker)
		x.spawn(func() func(time.Time) {
			err := x.park(e)
			return func(now time.Time) { x.part.parked(now, e.worker, err) }
		})
	case doRemove:
		proc := x.procs[e.worker]
		delete(x.procs, e.worker)
		x.spawn(func() func(time.Time) {
			x.remove(e.worker, proc)
			return func(now time.Time) { x.part.removed(now, e.worker) }
		})
	default: // an effect that nobody does would leave a worker where it is for ever
		panic(fmt.Sprintf("jobs: nobody does %T", e))
	}
}

func inputsPin(job ID) string { return "input/" + string(job) }

func outputPin(id workerID) string {
	return fmt.Sprintf("output/%s/%d/%d", id.Job, id.Rank, id.Attempt)
}

// fetch brings the inputs of a job into the store.
func (x *executor) fetch(e doFetch) {
	in := &inputs{done: make(chan struct{})}
	in.ctx, in.cancel = context.WithCancel(x.s.leavingCtx)
	x.inputs[e.job] = in
	x.spawn(func() func(time.Time) {
		defer close(in.done)
		if !e.known || !x.knowInputs(e, in) {
			var err error
			if in.tree, _, err = x.s.cfg.Fetch(in.ctx, inputsPin(e.job), e.inputs, e.holders, func(so transfer.Stats) {
				x.s.post(func() { x.part.moved(e.job, so) })
			}); err != nil {
				in.failed = fmt.Errorf("fetch inputs: %w", err)
			}
		}
		return func(now time.Time) { x.part.fetched(now, e.job, in.failed) }
	})
}

// knowInputs finds out what the inputs were, which for workers that have them
// already costs no look at the network. It reports whether all of them are here.
func (x *executor) knowInputs(e doFetch, in *inputs) bool {
	tree, err := transfer.LoadManifest(x.s.store, e.inputs)
	if err != nil {
		return false
	}
	x.s.store.Pin(inputsPin(e.job), append(tree.Chunks(), e.inputs)...)
	in.tree = tree
	return !slices.ContainsFunc(tree.Chunks(), func(h transfer.Hash) bool { return !x.s.store.Has(h) })
}

// claim makes a worker's directory, or empties that of an earlier try, and writes down
// that the worker is here.
func (x *executor) claim(e doClaim) error {
	root := x.root(e.worker)
	err := x.s.makeRoot(root)
	switch {
	case err == nil:
		return e.claim.write(root)
	case errors.Is(err, fs.ErrExist):
		return x.clear(root, &e.claim)
	}
	return err
}

// clear empties a worker's directory but for its claim, which says that it has
// not begun. The claim comes first: no death in between may lose the worker.
func (x *executor) clear(root string, c *claimRecord) error {
	if err := c.write(root); err == nil {
		return x.s.cfg.CleanRoot(root, claimFile)
	}
	// What is there may have filled the disk.
	if err := x.s.cfg.CleanRoot(root, claimFile); err != nil {
		return err
	}
	return c.write(root)
}

// park leaves of a worker's directory its claim, which says that it did not begin here
// and will not, since its room is given away: the next life of this node tells that, too,
// or its origin would not hear what became of it.
func (x *executor) park(e doPark) error {
	root := x.root(e.worker)
	err := x.clear(root, &e.claim)
	if err != nil { // it must not be prepared again
		_ = os.Remove(filepath.Join(root, claimFile))
	}
	return err
}

// close lets go of a process that has not begun, or is not to be heard of any more.
func (x *executor) close(id workerID) {
	if proc := x.procs[id]; proc != nil {
		delete(x.procs, id)
		_ = proc.Close()
	}
}

// remove removes all of a worker.
func (x *executor) remove(id workerID, proc *handle) {
	if proc != nil {
		_ = proc.Close()
	}
	root := x.root(id)
	// The claim goes first: what is half removed when the node is killed must
	// not be taken for a worker.
	err := os.Remove(filepath.Join(root, claimFile))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err = errors.Join(err, x.s.cfg.CleanRoot(root)); err != nil {
		x.s.log.Error().Err(err).Str("job", string(id.Job)).Msg("remove work directory")
	}
	x.s.store.Unpin(outputPin(id))
}

// gather chunks the output files into the store, pinned until the origin has
// them.
func (x *executor) gather(e doGather, in *inputs) (*RankOutput, []string, error) {
	var tree transfer.Manifest
	var warn []string
	if in != nil {
		<-in.done
		if tree = in.tree; in.failed != nil && len(tree.Entries) == 0 {
			warn = append(warn, "what its inputs were is not known any more: some of them may be among the outputs")
		}
	}
	put := transfer.PinTo(x.s.store, outputPin(e.worker))
	tree, more, err := transfer.Collect(x.s.leavingCtx, put, filepath.Join(x.root(e.worker), "work"), e.outputs, &tree)
	var hash transfer.Hash
	if err == nil {
		hash, err = transfer.SaveManifest(put, tree)
	}
	warn = append(warn, more...)
	for i := range warn {
		warn[i] = oneLine(fmt.Sprintf("%s: %s", e.who, warn[i]))
	}
	if len(warn) > maxWarnings {
		warn = warn[:maxWarnings]
	}
	if err != nil {
		err = fmt.Errorf("its outputs are lost: %w", err)
		return nil, append(warn, oneLine(fmt.Sprintf("%s: %v", e.who, err))), err
	}
	return &RankOutput{Rank: e.worker.Rank, Attempt: e.worker.Attempt, Manifest: hash, Files: tree.Files(), Bytes: tree.Size()}, warn, nil
}

// written returns how much a worker has written. It runs in the loop.
func (x *executor) written(id workerID) (so received) {
	if proc := x.procs[id]; proc != nil {
		so.stdout, so.stderr = proc.Written()
	}
	return so
}

// ended reports whether a worker has a process that has ended. The loop has ended.
func (x *executor) ended(id workerID) bool {
	proc := x.procs[id]
	if proc == nil {
		return false
	}
	select {
	case <-proc.Done():
		return true
	default:
		return false
	}
}

// leave lets go of the processes, which go on, when the loop has ended. What nobody
// asks for any more is removed.
func (x *executor) leave() {
	for _, w := range x.part.all() {
		for _, k := range w.workers {
			id := workerID{w.job, k.RankAttempt}
			if proc := x.procs[id]; k.phase == phaseOver && !k.lasts() {
				x.remove(id, proc)
			} else if proc != nil {
				proc.Leave()
			}
		}
	}
}
