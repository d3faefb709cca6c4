package participant

import (
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
)

// Tick reports what is due.
func (p *Participant) Tick(now time.Time) {
	p.keepHours(now)
	for w, ok := p.Timers.Due(now); ok; w, ok = p.Timers.Due(now) {
		if w.empty() {
			w.forget()
			continue
		}
		w.kick, w.asking = false, true
		rep, readings := w.report()
		rep.Addrs, rep.Away = p.Addrs, p.Leaving
		p.Do(DoReport{w.Origin, rep, readings})
		w.schedule(now)
	}
}

// end has all that is being done for a job's workers here come to an end.
func (w *Work) end() {
	w.ending = true
	w.part.Claims.Ending[w.Job] = true
	w.part.Do(DoCancelWork{w.Job})
}

// forget ends the record of a job that has no worker here any more, once nothing is
// being done for it.
func (w *Work) forget() {
	p := w.part
	if w.inputs == inputsComing {
		if !w.ending {
			w.end()
		}
		p.Timers.Set(w, time.Time{}) // until fetched
		return
	}
	delete(p.Works, w.Job)
	if w.ending {
		delete(p.Claims.Ending, w.Job)
		p.Claims.Loose = true
	}
	p.Timers.Remove(w)
	p.Do(DoForgetWork{w.Job})
	p.News = true
}

// Unheard handles an origin that does not answer: what has not started is given
// back when the lease has run out, which the origin is told when it answers again;
// what runs goes on up to the orphan limit.
func (p *Participant) Unheard(now time.Time, job jobs.ID) {
	w := p.Works[job]
	w.asking, w.pause = false, min(max(2*w.pause, 100*time.Millisecond), wire.ReportEvery)
	for _, k := range w.Workers {
		k.overtaken = false
	}
	w.next = now.Add(w.pause)
	silent := now.Sub(w.Heard)
	if silent > wire.PartLease {
		w.giveSparesBack(now)
		w.spared = false // nobody is there to hear of that
	}
	for _, k := range slices.Clone(w.Workers) {
		switch {
		case silent > p.Orphan:
			w.Want(now, WantDrop, []jobs.RankAttempt{k.RankAttempt})
		case silent > wire.PartLease && k.start == nil && k.State != jobs.WorkerLost:
			k.evict(now, WantEvict, reasonSilent)
		}
	}
	w.schedule(now)
}

const reasonSilent = "its origin was silent"

// Acknowledged does what the origin's answer to a report says; more tells that the
// report could not hold all that is to be told.
func (p *Participant) Acknowledged(now time.Time, rep *wire.Report, more bool, ack wire.Ack) {
	w := p.Works[rep.Job]
	w.asking, w.pause, w.next = false, 0, now.Add(wire.ReportEvery)
	w.kick = w.kick || more && !ack.Stuck(*rep)
	p.News = true
	if w.spared = w.spared && rep.Spares != nil; ack.NoSpares && w.hasSpares(rep.Spares) {
		w.giveSparesBack(now)
	}
	if ack.Known {
		w.Heard, w.state, w.reason = now, ack.State, ack.Reason
		w.obey(now, rep, &ack)
	} else {
		w.Want(now, WantDrop, nil)
	}
	if rep.Away > 0 { // which workers the origin knows to go on without this node
		for _, r := range rep.Workers {
			if k := w.find(r.RankAttempt); k != nil && k.Detached && k.State == r.State {
				k.Parted = true
			}
		}
	}
	w.schedule(now)
}

// obey does what the origin's answer says of workers.
func (w *Work) obey(now time.Time, rep *wire.Report, ack *wire.Ack) {
	p := w.part
	var drop, stop, end, done []jobs.RankAttempt
	for _, a := range ack.Workers {
		i := slices.IndexFunc(rep.Workers, func(r wire.WorkerReport) bool { return r.RankAttempt == a.RankAttempt })
		if k := w.find(a.RankAttempt); k != nil && i >= 0 {
			p.noteAck(w, k, &rep.Workers[i], &a)
		}
		switch {
		case a.Done:
			done = append(done, a.RankAttempt)
		case a.Drop:
			drop = append(drop, a.RankAttempt)
		case a.Stop && a.Notice:
			stop = append(stop, a.RankAttempt)
		case a.Stop:
			end = append(end, a.RankAttempt)
		}
	}
	for _, o := range []struct {
		what  Wish
		ranks []jobs.RankAttempt
	}{{WantDone, done}, {WantDrop, drop}, {WantStop, stop}, {WantStop | WantNow, end}} {
		if len(o.ranks) > 0 {
			w.Want(now, o.what, o.ranks)
		}
	}
	if ack.Start != nil && ack.Start.Check() == nil && ack.Start.Job == w.Job {
		p.Started(now, ack.Start)
	}
	if ack.Table != nil && ack.Table.Check() == nil {
		w.table(ack.Table)
	}
}

// noteAck notes what the origin has of a worker. It may have lost what it once
// acknowledged.
func (p *Participant) noteAck(w *Work, k *Worker, r *wire.WorkerReport, a *wire.WorkerAck) {
	if before := k.acked; !k.overtaken {
		k.acked = wire.Written{Stdout: max(a.Stdout+a.AheadOut, 0), Stderr: max(a.Stderr+a.AheadErr, 0)}
		k.trust(before)
	}
	k.adopted, k.overtaken = false, false
	e := DoAck{Worker: k.id(), Safe: wire.Written{Stdout: a.Stdout, Stderr: a.Stderr}}
	if t := a.Tasks; t != nil && r.Tasks != nil && wire.CheckTaskRanges(t.Ranges) == nil && t.Results >= 0 && t.Before >= 0 {
		k.results, e.Tasks = min(t.Results, r.Tasks.Ended), t
	}
	if c := a.Checkpoint; c != nil && c.Known >= 0 && c.Oldest >= 0 {
		k.known, e.Checkpoint = max(k.known, c.Known), c
	}
	p.Do(e)
}

// trust ends the doubts about an origin that has more than before.
func (h *heldByOrigin) trust(before wire.Written) {
	if h.acked.Stdout > before.Stdout || h.acked.Stderr > before.Stderr {
		h.doubts = 0
	}
}

// Held takes what the origin has of workers whose output is streamed to it, which it tells
// beside its answers to reports: one that is on its way knows less, and nothing that was
// freed since may be read again. Whole tells that it has all that one which has ended wrote.
func (p *Participant) Held(now time.Time, job jobs.ID, list []wire.Held, whole bool) {
	w := p.Works[job]
	if w == nil {
		return
	}
	for _, h := range list {
		if k := w.find(h.RankAttempt); k != nil {
			before := k.acked
			k.acked, k.adopted, k.overtaken = h.Have, false, w.asking
			k.trust(before)
			p.Do(DoAck{Worker: k.id(), Safe: h.Safe})
		}
	}
	if whole {
		w.tell(now)
	}
}

// Acked returns what the origin has of a worker, if that is known.
func (w *Work) Acked(ra jobs.RankAttempt) (so wire.Written, known bool) {
	if k := w.find(ra); k != nil && !k.adopted {
		return k.acked, true
	}
	return so, false
}

// table gives workers that know an older one the job's table.
func (w *Work) table(t *wire.Table) {
	for _, k := range w.Workers {
		if k.listens() && !k.telling && k.epoch < t.Epoch {
			k.telling = true
			w.part.Do(DoTable{k.id(), *t, jobs.SignalNumber(w.Spec.SignalOnChange)})
		}
	}
}
