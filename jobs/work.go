package jobs

import (
	"cmp"
	"slices"
	"time"

	"zorilla/jobs/process"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// work is what a node does for one job: its record as a participant, and its
// workers there.
type work struct {
	entry   // in participant.agenda: when it reports
	job     ID
	origin  vicinity.ID
	addrs   []string // of the origin, as the grant tells
	spec    Spec
	stamp   Stamp
	workers []*worker // by rank and attempt
	state   State     // as the origin last told
	reason  string
	heard   time.Time // when the origin last answered
	since   time.Time // when this node was granted the job

	inputs inputState
	failed string      // why the inputs could not be had
	first  RankAttempt // the worker whose reports tell how much of them is here
	ending bool        // all of its workers were dropped

	// One report is on its way at a time: after a change, else every reportEvery.
	asking bool
	kick   bool          // something is to be told
	pause  time.Duration // after a report that failed
	next   time.Time     // when the next report is due, if nothing changes
}

// inputState says whether the input files of a job are in this node's store.
type inputState int

const (
	inputsComing inputState = iota
	inputsHere
	inputsFailed
)

// worker is one rank of a job at this node: what is to be reported of it, what is
// wanted of it, and what is being done for it.
type worker struct {
	RankAttempt
	needs needs
	gpus  []int // numbers of those that are its own

	// What reports tell.
	state    WorkerState
	reason   string
	declined bool // it did not begin to run
	exit     *process.Exit
	output   *RankOutput
	warn     []string
	stats    transfer.Stats

	// What is wanted.
	wants wish
	start *Start // it may run
	why   string // this node does not want it any more

	// What is done for it.
	phase     phase
	obeyed    wish          // what its process was told of
	lost      string        // why it counts as lost once its process has ended
	trouble   string        // why it could not be prepared or started, while that is looked into
	ended     *process.Exit // how, while its files are stored
	again     int           // times that it was prepared anew, since it did not begin to run
	freed     bool          // its room is given back
	unclaimed bool          // nothing is written down of it any more

	heldByOrigin
}

// heldByOrigin is what the origin has of a worker, and knows of it.
type heldByOrigin struct {
	acked   received
	adopted bool  // that is not known yet
	results int   // of tasks
	epoch   int64 // of the table that it knows; 0 = it is not told of changes
	telling bool  // of a newer one
	away    bool  // it is left to the next life of this node
	parted  bool  // and its origin knows
}

// wish is what is wanted of a worker, beside that it runs.
type wish uint8

const (
	wantStop  wish = 1 << iota // its process ends, which is reported
	wantDrop                   // the origin does not want it any more
	wantEvict                  // this node does not want it any more
	wantDone                   // nothing: all of it is safe at the origin
)

// phase is what is done for a worker. Each but waiting, ready, running and over is
// something that the executor does, and tells the end of.
type phase int

const (
	phaseClaiming  phase = iota // its directory is made, and its claim written down
	phaseWaiting                // for the input files of its job
	phaseLaying                 // out its input files
	phaseReady                  // for START
	phaseStarting               // or looking for what an earlier life of this node has started
	phaseRunning                // its process
	phaseTrying                 // whether workers can be started here at all
	phaseGathering              // its output files
	phaseParking                // the news that it did not begin, for the next life of this node
	phaseOver                   // its room is free, and its origin has to hear how it ended
	phaseRemoving               // its directory
)

func newWorker(ra RankAttempt, spec *Spec) *worker {
	return &worker{RankAttempt: ra, needs: spec.needs(), state: WorkerPreparing}
}

// wanted reports whether any of these is wanted.
func (k *worker) wanted(any wish) bool { return k.wants&any != 0 }

// listens reports whether a worker is told of changes of its job's table.
func (k *worker) listens() bool {
	return k.epoch > 0 && k.state == WorkerRunning && k.phase == phaseRunning && !k.wanted(wantDrop)
}

// lasts reports whether something of the worker is left to the next life of a node
// that is being stopped.
func (k *worker) lasts() bool { return k.state != WorkerLost || k.declined && !k.unclaimed }

func (w *work) find(ra RankAttempt) *worker {
	i := slices.IndexFunc(w.workers, func(k *worker) bool { return k.RankAttempt == ra })
	if i < 0 {
		return nil
	}
	return w.workers[i]
}

func (w *work) add(k *worker) {
	i, _ := slices.BinarySearchFunc(w.workers, k, func(a, b *worker) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Attempt, b.Attempt))
	})
	w.workers = slices.Insert(w.workers, i, k)
}

// epochKnown returns the epoch that all workers which run here know; 0 = nobody
// here is to be told.
func (w *work) epochKnown() (least int64) {
	for _, k := range w.workers {
		if k.listens() && (least == 0 || k.epoch < least) {
			least = k.epoch
		}
	}
	return least
}

// report is what is to be told to the origin, but for the output; readings say
// where that goes on.
func (w *work) report() (rep Report, readings []reading) {
	rep.Job, rep.Epoch = w.job, w.epochKnown()
	for i, k := range w.workers {
		rep.Workers = append(rep.Workers, WorkerReport{RankAttempt: k.RankAttempt, State: k.state, Reason: k.reason, Declined: k.declined,
			Exit: k.exit, Output: k.output, Warn: k.warn, Fetched: k.stats.Fetched, Cached: k.stats.Cached})
		if k.phase == phaseRunning || k.phase == phaseGathering || k.phase == phaseOver {
			readings = append(readings, reading{worker: i, from: k.acked, skip: k.adopted, results: k.results})
		}
	}
	return rep, readings
}

// reading says what the origin has of the output of a worker in a Report.
type reading struct {
	worker  int // its index
	from    received
	skip    bool // nothing is sent before it is known what the origin has
	results int  // of tasks
}

// claim is what the next life of this node must know of a worker.
func (w *work) claim(now time.Time, k *worker, start *Start) claimRecord {
	c := claimRecord{Version: claimVersion, Job: w.job, Addrs: w.addrs, RankAttempt: k.RankAttempt,
		Spec: w.spec, GPUs: k.gpus, Stamp: w.stamp, Since: w.since, Start: start, At: now}
	if k.declined {
		c.Lost, c.GPUs = k.reason, nil
	}
	return c
}

// status is a participant's view of a job.
func (w *work) status(self vicinity.Member, written func(workerID) received) Status {
	st := Status{ID: w.job, Origin: w.origin, Spec: w.spec, State: w.state, Reason: w.reason, ExitCode: -1, Submitted: w.since, LastKnown: true, Workers: []WorkerStatus{}}
	for _, k := range w.workers {
		rank, replica := w.spec.RankOf(k.Rank)
		so := written(workerID{w.job, k.RankAttempt})
		st.Workers = append(st.Workers, WorkerStatus{Rank: rank, Replica: replica, Attempt: k.Attempt, Node: self.ID, Name: self.Name, State: k.state, Exit: k.exit,
			Stdout: so.stdout, Stderr: so.stderr})
	}
	slices.SortStableFunc(st.Workers, func(a, b WorkerStatus) int { return a.Rank - b.Rank })
	return st
}
