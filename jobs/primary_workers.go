package jobs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// owned tells which of a participant's workers still count.
func (p *primary) owned(from vicinity.ID, ra RankAttempt) bool {
	if p.rec.state.Final() || !p.rec.owns(ra) {
		return false
	}
	k := &p.rec.ranks[ra.Rank]
	return k.node == from && k.state != WorkerWanted && k.state != WorkerLost
}

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
			p.stages(w)
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

// stages takes note of how much of the inputs a node has.
func (p *primary) stages(w WorkerReport) {
	before, now := p.moved[w.RankAttempt], Staged{Fetched: min(w.Fetched, p.staged.Total), Cached: min(w.Cached, p.staged.Total)}
	if now.Fetched+now.Cached <= before.Fetched+before.Cached {
		return // nothing new, or an older report
	}
	p.moved[w.RankAttempt] = now
	p.staged.Fetched += now.Fetched - before.Fetched
	p.staged.Cached += now.Cached - before.Cached
	p.version++
}

// heard notes a sign of life of a participant.
func (p *primary) heard(now time.Time, from vicinity.ID) {
	if part := p.parts[from]; part != nil {
		part.spare = false
		if part.heard = now; !part.back.IsZero() {
			part.back = time.Time{}
			p.version++
		}
	}
}

// acknowledge tells a participant what is safe at the origin and what is not
// wanted any more.
func (p *primary) acknowledge(from vicinity.ID, rep Report, missed []RankAttempt) Ack {
	ack := Ack{Known: true, State: p.rec.state, Reason: p.reason()}
	stop := p.failing()
	for _, w := range rep.Workers {
		a := WorkerAck{RankAttempt: w.RankAttempt}
		if p.rec.owns(w.RankAttempt) && p.rec.ranks[w.Rank].node == from {
			got := p.received[w.RankAttempt]
			a.Stdout, a.Stderr = got.stdout, got.stderr
			k := &p.rec.ranks[w.Rank]
			a.Done = k.state == WorkerEnded && k.collected
			a.Tasks = p.tasksAck(w)
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
		p.avoid[from] = now.Add(avoidFor)
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
		p.avoid[p.rec.ranks[ra.Rank].node] = now.Add(avoidFor)
		p.lost(now, []RankAttempt{ra}, fmt.Sprintf("%s: %v", p.rec.spec.who(ra.Rank), err))
	}
	p.tick(now)
}

// memberGone is called when the overlay has declared a node dead.
func (p *primary) memberGone(now time.Time, id vicinity.ID) {
	if part := p.parts[id]; part != nil && !part.spare && !now.Before(part.back) {
		part.heard = earlier(part.heard, now.Add(goneGrace-partLease))
		if p.rec.spec.Rigid() && p.rec.started.IsZero() {
			part.heard = now.Add(-partLease)
		}
	}
	delete(p.offers, id)
	p.tick(now)
}

// checkParts gives up participants that have been silent for too long.
func (p *primary) checkParts(now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(p.parts)) {
		part := p.parts[id]
		if part == nil || now.Before(part.lease()) || p.rec.state.Final() {
			continue
		}
		delete(p.parts, id)
		var unstarted, running []RankAttempt
		name := ""
		for i := range p.rec.ranks {
			k := &p.rec.ranks[i]
			if k.node != id {
				continue
			}
			name = k.name
			switch k.state {
			case WorkerPreparing, WorkerReady:
				unstarted = append(unstarted, RankAttempt{i, k.attempt})
			case WorkerRunning:
				running = append(running, RankAttempt{i, k.attempt})
			case WorkerEnded:
				if !k.collected {
					running = append(running, RankAttempt{i, k.attempt})
				}
			}
		}
		p.unprepared(now, id, unstarted, "lost")
		if len(running) > 0 {
			p.lost(now, running, fmt.Sprintf("node %s was lost with %s", label(name, id), p.rec.spec.list(running)))
		}
	}
}

// lost handles started ranks whose node is gone: a rigid job cannot go on, a
// malleable one gets them replaced near by.
func (p *primary) lost(now time.Time, ranks []RankAttempt, why string) {
	p.emit(event{Kind: evLost, At: now, Ranks: ranks, Reason: why})
	if p.closing() {
		if p.rec.replicated() { // perhaps only since this copy was lost
			p.stopOthers()
		}
		p.advance(now)
		return
	}
	if p.rec.replicated() && p.survives(now, ranks) || p.retryGang(now, why) {
		return
	}
	if p.rec.spec.Rigid() {
		p.end(now, NodeFail, why, CodeZorilla)
		return
	}
	p.search.Reset(now)
}

// advance starts what is ready and ends what has ended.
func (p *primary) advance(now time.Time) {
	if p.rec.state.Final() {
		return
	}
	ready := []RankAttempt{}
	active, failing := 0, p.closing()
	for i := range p.rec.ranks {
		if p.idle(i) {
			continue
		}
		switch k := &p.rec.ranks[i]; k.state {
		case WorkerReady:
			ready = append(ready, RankAttempt{i, k.attempt})
			active++
		case WorkerRunning:
			active++
		case WorkerPreparing, WorkerLost:
			if !failing {
				active++
			}
		case WorkerEnded:
			if !k.collected {
				active++
			}
		}
	}
	if failing {
		if active -= len(ready); active == 0 {
			p.finish(now)
		}
		return
	}
	if len(ready) > 0 && (!p.rec.started.IsZero() || len(ready) >= p.rec.spec.least()) {
		p.start(now, ready)
		return
	}
	if !p.rec.started.IsZero() && active == 0 && p.missing() == 0 {
		p.finish(now)
	}
}

// missing returns how many ranks must still run before the job can end.
func (p *primary) missing() int {
	if p.rec.replicated() {
		return 0
	}
	n := p.count(WorkerLost)
	for i := range p.rec.ranks {
		if k := &p.rec.ranks[i]; k.state == WorkerWanted && k.attempt > 0 {
			n++
		}
	}
	return n
}

// start sends START to the ready ranks. It is journalled before it is sent,
// and a ready worker that missed it asks again with its next report.
func (p *primary) start(now time.Time, ready []RankAttempt) {
	p.emit(p.startEvent(now, ready))
	byNode := map[vicinity.ID][]RankAttempt{}
	for _, ra := range ready {
		id := p.rec.ranks[ra.Rank].node
		byNode[id] = append(byNode[id], ra)
	}
	message := p.startMessage(nil)
	for _, id := range slices.Sorted(maps.Keys(byNode)) {
		message.Ranks = byNode[id]
		p.do(doStart{to: id, start: message})
	}
}

// finish decides how the job ended from how its ranks ended.
func (p *primary) finish(now time.Time) {
	if p.rec.tasks != nil {
		p.finishArray(now)
		return
	}
	state, code, reason := Completed, 0, ""
	for i := range p.rec.ranks {
		k := &p.rec.ranks[i]
		if !badExit(k.exit) || p.forgiven(i) {
			continue
		}
		if state == Completed {
			state = Failed
		}
		if k.exit.Cause == process.Walltime {
			state = Timeout
		}
		if k.exit.Code > code {
			code, reason = k.exit.Code, p.exitReason(i, k)
		}
	}
	if state == Failed && p.retryGang(now, reason) {
		return
	}
	if stopped := p.count(WorkerLost, WorkerPreparing, WorkerReady) + p.stopped(); stopped > 0 && state != Completed {
		others := "1 other was"
		if stopped > 1 {
			others = fmt.Sprintf("%d others were", stopped)
		}
		reason += "; " + others + " stopped"
	}
	if state == Timeout {
		code, reason = CodeTimeout, fmt.Sprintf("needed more than %v (-t)", p.rec.spec.Walltime)
	}
	p.end(now, state, reason, code)
}
