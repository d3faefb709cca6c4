package participant

import (
	"cmp"
	"time"

	"zorilla/internal/plain"
	"zorilla/jobs"
	"zorilla/jobs/process"
)

// What becomes of workers that could not be prepared or started.

// unprepared handles a worker that could not be prepared: whether that is the
// fault of this node is found out, since whoever comes next would fare no better.
func (p *Participant) unprepared(now time.Time, w *Work, k *Worker, why string, since time.Time) {
	switch {
	case k.wanted(WantEvict):
		p.decline(now, w, k, k.why)
	case p.Away > 0:
		p.part(now, w, k)
	case w.ending:
		p.decline(now, w, k, why)
	default:
		k.Phase, k.trouble = PhaseTrying, why
		p.Do(DoTry{WorkerID{w.Job, k.RankAttempt}, since})
	}
}

const notStarted = "could not start it: "

// unstarted handles a worker whose program did not begin.
func (p *Participant) unstarted(now time.Time, w *Work, k *Worker, why string, since time.Time) {
	if p.Away > 0 || k.wanted(WantDrop|WantEvict|WantStop) {
		p.decline(now, w, k, notStarted+why)
		return
	}
	k.Phase, k.trouble = PhaseTrying, why
	p.Do(DoTry{WorkerID{w.Job, k.RankAttempt}, since})
}

// judged goes on with a worker that could not be prepared or started, now that it
// is known whether others could be: trouble is why not, or "".
func (p *Participant) judged(now time.Time, w *Work, k *Worker, trouble string) {
	switch prepared := k.State != jobs.WorkerPreparing; {
	case !prepared && k.wanted(WantEvict):
		p.decline(now, w, k, k.why)
	case !prepared && p.Away > 0:
		p.part(now, w, k)
	case !prepared:
		p.decline(now, w, k, cmp.Or(k.trouble, trouble))
	case trouble != "":
		p.decline(now, w, k, notStarted+trouble)
	case k.again < maxAgain:
		k.again++
		k.State, k.start, k.adopted = jobs.WorkerPreparing, nil, false
		p.prepare(now, w, k)
		p.tell(now, w)
	default: // others can be started here, so that this one is not the node's fault
		k.exit = &process.Exit{Code: jobs.CodeZorilla, Cause: process.Failed, Detail: plain.OneLine(k.trouble), Ended: now}
		k.State = jobs.WorkerEnded
		p.part(now, w, k)
	}
}
