package jobs

import (
	"slices"
	"time"
)

// tick reports what is due.
func (p *participant) tick(now time.Time) {
	for w, ok := p.agenda.due(now); ok; w, ok = p.agenda.due(now) {
		if len(w.workers) == 0 {
			p.forget(w)
			continue
		}
		w.kick, w.asking = false, true
		rep, readings := w.report()
		rep.Addrs, rep.Away = p.addrs, p.away
		p.do(doReport{w.origin, rep, readings})
		p.schedule(now, w)
	}
}

// forget ends the record of a job that has no worker here any more, once nothing is
// being done for it.
func (p *participant) forget(w *work) {
	if w.inputs == inputsComing {
		if !w.ending {
			w.ending = true
			p.do(doCancelWork{w.job})
		}
		p.agenda.set(w, time.Time{}) // until fetched
		return
	}
	delete(p.works, w.job)
	p.agenda.remove(w)
	p.do(doForgetWork{w.job})
	p.news = true
}

// unheard handles an origin that does not answer: what has not started is given
// back when the lease has run out, which the origin is told when it answers again;
// what runs goes on up to the orphan limit.
func (p *participant) unheard(now time.Time, job ID) {
	w := p.works[job]
	w.asking, w.pause = false, min(max(2*w.pause, 100*time.Millisecond), reportEvery)
	w.next = now.Add(w.pause)
	silent := now.Sub(w.heard)
	for _, k := range slices.Clone(w.workers) {
		switch {
		case silent > p.orphan:
			p.want(now, w, wantDrop, []RankAttempt{k.RankAttempt})
		case silent > partLease && k.start == nil && k.state != WorkerLost:
			p.evict(now, w, k, reasonSilent)
		}
	}
	p.schedule(now, w)
}

const reasonSilent = "its origin was silent"

// acknowledged does what the origin's answer to a report says; more tells that the
// report could not hold all that is to be told.
func (p *participant) acknowledged(now time.Time, rep *Report, more bool, ack Ack) {
	w := p.works[rep.Job]
	w.asking, w.pause, w.next = false, 0, now.Add(reportEvery)
	w.kick = w.kick || more && !ack.stuck(*rep)
	p.news = true
	if ack.Known {
		w.heard, w.state, w.reason = now, ack.State, ack.Reason
		p.obey(now, w, rep, &ack)
	} else {
		p.want(now, w, wantDrop, nil)
	}
	if rep.Away > 0 { // which workers the origin knows to go on without this node
		for _, r := range rep.Workers {
			if k := w.find(r.RankAttempt); k != nil && k.away && k.state == r.State {
				k.parted = true
			}
		}
	}
	p.schedule(now, w)
}

// obey does what the origin's answer says of workers.
func (p *participant) obey(now time.Time, w *work, rep *Report, ack *Ack) {
	var drop, stop, done []RankAttempt
	for _, a := range ack.Workers {
		i := slices.IndexFunc(rep.Workers, func(r WorkerReport) bool { return r.RankAttempt == a.RankAttempt })
		if k := w.find(a.RankAttempt); k != nil && i >= 0 {
			p.noteAck(w, k, &rep.Workers[i], &a)
		}
		switch {
		case a.Done:
			done = append(done, a.RankAttempt)
		case a.Drop:
			drop = append(drop, a.RankAttempt)
		case a.Stop:
			stop = append(stop, a.RankAttempt)
		}
	}
	for _, o := range []struct {
		what  wish
		ranks []RankAttempt
	}{{wantDone, done}, {wantDrop, drop}, {wantStop, stop}} {
		if len(o.ranks) > 0 {
			p.want(now, w, o.what, o.ranks)
		}
	}
	if ack.Start != nil && ack.Start.check() == nil && ack.Start.Job == w.job {
		p.started(now, ack.Start)
	}
	if ack.Table != nil && ack.Table.check() == nil {
		p.table(w, ack.Table)
	}
}

// noteAck notes what the origin has of a worker. It may have lost what it once
// acknowledged.
func (p *participant) noteAck(w *work, k *worker, r *WorkerReport, a *WorkerAck) {
	k.acked = received{max(a.Stdout+a.AheadOut, 0), max(a.Stderr+a.AheadErr, 0)}
	k.adopted = false
	e := doAck{worker: workerID{w.job, k.RankAttempt}, safe: received{a.Stdout, a.Stderr}}
	if t := a.Tasks; t != nil && r.Tasks != nil && checkTaskRanges(t.Ranges) == nil && t.Results >= 0 && t.Before >= 0 {
		k.results, e.tasks = min(t.Results, r.Tasks.Ended), t
	}
	p.do(e)
}

// table gives workers that know an older one the job's table.
func (p *participant) table(w *work, t *Table) {
	for _, k := range w.workers {
		if k.listens() && !k.telling && k.epoch < t.Epoch {
			k.telling = true
			p.do(doTable{workerID{w.job, k.RankAttempt}, *t, signalNumber(w.spec.SignalOnChange)})
		}
	}
}
