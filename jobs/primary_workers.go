package jobs

import (
	"errors"
	"fmt"
	"time"

	"zorilla/vicinity"
)

// reported takes a participant's report, whose output is already stored as
// far as have says, and answers it once what follows from it is on disk.
func (p *primary) reported(now time.Time, from vicinity.ID, rep Report, have map[RankAttempt]received, number uint64) {
	p.heard(now, from)
	p.leaves(now, from, rep.Away)
	var missed []RankAttempt
	for _, w := range rep.Workers {
		if !p.owned(from, w.RankAttempt) {
			continue
		}
		if got, ok := have[w.RankAttempt]; ok && got != p.received[w.RankAttempt] {
			p.received[w.RankAttempt] = got
			p.version++
		}
		p.tasksReported(now, w)
		k := &p.rec.ranks[w.Rank]
		if k.state == WorkerPreparing {
			p.version += p.staging.note(w)
		}
		switch w.State {
		case WorkerReady:
			if k.state == WorkerPreparing {
				k.state = WorkerReady
				p.version++
			} else if k.state == WorkerRunning {
				missed = append(missed, w.RankAttempt)
			}
		case WorkerLost:
			p.couldNot(now, from, w)
		case WorkerEnded:
			p.workerEnded(now, from, w)
		}
	}
	p.leaseTasks(now, from, rep)
	p.forgotten(now, from, rep)
	p.advance(now)
	p.pursue(now)
	ack := p.acknowledge(from, rep, missed)
	ack.Table = p.tableFor(now, from, &rep)
	p.do(doAnswer{to: from, number: number, ack: ack})
}

// heard notes a sign of life of a participant.
func (p *primary) heard(now time.Time, from vicinity.ID) {
	if p.parts.heard(now, from) {
		p.version++
	}
}

// waitedFor renews the lease of a participant that waits for this node.
func (p *primary) waitedFor(now time.Time, id vicinity.ID) {
	if k := p.parts[id]; k != nil {
		k.lastContact = now
	}
}

// overslept is called when this node did not run for a while: paused, on a
// machine that had no time for it, or long in starting. Its participants were not
// silent then, they were not heard.
func (p *primary) overslept(now time.Time) { p.parts.unheard(now) }

// acknowledge tells a participant what is safe at the origin and what is not
// wanted any more.
func (p *primary) acknowledge(from vicinity.ID, rep Report, missed []RankAttempt) Ack {
	ack := Ack{Known: true, State: p.rec.state, Reason: p.reason()}
	stop := p.rec.failing()
	for _, w := range rep.Workers {
		a := WorkerAck{RankAttempt: w.RankAttempt}
		if p.rec.owns(w.RankAttempt) && p.rec.ranks[w.Rank].node == from {
			got := p.received[w.RankAttempt]
			a.Stdout, a.Stderr = got.stdout, got.stderr
			k := &p.rec.ranks[w.Rank]
			a.Done = k.state == WorkerEnded && k.collected
			if p.rec.tasks != nil {
				a.Tasks = p.rec.tasks.ack(w, stop)
			}
		}
		a.Drop = !a.Done && !p.owned(from, w.RankAttempt)
		a.Stop = (stop || p.rec.spare(w.Rank)) && !a.Drop && w.State == WorkerRunning
		ack.Workers = append(ack.Workers, a)
	}
	if len(missed) > 0 {
		start := p.startMessage(missed)
		ack.Start = &start
	}
	return ack
}

// couldNot handles a worker that its node cannot run, or gives up.
func (p *primary) couldNot(now time.Time, from vicinity.ID, w WorkerReport) {
	k := &p.rec.ranks[w.Rank]
	if k.state == WorkerEnded && k.collected {
		return // its node died while it removed what it does not need any more
	}
	if k.state == WorkerRunning && w.Declined {
		p.declined(now, from, w)
		return
	}
	if k.state == WorkerRunning || k.state == WorkerEnded {
		p.search.shun(now, from)
		p.lost(now, []RankAttempt{w.RankAttempt}, fmt.Sprintf("%s: %s: %s", p.rec.spec.who(w.Rank), label(k.name, from), w.Reason))
		return
	}
	p.unprepared(now, from, []RankAttempt{w.RankAttempt}, w.Reason)
}

// workerEnded records an exit once all of the worker's output is here, and
// fetches its files.
func (p *primary) workerEnded(now time.Time, from vicinity.ID, w WorkerReport) {
	k := &p.rec.ranks[w.Rank]
	if w.Exit == nil || k.state == WorkerPreparing || k.state == WorkerReady {
		return
	}
	if got := p.received[w.RankAttempt]; got != (received{w.Stdout, w.Stderr}) {
		return // the rest of its output comes with the next reports
	}
	if k.state == WorkerRunning {
		if p.tasksUnfinished(now, from, w) {
			return
		}
		p.emit(p.exited(now, w))
		p.stopSpare(w.Rank)
		if badExit(w.Exit) && p.rec.tasks == nil {
			p.failed(now, from, w)
		}
		if !p.rec.owns(w.RankAttempt) || k.state != WorkerEnded {
			return // tried again
		}
	}
	if !k.collected && !p.collecting[w.RankAttempt] && !p.fetching(w.Rank) {
		p.collecting[w.RankAttempt] = true
		p.do(doCollect{from: from, output: *k.output})
	}
}

// collected tells how fetching a rank's outputs went. After a failure the
// participant's next report makes the primary try again.
func (p *primary) collected(now time.Time, ra RankAttempt, err error) {
	delete(p.collecting, ra)
	if p.rec.state.Final() || !p.rec.owns(ra) || p.rec.ranks[ra.Rank].state != WorkerEnded {
		return // it is tried again
	}
	switch {
	case err == nil:
		p.emit(event{Kind: evCollected, At: now, Ranks: []RankAttempt{ra}})
		p.stopSpare(ra.Rank)
	case errors.Is(err, errNotAsked):
		p.search.shun(now, p.rec.ranks[ra.Rank].node)
		p.lost(now, []RankAttempt{ra}, fmt.Sprintf("%s: %v", p.rec.spec.who(ra.Rank), err))
	}
	p.tick(now)
}

// fetching reports whether the files of another copy of a worker's rank are
// being fetched, or it counts already.
func (p *primary) fetching(worker int) (yes bool) {
	if !p.rec.replicated() {
		return false
	}
	rank, _ := p.rec.spec.RankOf(worker)
	p.rec.copiesOf(rank, func(w int, k *rankRecord) {
		yes = yes || w != worker && k.state == WorkerEnded && p.collecting[RankAttempt{w, k.attempt}]
	})
	return yes || p.rec.spare(worker)
}
