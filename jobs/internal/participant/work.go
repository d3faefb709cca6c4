package participant

import (
	"cmp"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/work"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// Work is what a node does for one job: its record as a participant, and its
// workers there.
type Work struct {
	part         *Participant
	timers.Entry // in Participant.Timers: when it reports
	Job          jobs.ID
	Origin       vicinity.ID
	addrs        []string // of the origin, as the grant tells
	Spec         jobs.Spec
	stamp        jobs.Stamp
	Workers      []*Worker  // by rank and attempt
	state        jobs.State // as the origin last told
	reason       string
	Heard        time.Time // when the origin last answered
	since        time.Time // when this node was granted the job
	shut         int       // the latest of the directories that its workers share in which one was started

	inputs inputState
	failed string           // why the inputs could not be had
	first  jobs.RankAttempt // the worker whose reports tell how much of them is here
	ending bool             // all of its workers were dropped
	spared bool             // its origin may count on spares here

	// One report is on its way at a time: after a change, else every ReportEvery.
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

// Worker is one rank of a job at this node: what is to be reported of it, what is
// wanted of it, and what is being done for it.
type Worker struct {
	work *Work
	jobs.RankAttempt
	needs jobs.Needs
	gpus  []int // numbers of those that are its own
	cores []int // the same of processors; nil = it has none of its own
	share int   // which directory it shares with others, see Work.share; 0 = it has its own

	// What reports tell.
	State    jobs.WorkerState
	reason   string // why it is lost, or what it waits for while it runs
	Declined bool   // it did not begin to run
	exit     *work.Exit
	output   *jobs.RankOutput
	warn     []string
	stats    transfer.Stats

	// What is wanted.
	wants Wish
	start *wire.Start // it may run
	lent

	// What is done for it.
	Phase     Phase
	obeyed    Wish       // what its process was told of
	lost      string     // why it counts as lost once its process has ended
	trouble   string     // why it could not be prepared or started, while that is looked into
	ended     *work.Exit // how, while its files are stored
	again     int        // times that it was prepared anew, since it did not begin to run
	Freed     bool       // its room is given back
	unclaimed bool       // nothing is written down of it any more

	heldByOrigin
}

// heldByOrigin is what the origin has of a worker, and knows of it.
type heldByOrigin struct {
	acked     wire.Written
	adopted   bool  // that is not known yet
	doubts    int   // how often what it has was less than it once had, since that was last more
	overtaken bool  // the answer to the report that is on its way is older than that
	results   int   // of tasks
	epoch     int64 // of the table that it knows; 0 = it is not told of changes
	telling   bool  // of a newer one
	Detached  bool  // it is left to the next life of this node
	Parted    bool  // and its origin knows
	checkpoints
}

// Wish is what is wanted of a worker, beside that it runs.
type Wish uint8

const (
	WantStop  Wish = 1 << iota // its process ends, which is reported
	WantDrop                   // the origin does not want it any more
	WantEvict                  // this node does not want it any more
	WantDone                   // nothing: all of it is safe at the origin
	WantNow                    // its process ends without notice
)

// Phase is what is done for a worker. Each but waiting, ready, running and over is
// something that the executor does, and tells the end of.
type Phase int

const (
	PhaseClaiming  Phase = iota // its directory is made, and its claim written down
	PhaseWaiting                // for the input files of its job
	PhaseLaying                 // out its input files
	PhaseReady                  // for START
	PhaseStarting               // or looking for what an earlier life of this node has started
	PhaseRunning                // its process
	PhaseTrying                 // whether workers can be started here at all
	PhaseGathering              // its output files
	PhaseParking                // the news that it did not begin, for the next life of this node
	PhaseOver                   // its room is free, and its origin has to hear how it ended
	PhaseRemoving               // its directory
)

func (w *Work) newWorker(ra jobs.RankAttempt) *Worker {
	return &Worker{work: w, RankAttempt: ra, needs: w.Spec.Needs(ra.Rank), State: jobs.WorkerPreparing}
}

// notice is how long the program of a worker that is to be ended hears of that before. Tasks of arrays begin anew
// elsewhere, whatever they do meanwhile.
func (k *Worker) notice() time.Duration {
	_, notice := k.work.Spec.Notice()
	switch {
	case k.wanted(WantDrop|WantNow) || k.work.Spec.Array != nil:
		return 0
	case k.wanted(WantEvict):
		return max(0, min(notice, cmp.Or(k.most, MaxNotice)))
	}
	return notice
}

// grace is between SIGTERM and SIGKILL for workers of this job.
func (w *Work) grace() time.Duration {
	if w.Spec.MPI {
		return GangGrace
	}
	return StopGrace
}

// share is the number of the work directory that a worker which comes now shares with others:
// those that start together find one together, with the inputs and nothing else in it. 0 = each
// has its own.
func (w *Work) share() int {
	if !w.Spec.ShareWork {
		return 0
	}
	return w.shut + 1
}

// begin notes that a worker starts: who comes later does not share its directory.
func (k *Worker) begin() {
	k.Phase = PhaseStarting
	k.work.shut = max(k.work.shut, k.share)
}

// id names the worker among those of all jobs.
func (k *Worker) id() WorkerID { return WorkerID{k.work.Job, k.RankAttempt} }

// wanted reports whether any of these is wanted.
func (k *Worker) wanted(any Wish) bool { return k.wants&any != 0 }

// listens reports whether a worker is told of changes of its job's table.
func (k *Worker) listens() bool {
	return k.epoch > 0 && k.State == jobs.WorkerRunning && k.Phase == PhaseRunning && !k.wanted(WantDrop)
}

// Lasts reports whether something of the worker is left to the next life of a node
// that is being stopped.
func (k *Worker) Lasts() bool { return k.State != jobs.WorkerLost || k.Declined && !k.unclaimed }

func (w *Work) find(ra jobs.RankAttempt) *Worker {
	i := slices.IndexFunc(w.Workers, func(k *Worker) bool { return k.RankAttempt == ra })
	if i < 0 {
		return nil
	}
	return w.Workers[i]
}

func (w *Work) add(k *Worker) {
	i, _ := slices.BinarySearchFunc(w.Workers, k, func(a, b *Worker) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Attempt, b.Attempt))
	})
	w.Workers = slices.Insert(w.Workers, i, k)
}

// epochKnown returns the epoch that all workers which run here know; 0 = nobody
// here is to be told.
func (w *Work) epochKnown() (least int64) {
	for _, k := range w.Workers {
		if k.listens() && (least == 0 || k.epoch < least) {
			least = k.epoch
		}
	}
	return least
}

// report is what is to be told to the origin, but for the output; readings say
// where that goes on.
func (w *Work) report() (rep wire.Report, readings []wire.Reading) {
	rep.Job, rep.Epoch, rep.Spares = w.Job, w.epochKnown(), w.spares()
	for i, k := range w.Workers {
		rep.Workers = append(rep.Workers, wire.WorkerReport{RankAttempt: k.RankAttempt, State: k.State, Reason: k.reason, Declined: k.Declined,
			Exit: k.exit, Storing: k.storing(), Output: k.output, Warn: k.warn, Fetched: k.stats.Fetched, Cached: k.stats.Cached,
			Checkpoint: k.checkpoints.report()})
		if k.Phase == PhaseRunning || k.Phase == PhaseGathering || k.Phase == PhaseOver {
			readings = append(readings, wire.Reading{Worker: i, From: k.acked, Skip: k.adopted, Results: k.results})
		}
	}
	return rep, readings
}

// storing reports whether a worker's process has ended and its output files are being stored.
func (k *Worker) storing() bool { return k.State == jobs.WorkerRunning && k.Phase == PhaseGathering }

// claim is what the next life of this node must know of a worker.
func (w *Work) claim(now time.Time, k *Worker, start *wire.Start) ClaimRecord {
	c := ClaimRecord{Version: claimVersion, Job: w.Job, Addrs: w.addrs, RankAttempt: k.RankAttempt,
		Spec: w.Spec, GPUs: k.gpus, Cores: k.cores, Share: k.share, Stamp: w.stamp, Since: w.since, Start: start, At: now,
		Allowed: k.allowed, Last: k.last, Resume: k.resume}
	if k.Declined {
		c.Lost, c.GPUs, c.Cores, c.Share = k.reason, nil, nil, 0
	}
	return c
}

// Status is a participant's view of a job.
func (w *Work) Status(self vicinity.Member, written func(WorkerID) wire.Written) jobs.Status {
	st := jobs.Status{ID: w.Job, Origin: w.Origin, Spec: w.Spec, State: w.state, Reason: w.reason,
		ExitCode: -1, Submitted: w.since, LastKnown: true, Workers: []jobs.WorkerStatus{}}
	for _, k := range w.Workers {
		rank, replica := w.Spec.RankOf(k.Rank)
		so := written(k.id())
		st.Workers = append(st.Workers,
			jobs.WorkerStatus{Rank: rank, Replica: replica, Attempt: k.Attempt, Node: self.ID, Name: self.Name, State: k.State, Exit: k.exit,
				Stdout: so.Stdout, Stderr: so.Stderr})
	}
	slices.SortStableFunc(st.Workers, func(a, b jobs.WorkerStatus) int { return a.Rank - b.Rank })
	return st
}
