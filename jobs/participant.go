package jobs

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"zorilla/jobs/process"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// work is what this node does for one job: its record as a participant, its
// workers, and the one goroutine that reports to the origin.
type work struct {
	s      *Service
	job    ID
	origin vicinity.ID
	kick   chan struct{}   // report soon; capacity 1
	ctx    context.Context // ends when no worker is wanted, or the node leaves
	cancel context.CancelFunc

	mu      sync.Mutex // guards what follows; never held across I/O or a wait
	spec    Spec
	stamp   Stamp
	holders []vicinity.ID
	workers map[RankAttempt]*worker
	state   State // as the origin last told
	reason  string
	heard   time.Time // when the origin last answered
	since   time.Time

	// fetched is closed when the input files are in the store, or failed says
	// why they are not; tree and failed do not change any more then.
	fetched chan struct{}
	tree    transfer.Manifest
	failed  error
}

// worker is one rank on this node. Its goroutine is the only one that moves
// it on; fields are guarded by work.mu.
type worker struct {
	RankAttempt
	needs needs
	gpus  []int         // numbers of those that are its own
	start chan Start    // capacity 1
	stop  chan struct{} // closed when the origin wants its process to end
	drop  chan struct{} // closed when the origin does not want it any more
	done  chan struct{} // closed when all of it is safe at the origin

	state   WorkerState
	reason  string
	proc    process.Worker
	exit    *process.Exit
	output  *RankOutput
	warn    []string
	stats   transfer.Stats
	acked   received
	started bool
	stopped bool
	dropped bool
	safe    bool
	gone    bool // its output cannot be read any more
}

const (
	// stopGrace is between SIGTERM and SIGKILL.
	stopGrace = 5 * time.Second
	// orphanLimit is how long a worker goes on without its origin.
	orphanLimit = time.Hour
)

// granted takes a grant: the hold becomes a claim, and its workers are
// prepared. It runs in a handler's goroutine.
func (s *Service) granted(from vicinity.ID, g Grant) error {
	if from.Short() != g.Job.OriginShort() {
		return fmt.Errorf("%w: job %s does not originate at %s", ErrRefused, g.Job, from.Short())
	}
	s.overlay.Learn(from, g.Addrs)
	var refused error
	ok := s.call(func() {
		if refused = s.engageable(from, &g); refused == nil {
			refused = s.claims.granted(s.now(), from, &g)
		}
		if refused == nil {
			s.engage(from, g)
		}
		s.offerQueued()
	})
	if !ok {
		return fmt.Errorf("%w: the node is leaving", ErrRefused)
	}
	return refused
}

// engageable reports whether the ranks of a grant can be made, given what is
// here of the job already. It runs in the service's loop.
func (s *Service) engageable(from vicinity.ID, g *Grant) error {
	s.mu.Lock()
	w := s.works[g.Job]
	s.mu.Unlock()
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.origin != from:
		return fmt.Errorf("%w: job %s belongs to another origin", ErrRefused, g.Job)
	case w.ctx.Err() != nil:
		return fmt.Errorf("%w: earlier workers of job %s are not gone yet", ErrRefused, g.Job)
	}
	for _, ra := range g.Ranks {
		if w.workers[ra] != nil {
			return fmt.Errorf("%w: rank %d of job %s is here already", ErrRefused, ra.Rank, g.Job)
		}
	}
	return nil
}

// engage makes the workers of a grant. It runs in the service's loop.
func (s *Service) engage(from vicinity.ID, g Grant) {
	s.clock.saw(g.Stamp, s.now())
	s.mu.Lock() // both locks, as in disengage: the work must not vanish meanwhile
	w := s.works[g.Job]
	fresh := w == nil
	if fresh {
		w = &work{s: s, job: g.Job, origin: from, kick: make(chan struct{}, 1), fetched: make(chan struct{}), spec: g.Spec, stamp: g.Stamp,
			workers: map[RankAttempt]*worker{}, state: Staging, heard: s.now(), since: s.now()}
		w.ctx, w.cancel = context.WithCancel(s.leavingCtx)
		s.works[g.Job] = w
	}
	w.mu.Lock()
	w.holders = g.Holders
	for _, ra := range g.Ranks {
		k := &worker{RankAttempt: ra, needs: g.Spec.needs(), gpus: s.claims.takeGPUs(g.Spec.GPUs), state: WorkerPreparing,
			start: make(chan Start, 1), stop: make(chan struct{}), drop: make(chan struct{}), done: make(chan struct{})}
		w.workers[ra] = k
		if fresh && ra == g.Ranks[0] {
			s.children.Go(func() { w.fetchInputs(k) })
		}
		s.children.Go(func() { w.run(k) })
	}
	w.mu.Unlock()
	s.mu.Unlock()
	if fresh {
		s.children.Go(w.report)
	}
	s.notify()
}

// run is a worker's life on this node.
func (w *work) run(k *worker) {
	root := filepath.Join(w.s.cfg.Dir, "work", fmt.Sprintf("%s-%d-%d", w.job, k.Rank, k.Attempt))
	if err := w.prepare(k, root); err != nil {
		reason := oneLine(err.Error())
		if w.s.leavingCtx.Err() != nil {
			reason = reasonLeaving
		}
		w.set(k, func() { k.state, k.reason = WorkerLost, reason })
	} else {
		w.set(k, func() { k.state = WorkerReady })
		select {
		case start := <-k.start:
			w.execute(k, root, start)
		case <-k.drop:
		case <-w.s.leaving:
			w.set(k, func() { k.state, k.reason = WorkerLost, reasonLeaving })
		}
	}
	w.mu.Lock()
	ended := k.state == WorkerEnded
	w.mu.Unlock()
	w.s.post(func() {
		if ended { // then the job does not grow, but its origin hears of that later than of an offer
			w.s.claims.dequeue(w.job)
		}
		w.s.claims.giveGPUs(k.gpus)
		w.s.claims.freed(w.job, 1, k.needs)
		w.s.offerQueued()
	})
	select {
	case <-k.done:
	case <-k.drop:
	case <-w.s.stopped:
	}
	w.mu.Lock()
	k.gone = true
	w.mu.Unlock()
	if k.proc != nil {
		k.proc.Close()
	}
	if err := w.s.cfg.CleanRoot(root); err != nil {
		w.s.log.Error().Err(err).Str("job", string(w.job)).Msg("remove work directory")
	}
	w.s.store.Unpin(w.pinOutput(k))
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
	if err := makeRoot(root); err != nil {
		return err
	}
	<-w.fetched
	if w.failed != nil {
		return w.failed
	}
	return w.tree.Write(w.ctx, w.s.store, filepath.Join(root, "work"))
}

// fetchInputs brings the inputs into the store; first is the worker whose
// report tells how much of them had to be moved.
func (w *work) fetchInputs(first *worker) {
	defer close(w.fetched)
	w.mu.Lock()
	inputs, holders := w.spec.Inputs, slices.Concat([]vicinity.ID{w.origin}, w.holders)
	w.mu.Unlock()
	if inputs.IsZero() {
		return
	}
	tree, stats, err := w.s.cfg.Fetch(w.ctx, w.pinInputs(), inputs, holders)
	if err != nil {
		w.failed = fmt.Errorf("fetch inputs: %w", err)
		return
	}
	w.tree = tree
	w.mu.Lock()
	first.stats = stats
	w.mu.Unlock()
}

func (w *work) pinInputs() string { return "input/" + string(w.job) }

// execute runs the process and collects what it leaves.
func (w *work) execute(k *worker, root string, start Start) {
	spec := w.processSpec(k, root, start)
	proc, err := w.s.cfg.Runner.Start(context.Background(), spec)
	if err != nil {
		w.set(k, func() { k.state, k.reason = WorkerLost, oneLine("start worker: "+err.Error()) })
		return
	}
	w.set(k, func() { k.state, k.proc = WorkerRunning, proc })
	if spec.Stdin {
		feed, cancel := context.WithCancel(context.Background())
		defer cancel()
		w.s.children.Go(func() { w.s.feedStdin(feed, w, proc) })
	}
	gone := w.watch(k, proc)
	exit := proc.Exit()
	if gone != "" {
		w.set(k, func() { k.state, k.reason = WorkerLost, gone })
		return
	}
	exit.Detail = oneLine(exit.Detail)
	output, warn := w.collect(k, root)
	w.set(k, func() { k.state, k.exit, k.output, k.warn = WorkerEnded, &exit, output, warn })
}

// watch waits for the end of the process and has its output reported as it
// grows. It returns why the worker counts as lost, or "" if it ended by itself.
func (w *work) watch(k *worker, proc process.Worker) (gone string) {
	stop, drop, leaving := k.stop, k.drop, w.s.leaving
	var stopped string
	for {
		changed := proc.Changed()
		w.poke()
		select {
		case <-proc.Done():
			w.poke()
			return stopped
		case <-changed:
		case <-stop:
			stop = nil
			proc.Stop(stopGrace)
		case <-drop:
			drop, stopped = nil, "not wanted any more"
			proc.Stop(stopGrace)
		case <-leaving:
			leaving, stopped = nil, reasonLeaving
			proc.Stop(stopGrace)
		}
	}
}

// collect chunks the output files into the store, pinned until the origin has
// them.
func (w *work) collect(k *worker, root string) (*RankOutput, []string) {
	w.mu.Lock()
	globs := w.spec.Outputs
	w.mu.Unlock()
	if len(globs) == 0 {
		return nil, nil
	}
	put := transfer.PinTo(w.s.store, w.pinOutput(k))
	tree, warn, err := transfer.Collect(w.s.leavingCtx, put, filepath.Join(root, "work"), globs, &w.tree)
	var hash transfer.Hash
	if err == nil {
		hash, err = transfer.SaveManifest(put, tree)
	}
	for i := range warn {
		warn[i] = oneLine(fmt.Sprintf("rank %d: %s", k.Rank, warn[i]))
	}
	if len(warn) > maxWarnings {
		warn = warn[:maxWarnings]
	}
	if err != nil {
		return nil, append(warn, oneLine(fmt.Sprintf("rank %d: collect outputs: %v", k.Rank, err)))
	}
	return &RankOutput{Rank: k.Rank, Attempt: k.Attempt, Manifest: hash, Files: tree.Files(), Bytes: tree.Size()}, warn
}

// startRanks lets prepared workers run.
func (w *work) startRanks(start Start) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ra := range start.Ranks {
		if k := w.workers[ra]; k != nil && !k.started {
			k.started = true
			k.start <- start
		}
	}
}

// stopRanks ends the processes of workers, whose ends are still to be reported.
func (w *work) stopRanks(ranks []RankAttempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ra := range ranks {
		if k := w.workers[ra]; k != nil && !k.stopped {
			k.stopped = true
			close(k.stop)
		}
	}
}

// dropRanks ends workers that are not wanted any more; none named means all.
func (w *work) dropRanks(ranks []RankAttempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(ranks) == 0 {
		ranks = slices.Collect(maps.Keys(w.workers))
	}
	for _, ra := range ranks {
		if k := w.workers[ra]; k != nil && !k.dropped && !k.safe {
			k.dropped = true
			close(k.drop)
		}
	}
	for _, k := range w.workers {
		if !k.dropped {
			return
		}
	}
	w.cancel()
}
