package jobs

import (
	"slices"
	"time"

	"zorilla/jobs/process"
	"zorilla/transfer"
)

// What the executor of a participant tells.

// of finds a worker that must be there, since it has something done for it.
func (p *participant) of(id workerID) (*work, *worker) {
	w := p.works[id.Job]
	return w, w.find(id.RankAttempt)
}

// fetched tells that the inputs of a job are here, or why they are not.
func (p *participant) fetched(now time.Time, job ID, err error) {
	w := p.works[job]
	if w.inputs = inputsHere; err != nil {
		w.inputs, w.failed = inputsFailed, err.Error()
	}
	for _, k := range slices.Clone(w.workers) {
		p.advance(now, w, k)
	}
	p.schedule(now, w)
}

// moved tells how much of the inputs is here so far.
func (p *participant) moved(job ID, so transfer.Stats) {
	if w := p.works[job]; w != nil {
		if k := w.find(w.first); k != nil {
			k.stats = so
		}
	}
}

// claimed tells that a worker's directory is made, or why not. What was tried since
// then counts.
func (p *participant) claimed(now time.Time, id workerID, err error, since time.Time) {
	w, k := p.of(id)
	if err != nil {
		p.unprepared(now, w, k, err.Error(), since)
		return
	}
	k.phase = phaseWaiting
	p.advance(now, w, k)
}

// laid tells that a worker's input files are there, or why not.
func (p *participant) laid(now time.Time, id workerID, err error, since time.Time) {
	w, k := p.of(id)
	if err != nil {
		p.unprepared(now, w, k, err.Error(), since)
		return
	}
	k.phase, k.state = phaseReady, WorkerReady
	p.tell(now, w)
	p.advance(now, w, k)
}

// begun tells that a worker's process runs, or ran, and knows its job's table as of
// an epoch.
func (p *participant) begun(now time.Time, id workerID, epoch int64) {
	w, k := p.of(id)
	k.state, k.phase = WorkerRunning, phaseRunning
	if w.spec.Array == nil {
		k.epoch = epoch
	}
	p.tell(now, w)
	p.advance(now, w, k)
}

// notBegun tells why a worker could not be started.
func (p *participant) notBegun(now time.Time, id workerID, why string, since time.Time) {
	w, k := p.of(id)
	p.unstarted(now, w, k, why, since)
}

// neverBegun tells that a worker which was adopted had not begun to run. The origin
// will say again that it may.
func (p *participant) neverBegun(now time.Time, id workerID) {
	w, k := p.of(id)
	k.state, k.start, k.adopted = WorkerPreparing, nil, false
	p.prepare(now, w, k)
	p.tell(now, w)
}

// gone tells why a worker cannot be adopted.
func (p *participant) gone(now time.Time, id workerID, why string) {
	w, k := p.of(id)
	p.lose(now, w, k, why)
}

// exited tells how a worker's process ended, and whether an earlier life of this
// node noted that its origin wanted that. If its program did not begin, trials since
// then count.
func (p *participant) exited(now time.Time, id workerID, exit process.Exit, noted bool, since time.Time) {
	w, k := p.of(id)
	exit.Detail = oneLine(exit.Detail)
	switch {
	case exit.Cause == process.Unstarted:
		p.unstarted(now, w, k, exit.Detail, since)
		return
	case k.lost != "":
		p.lose(now, w, k, k.lost)
		return
	case exit.Cause == process.Lost || exit.Cause == process.Orphaned:
		p.lose(now, w, k, exit.Detail)
		return
	case exit.Cause == process.Stopped && !k.wanted(wantStop) && !noted:
		p.lose(now, w, k, "its machine stopped it")
		return
	}
	p.claims.began()
	if p.away > 0 { // perhaps its files would not all be stored in time: the next life does that
		p.part(now, w, k)
		return
	}
	k.ended, k.phase = &exit, phaseGathering
	if globs := w.spec.gathered(); len(globs) > 0 {
		p.do(doGather{id, w.spec.who(k.Rank), globs})
		p.tell(now, w)
		return
	}
	p.gathered(now, id, nil, nil, nil)
}

// gathered lists the patterns of the files that are stored when a worker has ended.
func (s *Spec) gathered() []string {
	if s.Array != nil { // files of tasks came with their results
		return nil
	}
	return s.Outputs
}

// gathered tells that the files of a worker that has ended are stored.
func (p *participant) gathered(now time.Time, id workerID, output *RankOutput, warn []string, err error) {
	w, k := p.of(id)
	if p.away == 0 && k.state != WorkerLost {
		if err != nil && k.ended.Code == 0 { // what it did is lost, and must not look as if it were not
			k.ended.Code, k.ended.Cause, k.ended.Detail = CodeZorilla, process.Failed, oneLine(err.Error())
		}
		k.state, k.exit, k.output, k.warn = WorkerEnded, k.ended, output, warn
	}
	p.part(now, w, k)
}

// parked tells that the claim of a worker that did not begin says so, or that it could
// not be written and is gone.
func (p *participant) parked(now time.Time, id workerID, err error) {
	w, k := p.of(id)
	k.unclaimed = err != nil
	p.part(now, w, k)
}

// removed tells that nothing is left of a worker.
func (p *participant) removed(now time.Time, id workerID) {
	w, k := p.of(id)
	w.workers = slices.DeleteFunc(w.workers, func(other *worker) bool { return other == k })
	p.tell(now, w)
}

// tried tells whether workers can be started here: why not, or "". It returns
// whether that is new.
func (p *participant) tried(now time.Time, id workerID, trouble string) (changed bool) {
	was := p.claims.starts.broken != ""
	switch {
	case p.away > 0:
	case trouble != "":
		p.claims.missed(now, trouble)
	case id.Job == "":
		p.claims.worked()
	default:
		p.claims.began()
	}
	if id.Job != "" {
		w, k := p.of(id)
		p.judged(now, w, k, trouble)
	} else {
		p.claims.starts.trying, p.claims.loose, p.news = false, true, true
	}
	return was != (p.claims.starts.broken != "")
}

// grown tells that workers of a job have written something.
func (p *participant) grown(now time.Time, job ID) {
	if w := p.works[job]; w != nil {
		p.tell(now, w)
	}
}

// unreadable tells that the origin misses output which it had confirmed.
func (p *participant) unreadable(now time.Time, id workerID) {
	if w := p.works[id.Job]; w != nil {
		if k := w.find(id.RankAttempt); k != nil {
			k.state, k.reason = WorkerLost, "its origin misses output that it had confirmed: the disk there lost it"
			p.tell(now, w)
		}
	}
}

// tabled tells that a worker knows its job's table as of an epoch, or that it could
// not be told.
func (p *participant) tabled(id workerID, epoch int64, ok bool) {
	w := p.works[id.Job]
	if w == nil {
		return
	}
	if k := w.find(id.RankAttempt); k != nil {
		if k.telling = false; ok {
			k.epoch = epoch
		}
	}
}
