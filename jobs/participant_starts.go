package jobs

import (
	"cmp"
	"time"

	"zorilla/jobs/process"
)

// What becomes of workers that could not be prepared or started.

// unprepared handles a worker that could not be prepared: whether that is the
// fault of this node is found out, since whoever comes next would fare no better.
func (p *participant) unprepared(now time.Time, w *work, k *worker, why string, since time.Time) {
	switch {
	case k.wanted(wantEvict):
		p.decline(now, w, k, k.why)
	case p.away > 0:
		p.part(now, w, k)
	case w.ending:
		p.decline(now, w, k, why)
	default:
		k.phase, k.trouble = phaseTrying, why
		p.do(doTry{workerID{w.job, k.RankAttempt}, since})
	}
}

const notStarted = "could not start it: "

// unstarted handles a worker whose program did not begin.
func (p *participant) unstarted(now time.Time, w *work, k *worker, why string, since time.Time) {
	if p.away > 0 || k.wanted(wantDrop|wantEvict|wantStop) {
		p.decline(now, w, k, notStarted+why)
		return
	}
	k.phase, k.trouble = phaseTrying, why
	p.do(doTry{workerID{w.job, k.RankAttempt}, since})
}

// judged goes on with a worker that could not be prepared or started, now that it
// is known whether others could be: trouble is why not, or "".
func (p *participant) judged(now time.Time, w *work, k *worker, trouble string) {
	switch prepared := k.state != WorkerPreparing; {
	case !prepared && k.wanted(wantEvict):
		p.decline(now, w, k, k.why)
	case !prepared && p.away > 0:
		p.part(now, w, k)
	case !prepared:
		p.decline(now, w, k, cmp.Or(k.trouble, trouble))
	case trouble != "":
		p.decline(now, w, k, notStarted+trouble)
	case k.again < maxAgain:
		k.again++
		k.state, k.start, k.adopted = WorkerPreparing, nil, false
		p.prepare(now, w, k)
		p.tell(now, w)
	default: // others can be started here, so that this one is not the node's fault
		k.exit = &process.Exit{Code: CodeZorilla, Cause: process.Failed, Detail: oneLine(k.trouble), Ended: now}
		k.state = WorkerEnded
		p.part(now, w, k)
	}
}
