package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// coreWork is what a Core does for one job: work without processes and files.
type coreWork struct {
	job     ID
	origin  vicinity.ID
	spec    Spec
	stamp   Stamp
	workers []*coreWorker
	heard   time.Time // when the origin last answered
	ending  bool      // all of its workers were dropped
	epoch   int64     // of the table, as work.epochKnown has it

	// One report at a time: at a change, else every reportEvery.
	asking bool
	kick   bool
	pause  time.Duration // after a report that failed
	next   time.Time     // report
}

// coreWorker is one rank at this node.
type coreWorker struct {
	RankAttempt
	fate     Fate
	state    WorkerState
	reason   string    // of WorkerLost
	declined bool      // then: it did not begin
	due      time.Time // when it is ready, runs, or ends; zero = not by itself
	kept     time.Time // when it is written down that it is here
	since    time.Time // when it began to run
	started  bool      // it may run, or does
	stopped  bool      // its end is wanted, and to be reported
	dropped  bool      // its end is wanted, or not even known at the origin
	timeout  bool      // it is ended by its walltime
}

// frozen reports whether a node that is being stopped leaves the worker to its
// next life.
func (k *coreWorker) frozen(away bool) bool { return away && k.started }

// uses reports whether the worker has slots.
func (k *coreWorker) uses() bool { return k.state != WorkerEnded && k.state != WorkerLost }

// wake returns when tend has something to do; zero = only after an input.
func (w *coreWork) wake(away bool) time.Time {
	var at time.Time
	if !w.asking {
		at = w.next
	}
	for _, k := range w.workers {
		if !k.frozen(away) {
			at = earlier(at, k.due)
		}
	}
	return at
}

func (c *Core) workFor(from vicinity.ID, id ID) *coreWork {
	for _, w := range c.works {
		if w.job == id && w.origin == from {
			return w
		}
	}
	return nil
}

// requested takes a request of another node, or of this one.
func (c *Core) requested(now time.Time, from vicinity.ID, r request) {
	switch m := r.body.(type) {
	case *Grant:
		err := c.granted(now, from, m)
		c.send(from, Reply, m.Job, nil, reply{number: r.number, refused: err != nil})
		c.offerQueued(now)
	case *Start:
		if w := c.workFor(from, m.Job); w != nil {
			w.knows(m)
			c.startRanks(now, w, m.Ranks)
		}
	case *Release:
		if len(m.Ranks) == 0 {
			c.yielded(now, from, m.Job, true)
		}
		switch w := c.workFor(from, m.Job); {
		case w == nil:
		case m.Stop:
			w.stopRanks(now, m.Ranks)
		default:
			c.dropRanks(now, w, m.Ranks)
		}
	case *Measure:
		c.measure(now, from, r.number, m)
	case *Report:
		c.reported(now, from, r.number, m)
	case question:
		c.send(from, Reply, m.job, nil, reply{number: r.number, state: c.questioned(m.job)})
	case fetch:
		w := c.workFor(from, m.job)
		there := w != nil && slices.ContainsFunc(w.workers, func(k *coreWorker) bool {
			return k.RankAttempt == m.RankAttempt && k.state == WorkerEnded
		})
		c.send(from, Reply, m.job, nil, reply{number: r.number, failed: !there})
	}
}

// reported mirrors Service.reportReceived.
func (c *Core) reported(now time.Time, from vicinity.ID, number uint64, rep *Report) {
	j := c.jobs[rep.Job]
	if j == nil {
		c.send(from, Reply, rep.Job, Ack{}, reply{number: number})
		return
	}
	have := map[RankAttempt]received{}
	for _, w := range rep.Workers {
		have[w.RankAttempt] = received{}
	}
	j.core.reported(now, from, *rep, have, number)
	c.flush(now, j)
}

// granted mirrors Service.granted.
func (c *Core) granted(now time.Time, from vicinity.ID, g *Grant) error {
	if from != g.Job.Origin() {
		return fmt.Errorf("%w: job %s does not originate at %s", ErrRefused, g.Job.Short(), from.Short())
	}
	w := c.workFor(from, g.Job)
	if w != nil {
		if w.ending {
			return fmt.Errorf("%w: earlier workers of job %s are not gone yet", ErrRefused, g.Job.Short())
		}
		for _, k := range w.workers {
			if slices.Contains(g.Ranks, k.RankAttempt) {
				return fmt.Errorf("%w: rank %d of job %s is here already", ErrRefused, k.Rank, g.Job.Short())
			}
		}
	}
	if err := c.claims.granted(now, from, g); err != nil {
		return err
	}
	c.clock.saw(g.Stamp, now)
	if w == nil {
		w = c.newWork(now, g.Job, from, g.Spec, g.Stamp)
	}
	for _, ra := range g.Ranks {
		w.workers = append(w.workers, c.newWorker(now, w, ra))
	}
	slices.SortFunc(w.workers, func(a, b *coreWorker) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Attempt, b.Attempt))
	})
	return nil
}

// knows notes the oldest table that a worker was started with.
func (w *coreWork) knows(s *Start) {
	if w.epoch == 0 {
		w.epoch = s.Epoch
	}
}

func (c *Core) newWork(now time.Time, job ID, origin vicinity.ID, spec Spec, stamp Stamp) *coreWork {
	w := &coreWork{job: job, origin: origin, spec: spec, stamp: stamp, heard: now, kick: true, next: now}
	c.works = append(c.works, w)
	return w
}

// newWorker makes a worker that is to be prepared.
func (c *Core) newWorker(now time.Time, w *coreWork, ra RankAttempt) *coreWorker {
	k := &coreWorker{RankAttempt: ra, state: WorkerPreparing, kept: now.Add(c.disk())}
	if c.cfg.Fate != nil {
		k.fate = c.cfg.Fate(w.job, &w.spec, ra)
	}
	k.due = now.Add(k.fate.Prepare)
	return k
}

func (c *Core) disk() time.Duration {
	if c.cfg.Disk == nil {
		return 0
	}
	return c.cfg.Disk()
}

func (c *Core) startRanks(now time.Time, w *coreWork, ranks []RankAttempt) {
	for _, k := range w.workers {
		if k.started || c.away || k.dropped || !slices.Contains(ranks, k.RankAttempt) {
			continue
		}
		k.started = true
		if k.state == WorkerReady {
			c.run(now, w, k)
		}
	}
}

// run starts a worker, once it is written down that it may run.
func (c *Core) run(now time.Time, w *coreWork, k *coreWorker) {
	if d := c.disk(); d > 0 {
		k.due = now.Add(d)
		return
	}
	c.execute(now, w, k)
}

func (c *Core) execute(now time.Time, w *coreWork, k *coreWorker) {
	if why := c.unable(); why != "" {
		c.claims.missed(now, why)
		c.decline(now, w, k, why)
		return
	}
	k.state, k.since, k.due = WorkerRunning, now, time.Time{}
	run, most := k.fate.Run, time.Duration(w.spec.Walltime)
	if most > 0 && (run <= 0 || run > most) {
		run, k.timeout = most, true
	}
	if run > 0 {
		k.due = now.Add(run)
	}
	w.kick = true
}

// stopRanks ends what runs, whose end is still to be reported.
func (w *coreWork) stopRanks(now time.Time, ranks []RankAttempt) {
	for _, k := range w.workers {
		if k.state == WorkerRunning && !k.stopped && !k.dropped && slices.Contains(ranks, k.RankAttempt) {
			k.stopped, k.timeout, k.due = true, false, now.Add(k.fate.Stop)
		}
	}
}

// dropRanks ends workers that are not wanted any more; none named means all.
func (c *Core) dropRanks(now time.Time, w *coreWork, ranks []RankAttempt) {
	for _, k := range slices.Clone(w.workers) {
		if k.dropped || len(ranks) > 0 && !slices.Contains(ranks, k.RankAttempt) {
			continue
		}
		k.dropped = true
		if k.state == WorkerRunning && k.fate.Stop > 0 {
			if !k.stopped {
				k.due = now.Add(k.fate.Stop)
			}
			continue
		}
		if k.uses() { // else its room was given back then
			c.claims.freed(w.job, 1, w.spec.needs())
		}
		w.remove(k)
	}
	w.ending = !slices.ContainsFunc(w.workers, func(k *coreWorker) bool { return !k.dropped })
	c.offerQueued(now)
}

func (w *coreWork) remove(k *coreWorker) {
	w.workers = slices.DeleteFunc(w.workers, func(x *coreWorker) bool { return x == k })
	w.kick = true
}

// tend moves workers on whose time has come, and reports.
func (c *Core) tend(now time.Time, w *coreWork) {
	for _, k := range slices.Clone(w.workers) {
		if !k.due.IsZero() && !now.Before(k.due) && !k.frozen(c.away) {
			k.due = time.Time{}
			w.kick = true
			c.move(now, w, k)
		}
	}
	if w.asking || now.Before(w.next) && (w.pause > 0 || !w.kick) {
		return
	}
	if len(w.workers) == 0 {
		c.works = slices.DeleteFunc(c.works, func(x *coreWork) bool { return x == w })
		return
	}
	c.report(now, w)
}

// move takes a worker to its next state.
func (c *Core) move(now time.Time, w *coreWork, k *coreWorker) {
	switch {
	case k.state == WorkerPreparing && k.fate.Unfit != "":
		k.state, k.reason, k.declined = WorkerLost, k.fate.Unfit, true
	case k.state == WorkerPreparing:
		k.state = WorkerReady
		if k.started {
			c.run(now, w, k)
		}
		return
	case k.state == WorkerReady:
		c.execute(now, w, k)
		return
	case k.dropped:
		w.remove(k)
	case k.reason != "":
		k.state = WorkerLost
	default:
		k.state = WorkerEnded
		c.claims.began()
		c.claims.dequeue(w.job)
	}
	c.claims.freed(w.job, 1, w.spec.needs())
	c.offerQueued(now)
}

// report mirrors work.report: what is not acknowledged is told again.
func (c *Core) report(now time.Time, w *coreWork) {
	w.kick = w.kick && w.pause > 0
	w.asking = true
	rep := &Report{Job: w.job, Addrs: c.cfg.Self.Addrs, Epoch: w.epoch}
	for _, k := range w.workers {
		wr := WorkerReport{RankAttempt: k.RankAttempt, State: k.state, Reason: k.reason, Declined: k.declined}
		if k.state == WorkerEnded {
			wr.Exit = k.exit()
			if len(w.spec.Outputs) > 0 {
				wr.Output = &RankOutput{Rank: k.Rank, Attempt: k.Attempt}
			}
		}
		rep.Workers = append(rep.Workers, wr)
	}
	if c.away {
		rep.Away = awayLease
	}
	c.ask(now, w.origin, w.job, rep, rep, reportTimeout, func(now time.Time, _ bool) {
		w.asking = false
		w.pause = min(max(2*w.pause, 100*time.Millisecond), reportEvery)
		w.next = now.Add(w.pause)
		c.unheard(now, w)
	}, func(now time.Time, r reply) {
		w.asking, w.pause, w.next = false, 0, now.Add(reportEvery)
		c.acknowledged(now, w, r.ack)
	})
}

// exit is how the process of a worker ended.
func (k *coreWorker) exit() *process.Exit {
	switch {
	case k.stopped:
		return &process.Exit{Code: 143, Cause: process.Stopped}
	case k.timeout:
		return &process.Exit{Code: 143, Cause: process.Walltime}
	}
	return &process.Exit{Code: k.fate.Code, Cause: process.Exited}
}

// acknowledged mirrors work.acknowledged.
func (c *Core) acknowledged(now time.Time, w *coreWork, ack Ack) {
	if !ack.Known {
		c.dropRanks(now, w, nil)
		return
	}
	w.heard = now
	var drop, stop []RankAttempt
	for _, a := range ack.Workers {
		if a.Stop {
			stop = append(stop, a.RankAttempt)
		}
		i := slices.IndexFunc(w.workers, func(k *coreWorker) bool { return k.RankAttempt == a.RankAttempt })
		switch {
		case i < 0:
		case a.Drop:
			drop = append(drop, a.RankAttempt)
		case a.Done:
			w.remove(w.workers[i])
		}
	}
	if len(drop) > 0 {
		c.dropRanks(now, w, drop)
	}
	w.stopRanks(now, stop)
	if ack.Table != nil {
		w.epoch = ack.Table.Epoch
	}
	if ack.Start != nil {
		w.knows(ack.Start)
		c.startRanks(now, w, ack.Start.Ranks)
	}
}
