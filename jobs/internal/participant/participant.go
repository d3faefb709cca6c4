// Package participant is the core of what a node does for jobs, from the grant of a
// worker to the moment at which all of it is safe at the origin.
//
// Each worker has a phase, what is being done for it, and wishes, what is wanted of
// it; advance takes it one step on. What takes time is an Effect, of which the
// participant is told how it ended.
package participant

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/internal/sanitize"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/claims"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Participant is the core of what a node does for jobs, its own and those of others:
// it decides what becomes of each worker that was granted here, given how far it
// is and what is wanted of it, and when origins are told. What takes time is left as
// effects to an executor, which reports how each of them ended.
//
// It shares the claims on the node's slots with the core that it is part of.
type Participant struct {
	Claims  *claims.Claims
	Addrs   []string      // of this node
	Orphan  time.Duration // how long what runs goes on without word of its origin
	Leaving time.Duration // this node is being stopped, and may be back in this time; 0 = it is not
	Works   map[jobs.ID]*Work
	Timers  timers.Queue[*Work]
	Out     []Effect
	closing
	News bool // watchers are to be told
}

// WorkerID names a worker among those of all jobs.
type WorkerID struct {
	Job jobs.ID
	jobs.RankAttempt
}

const (
	// StopGrace is between SIGTERM and SIGKILL.
	StopGrace = 5 * time.Second
	// GangGrace is that of the ranks of an MPI program, which are of no use without each
	// other: with heartbeat.Silence before it, less than the two seconds within which they end.
	GangGrace = 200 * time.Millisecond
	// NodeLimit and OrphanLimit are how long a worker goes on without its node
	// and without its origin, if the owner says nothing else.
	NodeLimit   = time.Hour
	OrphanLimit = time.Hour
	// MaxNotice is how long the programs of a node that its owner wants back hear of that before, at most.
	MaxNotice = 10 * time.Minute
	// maxAgain is how often a worker that could not be started is tried at the
	// same node, if a trial there works.
	maxAgain = 2
)

// All lists what this node does for jobs, in the order of their coming.
func (p *Participant) All() []*Work {
	return slices.SortedFunc(maps.Values(p.Works), func(a, b *Work) int { return cmp.Compare(a.Number, b.Number) })
}

// Do leaves an effect to be done.
func (p *Participant) Do(e Effect) { p.Out = append(p.Out, e) }

// Granted takes a grant: the hold becomes claims, and its workers are prepared.
func (p *Participant) Granted(now time.Time, from vicinity.ID, g *wire.Grant) error {
	w := p.Works[g.Job]
	if err := p.engageable(from, w, g); err != nil {
		return err
	}
	if err := p.Claims.Granted(now, from, g); err != nil {
		return err
	}
	fresh := w == nil
	if fresh {
		w = p.newWork(now, g, now)
	}
	if len(w.Workers) == 0 && len(g.Ranks) > 0 {
		w.first = g.Ranks[0]
	}
	w.Heard, w.spared = now, w.spared || g.Spares > 0
	for _, ra := range g.Ranks {
		k := w.newWorker(ra)
		k.gpus = p.Claims.TakeGPUs(k.needs.GPUs)
		if g.Spec.MPI {
			k.cores = p.Claims.Cores.Take(k.needs.Slots)
		}
		k.share = w.share()
		k.granted(g.Resume, ra.Rank)
		k.allow()
		w.add(k)
		k.prepare(now)
	}
	if fresh {
		w.fetch(slices.Concat([]vicinity.ID{from}, g.Holders), false)
	}
	if fresh && w.inputs == inputsHere && g.Spares == 0 { // it will be ready in a moment, and must not wait for the answer to an earlier report
		w.next, p.News = now.Add(wire.ReportEvery), true
		w.schedule(now)
		return nil
	}
	w.tell(now)
	return nil
}

// engageable says why the ranks of a grant cannot be made, given what is here of the
// job already.
func (p *Participant) engageable(from vicinity.ID, w *Work, g *wire.Grant) error {
	switch {
	case from != g.Job.Origin():
		return fmt.Errorf("%w: job %s does not originate at %s", jobs.ErrRefused, g.Job.Short(), from.Short())
	case p.Leaving > 0:
		return wire.Refusal(wire.ReasonLeaving)
	case w == nil:
		return nil
	case w.ending || w.inputs == inputsFailed || !sameSizes(w.Spec.Groups, g.Spec.Groups):
		return wire.Refusal(wire.ReasonEarlier)
	}
	for _, ra := range g.Ranks {
		if w.find(ra) != nil {
			return fmt.Errorf("%w: rank %d of job %s is here already", jobs.ErrRefused, ra.Rank, g.Job.Short())
		}
	}
	return nil
}

// sameSizes reports whether groups are as large as before. If their sizes were chosen again, the ranks of the
// workers that are here are of other groups by now, and these are not wanted any more.
func sameSizes(before, now []groups.Group) bool {
	return slices.EqualFunc(before, now, func(a, b groups.Group) bool { return a.Max == b.Max })
}

func (p *Participant) newWork(now time.Time, g *wire.Grant, since time.Time) *Work {
	w := &Work{part: p, Job: g.Job, Origin: g.Job.Origin(), addrs: g.Addrs, Spec: g.Spec, stamp: g.Stamp, state: jobs.Staging, Heard: now, since: since}
	p.Works[g.Job] = w
	return w
}

func (w *Work) fetch(holders []vicinity.ID, known bool) {
	if w.Spec.Inputs.IsZero() {
		w.inputs = inputsHere
		return
	}
	w.part.Do(DoFetch{w.Job, w.Spec.Inputs, holders, known})
}

func (k *Worker) prepare(now time.Time) {
	p, w := k.work.part, k.work
	k.Phase = PhaseClaiming
	p.Do(DoClaim{k.id(), w.claim(now, k, nil)})
}

// Adopt goes on with a worker of an earlier life of this node: one that may run is
// followed, one that never started is prepared anew, and of one that did not begin
// and will not its origin is told.
func (p *Participant) Adopt(now time.Time, c ClaimRecord) {
	w := p.Works[c.Job]
	if w == nil {
		w = p.newWork(now, &wire.Grant{Job: c.Job, Addrs: c.Addrs, Spec: c.Spec, Stamp: c.Stamp}, c.Since)
		w.first = c.RankAttempt
		w.fetch([]vicinity.ID{w.Origin}, true)
	}
	k := w.newWorker(c.RankAttempt)
	w.add(k)
	w.tell(now)
	if c.Lost != "" { // its room was given away then
		k.State, k.Declined, k.reason, k.Phase, k.Freed = jobs.WorkerLost, true, c.Lost, PhaseOver, true
		return
	}
	k.gpus, k.cores, k.share = c.GPUs, c.Cores, c.Share
	k.last, k.resume, k.allowed = c.Last, c.Resume, c.Allowed
	p.Claims.Cores.Keep(c.Cores)
	p.Claims.Adopted(c.Job, &c.Spec, c.Rank, c.GPUs, timers.Earlier(c.At, now), c.Allowed.Std())
	if c.Start == nil {
		k.prepare(now)
		return
	}
	k.State, k.adopted, k.start, k.begun = jobs.WorkerRunning, true, c.Start, timers.Earlier(c.At, now)
	k.begin()
	p.Do(DoAdopt{k.id(), c})
}

// tell has the origin told soon that something has changed.
func (w *Work) tell(now time.Time) {
	w.kick, w.part.News = true, true
	w.schedule(now)
}

// schedule says when a work has something to do.
func (w *Work) schedule(now time.Time) {
	at := w.next
	switch {
	case w.asking:
		at = time.Time{}
	case w.kick && w.pause == 0 || w.empty():
		at = now
	}
	w.part.Timers.Set(w, at)
}

// Want notes what is wanted of workers, of all if none is named, and goes on with
// them.
func (w *Work) Want(now time.Time, what Wish, ranks []jobs.RankAttempt) {
	for _, k := range slices.Clone(w.Workers) {
		if k.wants&what == what || k.wanted(WantDone) || len(ranks) > 0 && !slices.Contains(ranks, k.RankAttempt) {
			continue
		}
		k.wants |= what
		k.advance(now)
	}
	if what == WantDrop && len(ranks) == 0 {
		w.LetSparesGo(now)
	}
	dropped := func(k *Worker) bool { return k.wanted(WantDrop) }
	if !w.ending && what == WantDrop && w.spares() == nil && !slices.ContainsFunc(w.Workers, func(k *Worker) bool { return !dropped(k) }) {
		w.end()
	}
}

// Started lets prepared workers run.
func (p *Participant) Started(now time.Time, start *wire.Start) {
	w := p.Works[start.Job]
	for _, ra := range start.Ranks {
		if k := w.find(ra); k != nil && k.start == nil {
			k.start = start
			k.advance(now)
		}
	}
}

// evict ends a worker that this node does not want any more, how: WantEvict, or WantEvict|WantNow.
func (k *Worker) evict(now time.Time, how Wish, why string) {
	if k.wants&how == how {
		return
	}
	if !k.wanted(WantEvict) {
		k.why = why
	}
	k.wants |= how
	k.advance(now)
}

// EvictAll ends all workers that are here now, how: WantEvict, or WantEvict|WantNow.
func (p *Participant) EvictAll(now time.Time, how Wish, why string) {
	for _, w := range p.All() {
		for _, k := range slices.Clone(w.Workers) {
			k.evict(now, how, why)
		}
	}
	p.GiveSparesBack(now)
}

// Leave begins to stop the node: nothing is started any more, and what is here goes
// on without it, for so long, of which the origins are told.
func (p *Participant) Leave(now time.Time, away time.Duration) {
	p.Leaving = away
	for _, w := range p.All() {
		for _, k := range slices.Clone(w.Workers) {
			k.advance(now)
		}
		p.Do(DoCancelWork{w.Job})
		w.tell(now)
	}
	p.GiveSparesBack(now)
}

// advance takes a worker one step on, given how far it is and what is wanted of it.
// What the executor is at is waited for.
func (k *Worker) advance(now time.Time) {
	p, w := k.work.part, k.work
	id := k.id()
	switch k.Phase {
	case PhaseWaiting, PhaseReady:
		switch {
		case k.wanted(WantDrop):
			k.over(now)
		case k.wanted(WantEvict):
			k.decline(now, k.why)
		case p.Leaving > 0:
			k.over(now)
		case k.Phase == PhaseWaiting && w.inputs == inputsFailed:
			k.decline(now, w.failed)
		case k.Phase == PhaseWaiting && w.inputs == inputsHere:
			k.Phase = PhaseLaying
			p.Do(DoLay{id, k.resume})
		case k.Phase == PhaseReady && k.start != nil:
			k.begin()
			p.Do(DoRun{id, w.claim(now, k, k.start), w.siblings(k), w.gpus()})
		}
	case PhaseRunning:
		k.steer(now)
	case PhaseOver:
		switch {
		case k.wanted(WantDrop | WantDone):
			k.Phase = PhaseRemoving
			p.Do(DoRemove{id})
		case p.Leaving > 0 && k.Lasts() && !k.Detached:
			k.Detached = true
			w.tell(now)
		}
	}
}

// siblings lists the ranks at this node that are of the same copy of the job.
func (w *Work) siblings(k *Worker) (ranks []int) {
	_, replica := w.Spec.RankOf(k.Rank)
	for _, other := range w.Workers {
		if rank, of := w.Spec.RankOf(other.Rank); of == replica {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// gpus lists those of all workers of the job here, in order.
func (w *Work) gpus() (numbers []int) {
	for _, k := range w.Workers {
		if !k.Freed {
			numbers = append(numbers, k.gpus...)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// steer tells a worker's process what it was not told yet.
func (k *Worker) steer(now time.Time) {
	p, w := k.work.part, k.work
	id := k.id()
	for _, one := range []Wish{WantStop, WantDrop, WantEvict, WantNow} {
		if !k.wanted(one) || k.obeyed&one != 0 {
			continue
		}
		k.obeyed |= one | k.wants&WantNow
		switch one {
		case WantDrop:
			k.lost = "not wanted any more"
		case WantEvict:
			k.lost = k.why
		}
		p.Do(DoEnd{id, one == WantStop, k.notice(), w.grace()})
		w.tell(now)
	}
	if p.Leaving > 0 && k.lost == "" && !k.Detached {
		k.Detached = true
		w.tell(now)
	}
}

// decline tells that a worker did not begin here, and is free to run elsewhere.
func (k *Worker) decline(now time.Time, why string) {
	p, w := k.work.part, k.work
	k.State, k.Declined, k.reason, k.Phase = jobs.WorkerLost, true, sanitize.OneLine(why), PhaseParking
	p.Do(DoPark{k.id(), w.claim(now, k, nil)})
	w.tell(now)
}

// lose tells that a worker cannot be run any more.
func (k *Worker) lose(now time.Time, why string) {
	k.State, k.reason = jobs.WorkerLost, sanitize.OneLine(why)
	k.over(now)
}

// over is the end of a worker's life on this node: its room is free, and it goes
// when all of it is safe at the origin or not wanted. A node that stops keeps what
// has not come so far.
func (k *Worker) over(now time.Time) {
	p, w := k.work.part, k.work
	k.Phase = PhaseOver
	if !k.Freed {
		k.Freed = true
		if k.State == jobs.WorkerEnded { // then the job does not grow, but its origin hears of that later than of an offer
			p.Claims.Dequeue(w.Job)
		}
		p.Claims.GiveGPUs(k.gpus)
		p.Claims.Cores.Give(k.cores)
		p.Claims.Freed(w.Job, 1, k.needs)
		p.Claims.Loose = true
	}
	w.tell(now)
	k.advance(now)
}

// WorkFor finds what this node does for a job of that origin.
func (p *Participant) WorkFor(from vicinity.ID, id jobs.ID) *Work {
	if w := p.Works[id]; w != nil && w.Origin == from {
		return w
	}
	return nil
}
