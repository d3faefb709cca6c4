package primary

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// Reported takes a participant's report, whose output is already stored as
// far as have says, and answers it once what follows from it is on disk.
func (p *Primary) Reported(now time.Time, from vicinity.ID, rep wire.Report, have map[jobs.RankAttempt]wire.Written, number uint64) {
	p.Heard(now, from)
	p.leaves(now, from, rep.Away)
	p.Parts.laidOut(now, from, &rep)
	var missed []jobs.RankAttempt
	for _, w := range rep.Workers {
		if !p.Rec.Owned(from, w.RankAttempt) {
			continue
		}
		if got, ok := have[w.RankAttempt]; ok && got != p.Received[w.RankAttempt] {
			p.Received[w.RankAttempt] = got
			p.Version++
		}
		p.tasksReported(now, w)
		k := &p.Rec.Ranks[w.Rank]
		if k.State == jobs.WorkerPreparing {
			if news := p.staging.note(now, w); news > 0 {
				p.Version += news
				p.Parts.progressed(now, from)
			}
		}
		p.holds(w)
		p.keepers.reported(&p.ledger, now, w)
		p.ran(now, &p.Rec, &w)
		switch w.State {
		case jobs.WorkerReady:
			if k.State == jobs.WorkerPreparing || k.State == jobs.WorkerReady {
				k.Port = w.Port
			}
			if k.State == jobs.WorkerPreparing {
				k.State = jobs.WorkerReady
				p.Parts.progressed(now, from)
				p.Version++
			} else if k.State == jobs.WorkerRunning {
				missed = append(missed, w.RankAttempt)
			}
		case jobs.WorkerLost:
			p.couldNot(now, from, w)
		case jobs.WorkerEnded:
			p.workerEnded(now, from, w)
		}
	}
	p.leaseTasks(now, from, rep)
	p.forgotten(now, from, rep)
	unwanted := p.spares.reported(now, from, rep.Spares, p.Member)
	p.advance(now)
	p.pursue(now)
	ack := p.acknowledge(from, rep, missed)
	if start, found := p.Out.unsent(from); found {
		start.Ranks = slices.Concat(start.Ranks, missed)
		ack.Start = &start
	}
	ack.NoSpares = unwanted
	ack.Table = p.table.next(now, &p.Rec, from, &rep)
	p.Do(DoAnswer{To: from, Number: number, Ack: ack})
}

// holds notes what a worker waits for at its node.
func (p *lifecycle) holds(w wire.WorkerReport) {
	why := ""
	if w.State == jobs.WorkerRunning {
		why = w.Reason
	}
	if p.held[w.RankAttempt] == why {
		return
	}
	p.Version++
	if p.held[w.RankAttempt] = why; why == "" {
		delete(p.held, w.RankAttempt)
	}
}

// Heard notes a sign of life of a participant.
func (p *Primary) Heard(now time.Time, from vicinity.ID) {
	p.Signs.heard(now, from)
	if p.Parts.heard(now, from) {
		p.Version++
	}
}

// WaitedFor renews the lease of a participant that waits for this node.
func (p *Primary) WaitedFor(now time.Time, id vicinity.ID) {
	if k := p.Parts[id]; k != nil {
		k.lastContact = now
	}
}

// Stalled is called when this node did not run for a while: it was paused, on a
// machine that had no time for it, or long in starting. Its participants were not
// silent then, they were not heard.
func (p *Primary) Stalled(now time.Time) {
	p.Parts.unheard(now)
	p.stalledUntil = now
}

// acknowledge is the answer to a participant: what is safe at the origin and what is not
// wanted any more.
func (p *Primary) acknowledge(from vicinity.ID, rep wire.Report, missed []jobs.RankAttempt) wire.Ack {
	ack := wire.Ack{Known: true, State: p.Rec.State, Reason: p.reason()}
	stop := p.Rec.Failing()
	for _, w := range rep.Workers {
		a, ended := wire.WorkerAck{RankAttempt: w.RankAttempt}, false
		if p.Rec.Owns(w.RankAttempt) && p.Rec.Ranks[w.Rank].Node == from {
			got := p.Received[w.RankAttempt]
			a.Stdout, a.Stderr = got.Stdout, got.Stderr
			k := &p.Rec.Ranks[w.Rank]
			ended = k.State == jobs.WorkerEnded && k.Collected
			a.Done = ended && w.State != jobs.WorkerRunning // else it was ended here, see checkWalltime
			if p.Rec.Tasks != nil {
				a.Tasks = p.Rec.Tasks.Ack(w, stop)
			}
			a.Checkpoint = checkpointAck(k, w.Checkpoint)
		}
		a.Drop = !a.Done && (ended || !p.Rec.Owned(from, w.RankAttempt))
		if !a.Drop && w.State == jobs.WorkerRunning {
			_, goes := p.moves[w.RankAttempt]
			goes = goes || p.Rec.Ranks[w.Rank].GivenBack
			a.Stop = stop || goes || p.Rec.Surplus(w.Rank)
			a.Notice = a.Stop && (p.Rec.Cancelled != "" || goes && !stop)
		}
		ack.Workers = append(ack.Workers, a)
	}
	if len(missed) > 0 {
		start := p.startMessage(missed)
		ack.Start = &start
	}
	return ack
}

// couldNot handles a worker that its node cannot run, or gives up.
func (p *Primary) couldNot(now time.Time, from vicinity.ID, w wire.WorkerReport) {
	if p.moved(now, from, &w) {
		return
	}
	k := &p.Rec.Ranks[w.Rank]
	if k.State == jobs.WorkerEnded && k.Collected {
		return // its node died while it removed what it does not need any more
	}
	if w.Checkpoint != nil && w.Checkpoint.Missing > 0 && k.State == jobs.WorkerPreparing && !p.Rec.Closing() {
		// The node is as good as before: what the rank begins with is chosen anew.
		p.beginAnew(now, []jobs.RankAttempt{w.RankAttempt}, fmt.Sprintf("%s: %s", p.Rec.Spec.Who(w.Rank), w.Reason))
		return
	}
	if k.State == jobs.WorkerRunning && w.Declined {
		p.declined(now, from, w)
		return
	}
	if k.State == jobs.WorkerRunning || k.State == jobs.WorkerEnded {
		p.Search.Avoid(now, from)
		p.lost(now, []jobs.RankAttempt{w.RankAttempt}, fmt.Sprintf("%s: %s: %s", p.Rec.Spec.Who(w.Rank), jobs.Label(k.Name, from), w.Reason))
		return
	}
	p.unprepared(now, from, []jobs.RankAttempt{w.RankAttempt}, w.Reason)
}

// workerEnded records an exit once all of the worker's output is here, and
// fetches its files.
func (p *Primary) workerEnded(now time.Time, from vicinity.ID, w wire.WorkerReport) {
	k := &p.Rec.Ranks[w.Rank]
	if w.Exit == nil || k.State == jobs.WorkerPreparing || k.State == jobs.WorkerReady {
		return
	}
	if got := p.Received[w.RankAttempt]; got != (wire.Written{Stdout: w.Stdout, Stderr: w.Stderr}) {
		return // the rest of its output comes with the next reports
	}
	if k.State == jobs.WorkerRunning {
		if p.tasksUnfinished(now, from, w) || p.moved(now, from, &w) {
			return
		}
		p.emit(p.exited(now, w))
		p.stopSurplus(w.Rank)
		if record.BadExit(w.Exit) && p.Rec.Tasks == nil && !k.GivenBack {
			p.failed(now, from, w)
		}
		if !p.Rec.Owns(w.RankAttempt) || k.State != jobs.WorkerEnded {
			return // tried again
		}
	}
	if !k.Collected && !p.collecting.has(w.RankAttempt) && !p.collecting.needless(&p.Rec, w.Rank) {
		p.collecting.begin(now, w.RankAttempt, k.Output.Bytes)
		p.Do(DoCollect{From: from, Output: *k.Output})
	}
}

// Collected notes how fetching a rank's outputs went. After a failure the
// participant's next report makes the primary try again.
func (p *Primary) Collected(now time.Time, ra jobs.RankAttempt, err error) {
	p.collecting.end(now, ra, err == nil)
	if p.Rec.State.Final() || !p.Rec.Owns(ra) || p.Rec.Ranks[ra.Rank].State != jobs.WorkerEnded {
		return // it is tried again
	}
	switch {
	case err == nil:
		p.emit(record.Event{Kind: record.Collected, At: now, Ranks: []jobs.RankAttempt{ra}})
		p.stopSurplus(ra.Rank)
	case errors.Is(err, ErrNotAsked):
		p.Search.Avoid(now, p.Rec.Ranks[ra.Rank].Node)
		p.lost(now, []jobs.RankAttempt{ra}, fmt.Sprintf("%s: %v", p.Rec.Spec.Who(ra.Rank), err))
	case errors.Is(err, transfer.ErrNoHolder) && !now.Before(p.collecting.since[ra].Add(fetchFor)):
		k := &p.Rec.Ranks[ra.Rank]
		delete(p.collecting.since, ra)
		p.Search.Avoid(now, k.Node)
		p.lost(now, []jobs.RankAttempt{ra},
			fmt.Sprintf("%s: nothing came of its output files from node %s for %v: its disk or program may hang",
				p.Rec.Spec.Who(ra.Rank), jobs.Label(k.Name, k.Node), fetchFor))
	}
	p.Tick(now)
}

// ErrNotAsked: a node returned files that do not match the job's patterns.
var ErrNotAsked = errors.New("the node returned a file that was not asked for")

// Overflow ends a job of which more output came than a worker may write: its node should
// have ended it.
func (p *lifecycle) Overflow(now time.Time, ra jobs.RankAttempt) {
	if !p.Rec.Owns(ra) {
		return
	}
	k := &p.Rec.Ranks[ra.Rank]
	why := fmt.Sprintf("%s on %s: %s", p.Rec.Spec.Who(ra.Rank), jobs.Label(k.Name, k.Node), process.OverOutput(p.Rec.Spec.MaxOutput))
	p.End(now, jobs.Failed, why, jobs.CodeKilled)
}

// InputLost ends a job whose input is not to be had any more, unless something of
// it goes on without.
func (p *Primary) InputLost(now time.Time, why string) {
	goesOn := slices.ContainsFunc(p.Rec.Ranks, func(k record.Rank) bool {
		return k.State == jobs.WorkerReady || k.State == jobs.WorkerRunning || k.State == jobs.WorkerEnded && !k.Collected
	})
	if !p.Rec.State.Final() && (!goesOn || p.Rec.Started.IsZero()) {
		p.End(now, jobs.Failed, why+", and no node of the job has it", jobs.CodeZorilla)
	}
}

// Arriving takes how many bytes of a worker's output files are here.
func (p *Primary) Arriving(now time.Time, ra jobs.RankAttempt, bytes int64) {
	if p.collecting.arrived(now, ra, bytes) {
		p.Version++
	}
}
