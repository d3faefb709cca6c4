package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"zorilla/internal/atomicfile"
	"zorilla/jobs/process"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// root is a worker's own directory.
func (w *work) root(ra RankAttempt) string {
	return filepath.Join(w.s.cfg.Work, rootName(w.job, ra))
}

func rootName(job ID, ra RankAttempt) string {
	return fmt.Sprintf("%s-%d-%d", job, ra.Rank, ra.Attempt)
}

// run is the life on this node of a worker that was granted.
func (w *work) run(k *worker) {
	root := w.root(k.RankAttempt)
	begun := w.s.now()
	err := w.prepare(k, root)
	for again := err == nil; again; {
		again = false
		w.set(k, func() { k.state = WorkerReady })
		select {
		case start := <-k.start:
			if isClosed(k.evict) {
				break
			}
			begun = w.s.now()
			if why := w.execute(k, root, start); why != "" && w.notBegun(k, root, why, begun) {
				begun = w.s.now()
				err = w.prepare(k, root)
				again = err == nil
			}
		case <-k.drop:
		case <-k.evict:
		case <-w.s.leaving:
		}
	}
	if err != nil && !isClosed(k.evict) {
		w.suspect(err, begun)
	}
	w.mu.Lock()
	waits := k.state == WorkerPreparing || k.state == WorkerReady
	w.mu.Unlock()
	switch {
	case waits && isClosed(k.evict):
		w.decline(k, k.evicted)
	case err != nil && w.s.leavingCtx.Err() == nil:
		w.decline(k, err.Error())
	}
	w.part(k, root)
}

// decline tells that a worker did not begin here, and is free to run elsewhere.
func (w *work) decline(k *worker, why string) {
	w.set(k, func() { k.state, k.proc, k.declined, k.reason = WorkerLost, nil, true, oneLine(why) })
}

// keepDeclined writes down that a worker did not begin here and will not, since its
// room is given away: the next life of this node tells that, too, or its origin
// would not hear what became of it.
func (w *work) keepDeclined(k *worker, root string) bool {
	err := w.keepOnly(k, root)
	if err != nil { // it must not be prepared again
		_ = os.Remove(filepath.Join(root, claimFile))
	}
	return err == nil
}

// keepOnly empties a worker's directory but for its claim, which says that it has
// not begun. The claim comes first: no death in between may lose the worker.
func (w *work) keepOnly(k *worker, root string) error {
	if err := w.keep(k, root, nil); err == nil {
		return w.s.cfg.CleanRoot(root, claimFile)
	}
	// What is there may have filled the disk.
	if err := w.s.cfg.CleanRoot(root, claimFile); err != nil {
		return err
	}
	return w.keep(k, root, nil)
}

// lose tells that a worker cannot be run any more.
func (w *work) lose(k *worker, reason string) {
	w.set(k, func() { k.state, k.reason = WorkerLost, oneLine(reason) })
}

// part is the end of a worker's life on this node: its room is free, and it
// goes when all of it is safe at the origin or not wanted. A node that stops
// keeps what has not come so far.
func (w *work) part(k *worker, root string) {
	w.mu.Lock()
	ended, lost := k.state == WorkerEnded, k.state == WorkerLost
	w.mu.Unlock()
	declined := k.declined && w.keepDeclined(k, root)
	w.s.post(func() {
		if ended { // then the job does not grow, but its origin hears of that later than of an offer
			w.s.claims.dequeue(w.job)
		}
		w.s.claims.giveGPUs(k.gpus)
		w.s.claims.freed(w.job, 1, k.needs)
		w.s.offerQueued()
	})
	left := false
	select {
	case <-k.done:
	case <-k.drop:
	case <-w.s.leaving:
		if !lost || declined {
			w.set(k, func() { k.away = true })
		}
		select {
		case <-k.done:
		case <-k.drop:
		case <-w.s.stopped:
			left = !lost || declined
		}
	}
	w.mu.Lock()
	k.gone = true
	w.mu.Unlock()
	if left {
		if k.proc != nil {
			k.proc.Leave()
		}
		return
	}
	if k.proc != nil {
		k.proc.Close()
	}
	// The claim goes first: what is half removed when the node is killed must
	// not be taken for a worker.
	err := os.Remove(filepath.Join(root, claimFile))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err = errors.Join(err, w.s.cfg.CleanRoot(root)); err != nil {
		w.s.log.Error().Err(err).Str("job", string(w.job)).Msg("remove work directory")
	}
	w.s.store.Unpin(w.pinOutput(k))
	<-w.fetched // it pins the inputs, which disengage lets go
	w.mu.Lock()
	delete(w.workers, k.RankAttempt)
	w.mu.Unlock()
	w.poke()
}

// set changes a worker and has it reported.
func (w *work) set(k *worker, f func()) {
	w.mu.Lock()
	f()
	w.mu.Unlock()
	w.poke()
	w.s.notify()
}

func (w *work) poke() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

func (w *work) pinOutput(k *worker) string {
	return fmt.Sprintf("output/%s/%d/%d", w.job, k.Rank, k.Attempt)
}

// prepare fetches the inputs, once for all workers of the job on this node,
// and lays the worker's directory out.
func (w *work) prepare(k *worker, root string) error {
	err := w.s.makeRoot(root)
	switch {
	case err == nil:
		err = w.keep(k, root, nil)
	case errors.Is(err, fs.ErrExist):
		err = w.keepOnly(k, root)
	}
	if err != nil {
		return err
	}
	select {
	case <-w.fetched:
	case <-k.evict:
		return errors.New(k.evicted)
	}
	if w.failed != nil {
		return w.failed
	}
	return w.tree.Write(w.ctx, w.s.store, filepath.Join(root, "work"))
}

// fetchInputs brings the inputs into the store; first is the worker whose
// reports tell how much of them is there, and what had to be moved.
func (w *work) fetchInputs(first *worker) {
	defer close(w.fetched)
	w.mu.Lock()
	inputs, holders := w.spec.Inputs, slices.Concat([]vicinity.ID{w.origin}, w.holders)
	w.mu.Unlock()
	if inputs.IsZero() {
		return
	}
	tree, _, err := w.s.cfg.Fetch(w.ctx, w.pinInputs(), inputs, holders, func(so transfer.Stats) {
		w.mu.Lock()
		first.stats = so
		w.mu.Unlock()
	})
	if err != nil {
		w.failed = fmt.Errorf("fetch inputs: %w", err)
		return
	}
	w.tree = tree
}

func (w *work) pinInputs() string { return "input/" + string(w.job) }

// execute starts the process, once it is written down that it may run, and goes
// with it to its end. It returns why the program did not begin, if it did not.
func (w *work) execute(k *worker, root string, start Start) (why string) {
	if err := w.keep(k, root, &start); err != nil {
		return err.Error()
	}
	spec, err := w.processSpec(k, root, start)
	if err != nil {
		return err.Error()
	}
	proc, err := w.s.cfg.Runner.Start(context.Background(), spec)
	if err != nil {
		return err.Error()
	}
	return w.follow(k, root, proc, start.Epoch)
}

// follow goes with a running process, which knows its job's table as of an
// epoch, to its end and collects what it leaves. A
// node that stops meanwhile leaves it to its next life. It returns why the
// program did not begin, if it did not.
func (w *work) follow(k *worker, root string, proc process.Worker, epoch int64) (why string) {
	w.set(k, func() {
		k.state, k.proc = WorkerRunning, proc
		if w.spec.Array == nil {
			k.epoch = epoch
		}
	})
	if in := proc.Stdin(); in != nil {
		feed, cancel := context.WithCancel(w.s.stoppedCtx)
		defer cancel()
		w.s.children.Go(func() { w.s.feedStdin(feed, w, in) })
	}
	lost, ended := w.watch(k, proc)
	if !ended {
		return ""
	}
	exit := proc.Exit()
	switch exit.Detail = oneLine(exit.Detail); {
	case exit.Cause == process.Unstarted:
		return exit.Detail
	case lost != "":
		w.lose(k, lost)
		return ""
	case exit.Cause == process.Lost || exit.Cause == process.Orphaned:
		w.lose(k, exit.Detail)
		return ""
	case exit.Cause == process.Stopped && !isClosed(k.stop) && !wasStopped(root):
		w.lose(k, "its machine stopped it")
		return ""
	}
	w.s.post(w.s.claims.began)
	output, warn, err := w.collect(k, root)
	if w.s.leavingCtx.Err() != nil { // perhaps not all of it: the next life collects again
		return ""
	}
	if err != nil && exit.Code == 0 { // what it did is lost, and must not look as if it were not
		exit.Code, exit.Cause, exit.Detail = CodeZorilla, process.Failed, oneLine(err.Error())
	}
	w.set(k, func() {
		if k.state != WorkerLost {
			k.state, k.exit, k.output, k.warn = WorkerEnded, &exit, output, warn
		}
	})
	return ""
}

// watch waits for the end of the process and has its output reported as it
// grows. It returns why the worker counts as lost, if not by itself. It returns
// ended = false if the node has stopped before.
func (w *work) watch(k *worker, proc process.Worker) (lost string, ended bool) {
	stop, drop, evict, leaving := k.stop, k.drop, k.evict, w.s.leaving
	for {
		changed := proc.Changed()
		w.poke()
		select {
		case <-proc.Done():
			w.poke()
			return lost, true
		case <-changed:
			w.gather(k, proc)
		case <-stop:
			stop = nil
			w.markStopped(k)
			proc.Stop(stopGrace)
		case <-drop:
			drop, lost = nil, "not wanted any more"
			proc.Stop(stopGrace)
		case <-evict:
			evict, lost = nil, k.evicted
			proc.Stop(stopGrace)
		case <-leaving:
			if leaving = nil; lost == "" && !isClosed(k.evict) {
				w.set(k, func() { k.away = true })
			}
		case <-w.s.stopped:
			return "", false
		}
	}
}

// stopFile, in a worker's own directory, tells the next life of this node that the
// worker's origin wanted its process to end.
const stopFile = "stop"

func (w *work) markStopped(k *worker) {
	if err := (atomicfile.How{Sync: atomicfile.Loose}).Write(filepath.Join(w.root(k.RankAttempt), stopFile), nil); err != nil {
		w.s.log.Warn().Err(err).Str("job", string(w.job)).Msg("write down that a worker is to end")
	}
}

func wasStopped(root string) bool {
	_, err := os.Stat(filepath.Join(root, stopFile))
	return err == nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// collect chunks the output files into the store, pinned until the origin has
// them.
func (w *work) collect(k *worker, root string) (*RankOutput, []string, error) {
	w.mu.Lock()
	globs, who := w.spec.Outputs, w.spec.who(k.Rank)
	w.mu.Unlock()
	if len(globs) == 0 || w.spec.Array != nil { // files of tasks came with their results
		return nil, nil, nil
	}
	<-w.fetched
	var warn []string
	if w.failed != nil && len(w.tree.Entries) == 0 {
		warn = append(warn, "what its inputs were is not known any more: some of them may be among the outputs")
	}
	put := transfer.PinTo(w.s.store, w.pinOutput(k))
	tree, more, err := transfer.Collect(w.s.leavingCtx, put, filepath.Join(root, "work"), globs, &w.tree)
	var hash transfer.Hash
	if err == nil {
		hash, err = transfer.SaveManifest(put, tree)
	}
	warn = append(warn, more...)
	for i := range warn {
		warn[i] = oneLine(fmt.Sprintf("%s: %s", who, warn[i]))
	}
	if len(warn) > maxWarnings {
		warn = warn[:maxWarnings]
	}
	if err != nil {
		err = fmt.Errorf("its outputs are lost: %w", err)
		return nil, append(warn, oneLine(fmt.Sprintf("%s: %v", who, err))), err
	}
	return &RankOutput{Rank: k.Rank, Attempt: k.Attempt, Manifest: hash, Files: tree.Files(), Bytes: tree.Size()}, warn, nil
}
