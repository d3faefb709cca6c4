package participant

import (
	"cmp"
	"slices"
	"time"

	"zorilla/internal/sanitize"
	"zorilla/jobs"
	"zorilla/jobs/internal/claims"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/work"
)

// What becomes of workers that could not be prepared or started.

// unprepared handles a worker that could not be prepared: whether that is the
// fault of this node is found out, since whoever comes next would fare no better.
func (k *Worker) unprepared(now time.Time, why string, since time.Time) {
	p, w := k.work.part, k.work
	switch {
	case k.wanted(WantEvict):
		k.decline(now, k.why)
	case p.Leaving > 0:
		k.over(now)
	case w.ending:
		k.decline(now, why)
	default:
		k.Phase, k.trouble = PhaseTrying, why
		p.Do(DoTry{k.id(), since})
	}
}

const notStarted = "could not start it: "

// unstarted handles a worker whose program did not begin.
func (k *Worker) unstarted(now time.Time, why string, since time.Time) {
	p := k.work.part
	if p.Leaving > 0 || k.wanted(WantDrop|WantEvict|WantStop) {
		k.decline(now, notStarted+why)
		return
	}
	k.Phase, k.trouble = PhaseTrying, why
	p.Do(DoTry{k.id(), since})
}

// judged goes on with a worker that could not be prepared or started, now that it
// is known whether others could be: trouble is why not, or "".
func (k *Worker) judged(now time.Time, trouble string) {
	p, w := k.work.part, k.work
	switch prepared := k.State != jobs.WorkerPreparing; {
	case k.Declined:
		k.decline(now, k.why)
	case !prepared && k.wanted(WantEvict):
		k.decline(now, k.why)
	case !prepared && p.Leaving > 0:
		k.over(now)
	case !prepared:
		k.decline(now, cmp.Or(k.trouble, trouble))
	case trouble != "":
		k.decline(now, notStarted+trouble)
	case k.again < maxAgain:
		k.again++
		k.State, k.start, k.adopted = jobs.WorkerPreparing, nil, false
		k.prepare(now)
		w.tell(now)
	default: // others can be started here, so that this one is not the node's fault
		k.exit = &work.Exit{Code: jobs.CodeZorilla, Cause: work.Failed, Detail: sanitize.OneLine(k.trouble), Ended: now}
		k.State = jobs.WorkerEnded
		k.over(now)
	}
}

// Answers tells that the disk of this node does not answer, or does again. What has not begun
// to run goes back to its origin at once, though the executor may be at it for as long as that
// lasts: its room is free when the executor has done.
func (p *Participant) Answers(now time.Time, yes bool) {
	claims.Answers(p.Claims, now, yes)
	p.Claims.Loose, p.News = true, true
	if yes || p.Leaving > 0 {
		return
	}
	for _, w := range p.All() {
		for _, k := range slices.Clone(w.Workers) {
			k.giveBack(now, wire.ReasonHangs)
		}
	}
}

// giveBack declines a worker that has not begun to run, without waiting for what is done for it.
func (k *Worker) giveBack(now time.Time, why string) {
	adopted := k.Phase == PhaseStarting && k.State == jobs.WorkerRunning // it may run
	switch {
	case k.State == jobs.WorkerLost || adopted:
	case k.Phase == PhaseWaiting || k.Phase == PhaseReady:
		k.evict(now, WantEvict, why)
	case k.Phase == PhaseClaiming || k.Phase == PhaseLaying || k.Phase == PhaseStarting || k.Phase == PhaseTrying:
		k.wants |= WantEvict
		k.why = why
		k.State, k.Declined, k.reason = jobs.WorkerLost, true, why
		k.work.tell(now)
	}
}

// GivenBack reports whether a worker must not begin any more.
func (p *Participant) GivenBack(id WorkerID) bool {
	w := p.Works[id.Job]
	if w == nil {
		return true
	}
	k := w.find(id.RankAttempt)
	return k == nil || k.Declined
}
