package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/vicinity"
)

// participant is the core of what a node does for jobs, its own and those of others:
// it decides what becomes of each worker that was granted here, given how far it
// is and what is wanted of it, and when origins are told. What takes time is left as
// effects to an executor, which tells how each of them ended.
//
// It shares the claims on the node's slots with the core that it is part of.
type participant struct {
	claims *claims
	addrs  []string      // of this node
	orphan time.Duration // how long what runs goes on without word of its origin
	away   time.Duration // in which this node, which is being stopped, may be back; 0 = it is not
	works  map[ID]*work
	agenda agenda[*work]
	out    []effect
	news   bool // watchers are to be told
}

// workerID names a worker among those of all jobs.
type workerID struct {
	Job ID
	RankAttempt
}

const (
	// stopGrace is between SIGTERM and SIGKILL.
	stopGrace = 5 * time.Second
	// nodeLimit and orphanLimit are how long a worker goes on without its node
	// and without its origin, if the owner says nothing else.
	nodeLimit   = time.Hour
	orphanLimit = time.Hour
	// maxAgain is how often a worker that could not be started is tried at the
	// same node, if a trial there works.
	maxAgain = 2
)

// all lists what this node does for jobs, in the order of their coming.
func (p *participant) all() []*work {
	return slices.SortedFunc(maps.Values(p.works), func(a, b *work) int { return cmp.Compare(a.number, b.number) })
}

func (p *participant) do(e effect) { p.out = append(p.out, e) }

// granted takes a grant: the hold becomes claims, and its workers are prepared.
func (p *participant) granted(now time.Time, from vicinity.ID, g *Grant) error {
	w := p.works[g.Job]
	if err := p.engageable(from, w, g); err != nil {
		return err
	}
	if err := p.claims.granted(now, from, g); err != nil {
		return err
	}
	fresh := w == nil
	if fresh {
		w = p.newWork(now, g, now)
		w.first = g.Ranks[0]
	}
	w.heard = now
	for _, ra := range g.Ranks {
		k := newWorker(ra, &w.spec)
		k.gpus = p.claims.takeGPUs(g.Spec.GPUs)
		w.add(k)
		p.prepare(now, w, k)
	}
	if fresh {
		p.fetch(w, slices.Concat([]vicinity.ID{from}, g.Holders), false)
	}
	if fresh && w.inputs == inputsHere { // it will be ready in a moment, and must not wait for the answer to an earlier report
		w.next, p.news = now.Add(reportEvery), true
		p.schedule(now, w)
		return nil
	}
	p.tell(now, w)
	return nil
}

// engageable says why the ranks of a grant cannot be made, given what is here of the
// job already.
func (p *participant) engageable(from vicinity.ID, w *work, g *Grant) error {
	switch {
	case from != g.Job.Origin():
		return fmt.Errorf("%w: job %s does not originate at %s", ErrRefused, g.Job.Short(), from.Short())
	case p.away > 0:
		return fmt.Errorf("%w: the node is leaving", ErrRefused)
	case w == nil:
		return nil
	case w.ending || w.inputs == inputsFailed:
		return fmt.Errorf("%w: earlier workers of job %s are not gone yet", ErrRefused, g.Job.Short())
	}
	for _, ra := range g.Ranks {
		if w.find(ra) != nil {
			return fmt.Errorf("%w: rank %d of job %s is here already", ErrRefused, ra.Rank, g.Job.Short())
		}
	}
	return nil
}

func (p *participant) newWork(now time.Time, g *Grant, since time.Time) *work {
	w := &work{job: g.Job, origin: g.Job.Origin(), addrs: g.Addrs, spec: g.Spec, stamp: g.Stamp, state: Staging, heard: now, since: since}
	p.works[g.Job] = w
	return w
}

func (p *participant) fetch(w *work, holders []vicinity.ID, known bool) {
	if w.spec.Inputs.IsZero() {
		w.inputs = inputsHere
		return
	}
	p.do(doFetch{w.job, w.spec.Inputs, holders, known})
}

func (p *participant) prepare(now time.Time, w *work, k *worker) {
	k.phase = phaseClaiming
	p.do(doClaim{workerID{w.job, k.RankAttempt}, w.claim(now, k, nil)})
}

// adopt goes on with a worker of an earlier life of this node: one that may run is
// followed, one that never started is prepared anew, and of one that did not begin
// and will not its origin is told.
func (p *participant) adopt(now time.Time, c claimRecord) {
	w := p.works[c.Job]
	if w == nil {
		w = p.newWork(now, &Grant{Job: c.Job, Addrs: c.Addrs, Spec: c.Spec, Stamp: c.Stamp}, c.Since)
		w.first = c.RankAttempt
		p.fetch(w, []vicinity.ID{w.origin}, true)
	}
	k := newWorker(c.RankAttempt, &w.spec)
	w.add(k)
	p.tell(now, w)
	if c.Lost != "" { // its room was given away then
		k.state, k.declined, k.reason, k.phase, k.freed = WorkerLost, true, c.Lost, phaseOver, true
		return
	}
	k.gpus = c.GPUs
	p.claims.adopted(c.Job, &c.Spec, c.GPUs, earlier(c.At, now))
	if c.Start == nil {
		p.prepare(now, w, k)
		return
	}
	k.state, k.adopted, k.start, k.phase = WorkerRunning, true, c.Start, phaseStarting
	p.do(doAdopt{workerID{w.job, k.RankAttempt}, c})
}

// tell has the origin told soon that something has changed.
func (p *participant) tell(now time.Time, w *work) {
	w.kick, p.news = true, true
	p.schedule(now, w)
}

// schedule says when a work has something to do.
func (p *participant) schedule(now time.Time, w *work) {
	at := w.next
	switch {
	case w.asking:
		at = time.Time{}
	case w.kick && w.pause == 0 || len(w.workers) == 0:
		at = now
	}
	p.agenda.set(w, at)
}

// want notes what is wanted of workers, of all if none is named, and goes on with
// them.
func (p *participant) want(now time.Time, w *work, what wish, ranks []RankAttempt) {
	for _, k := range slices.Clone(w.workers) {
		if k.wanted(what|wantDone) || len(ranks) > 0 && !slices.Contains(ranks, k.RankAttempt) {
			continue
		}
		k.wants |= what
		p.advance(now, w, k)
	}
	dropped := func(k *worker) bool { return k.wanted(wantDrop) }
	if !w.ending && what == wantDrop && !slices.ContainsFunc(w.workers, func(k *worker) bool { return !dropped(k) }) {
		w.ending = true
		p.do(doCancelWork{w.job})
	}
}

// started lets prepared workers run.
func (p *participant) started(now time.Time, start *Start) {
	w := p.works[start.Job]
	for _, ra := range start.Ranks {
		if k := w.find(ra); k != nil && k.start == nil {
			k.start = start
			p.advance(now, w, k)
		}
	}
}

// evict ends a worker that this node does not want any more.
func (p *participant) evict(now time.Time, w *work, k *worker, why string) {
	if k.wanted(wantEvict) {
		return
	}
	k.wants |= wantEvict
	k.why = why
	p.advance(now, w, k)
}

// evictAll ends all workers that are here now.
func (p *participant) evictAll(now time.Time, why string) {
	for _, w := range p.all() {
		for _, k := range slices.Clone(w.workers) {
			p.evict(now, w, k, why)
		}
	}
}

// leave begins to stop the node: nothing is started any more, and what is here goes
// on without it, for so long, of which the origins are told.
func (p *participant) leave(now time.Time, away time.Duration) {
	p.away = away
	for _, w := range p.all() {
		for _, k := range slices.Clone(w.workers) {
			p.advance(now, w, k)
		}
		p.do(doCancelWork{w.job})
		p.tell(now, w)
	}
}

// advance takes a worker one step on, given how far it is and what is wanted of it.
// What the executor is at is waited for.
func (p *participant) advance(now time.Time, w *work, k *worker) {
	id := workerID{w.job, k.RankAttempt}
	switch k.phase {
	case phaseWaiting, phaseReady:
		switch {
		case k.wanted(wantDrop):
			p.part(now, w, k)
		case k.wanted(wantEvict):
			p.decline(now, w, k, k.why)
		case p.away > 0:
			p.part(now, w, k)
		case k.phase == phaseWaiting && w.inputs == inputsFailed:
			p.decline(now, w, k, w.failed)
		case k.phase == phaseWaiting && w.inputs == inputsHere:
			k.phase = phaseLaying
			p.do(doLay{id})
		case k.phase == phaseReady && k.start != nil:
			k.phase = phaseStarting
			p.do(doRun{id, w.claim(now, k, k.start), w.siblings(k)})
		}
	case phaseRunning:
		p.steer(now, w, k)
	case phaseOver:
		switch {
		case k.wanted(wantDrop | wantDone):
			k.phase = phaseRemoving
			p.do(doRemove{id})
		case p.away > 0 && k.lasts() && !k.away:
			k.away = true
			p.tell(now, w)
		}
	}
}

// siblings lists the ranks at this node that are of the same copy of the job.
func (w *work) siblings(k *worker) (ranks []int) {
	_, replica := w.spec.RankOf(k.Rank)
	for _, other := range w.workers {
		if rank, of := w.spec.RankOf(other.Rank); of == replica {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// steer tells a worker's process what it was not told yet.
func (p *participant) steer(now time.Time, w *work, k *worker) {
	id := workerID{w.job, k.RankAttempt}
	for _, one := range []wish{wantStop, wantDrop, wantEvict} {
		if !k.wanted(one) || k.obeyed&one != 0 {
			continue
		}
		k.obeyed |= one
		switch one {
		case wantDrop:
			k.lost = "not wanted any more"
		case wantEvict:
			k.lost = k.why
		}
		p.do(doEnd{id, one == wantStop})
		p.tell(now, w)
	}
	if p.away > 0 && k.lost == "" && !k.away {
		k.away = true
		p.tell(now, w)
	}
}

// decline tells that a worker did not begin here, and is free to run elsewhere.
func (p *participant) decline(now time.Time, w *work, k *worker, why string) {
	k.state, k.declined, k.reason, k.phase = WorkerLost, true, oneLine(why), phaseParking
	p.do(doPark{workerID{w.job, k.RankAttempt}, w.claim(now, k, nil)})
	p.tell(now, w)
}

// lose tells that a worker cannot be run any more.
func (p *participant) lose(now time.Time, w *work, k *worker, why string) {
	k.state, k.reason = WorkerLost, oneLine(why)
	p.part(now, w, k)
}

// part is the end of a worker's life on this node: its room is free, and it goes
// when all of it is safe at the origin or not wanted. A node that stops keeps what
// has not come so far.
func (p *participant) part(now time.Time, w *work, k *worker) {
	k.phase = phaseOver
	if !k.freed {
		k.freed = true
		if k.state == WorkerEnded { // then the job does not grow, but its origin hears of that later than of an offer
			p.claims.dequeue(w.job)
		}
		p.claims.giveGPUs(k.gpus)
		p.claims.freed(w.job, 1, k.needs)
		p.claims.loose = true
	}
	p.tell(now, w)
	p.advance(now, w, k)
}
