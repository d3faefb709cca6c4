package jobs

import (
	"context"
	"fmt"
	"maps"
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
	addrs   []string   // of the origin, as the grant tells
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

	evict chan struct{} // closed when this node does not want it any more

	state    WorkerState
	reason   string
	proc     process.Worker
	exit     *process.Exit
	output   *RankOutput
	warn     []string
	stats    transfer.Stats
	acked    received
	epoch    int64 // of the table that it knows; 0 = it is not told of changes
	results  int   // of tasks that the origin has
	again    int   // times that it was prepared anew, since it did not begin to run
	adopted  bool  // what the origin has of its output is not known yet
	started  bool
	stopped  bool
	dropped  bool
	evicted  string // why
	declined bool   // it did not begin to run
	safe     bool
	away     bool // it is left to the next life of this node
	parted   bool // and its origin knows
	gone     bool // its output cannot be read any more
}

const (
	// stopGrace is between SIGTERM and SIGKILL.
	stopGrace = 5 * time.Second
	// nodeLimit and orphanLimit are how long a worker goes on without its node
	// and without its origin, if the owner says nothing else.
	nodeLimit   = time.Hour
	orphanLimit = time.Hour
)

// granted takes a grant: the hold becomes a claim, and its workers are
// prepared. It runs in a handler's goroutine.
func (s *Service) granted(from vicinity.ID, g Grant) error {
	if from != g.Job.Origin() {
		return fmt.Errorf("%w: job %s does not originate at %s", ErrRefused, g.Job.Short(), from.Short())
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
		return fmt.Errorf("%w: job %s belongs to another origin", ErrRefused, g.Job.Short())
	case w.ctx.Err() != nil || isClosed(w.fetched) && w.failed != nil:
		return fmt.Errorf("%w: earlier workers of job %s are not gone yet", ErrRefused, g.Job.Short())
	}
	for _, ra := range g.Ranks {
		if w.workers[ra] != nil {
			return fmt.Errorf("%w: rank %d of job %s is here already", ErrRefused, ra.Rank, g.Job.Short())
		}
	}
	return nil
}

// newWork makes the record of a job that this node works for. The caller holds
// Service.mu.
func (s *Service) newWork(origin vicinity.ID, g *Grant, since time.Time) *work {
	w := &work{s: s, job: g.Job, origin: origin, addrs: g.Addrs, kick: make(chan struct{}, 1), fetched: make(chan struct{}), spec: g.Spec, stamp: g.Stamp,
		workers: map[RankAttempt]*worker{}, state: Staging, heard: s.now(), since: since}
	w.ctx, w.cancel = context.WithCancel(s.leavingCtx)
	s.works[g.Job] = w
	return w
}

// newWorker makes the record of a rank. The caller holds work.mu.
func (w *work) newWorker(ra RankAttempt) *worker {
	k := &worker{RankAttempt: ra, needs: w.spec.needs(), state: WorkerPreparing,
		start: make(chan Start, 1), stop: make(chan struct{}), drop: make(chan struct{}), done: make(chan struct{}), evict: make(chan struct{})}
	w.workers[ra] = k
	return k
}

// engage makes the workers of a grant. It runs in the service's loop.
func (s *Service) engage(from vicinity.ID, g Grant) {
	s.clock.saw(g.Stamp, s.now())
	s.mu.Lock() // both locks, as in disengage: the work must not vanish meanwhile
	w := s.works[g.Job]
	fresh := w == nil
	if fresh {
		w = s.newWork(from, &g, s.now())
	}
	w.mu.Lock()
	w.holders, w.heard = g.Holders, s.now()
	for _, ra := range g.Ranks {
		k := w.newWorker(ra)
		k.gpus = s.claims.takeGPUs(g.Spec.GPUs)
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

// evict ends all workers, because this node does not want them any more.
func (w *work) evict(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.workers {
		k.unwanted(why)
	}
}

// unwanted ends a worker that this node does not want any more. The caller holds
// work.mu.
func (k *worker) unwanted(why string) {
	if k.evicted == "" {
		k.evicted = why
		close(k.evict)
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
