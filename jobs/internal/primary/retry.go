package primary

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// What happens when a rank fails: its program ends with another code than 0, or
// its node is lost. Programs and machines are told apart, because a machine's
// failure is nobody's fault: a malleable job replaces its rank without counting.
// Copies of ranks (--replicas) make a job survive what leaves one copy of each
// rank: a copy that fails or is lost matters only when no other can end with 0
// any more. What is lost after the start is not replaced.

// failed handles a rank whose program has just failed. A malleable job tries
// the rank again, if it may; a gang is tried again as a whole, once the others
// have ended.
func (p *lifecycle) failed(now time.Time, from vicinity.ID, w wire.WorkerReport) {
	k := &p.Rec.Ranks[w.Rank]
	restarts := p.Rec.Spec.Restarts(w.Rank)
	if restarts != groups.RestartJob && k.Retries < p.Rec.Spec.Retries && !record.Overflowed(&p.Rec) && p.Rec.Cancelled == "" {
		p.Search.Demote(now, from)
		ranks, why := []jobs.RankAttempt{w.RankAttempt}, p.Rec.ExitReason(w.Rank, k)
		if restarts == groups.RestartGroup {
			p.regroup(now, record.Retried, ranks, why)
			return
		}
		p.retry(now, ranks, why)
		return
	}
	if p.Rec.Failing() {
		p.stopOthers()
	}
}

// stopOthers has all that runs for the job stopped, and lets go of what does not
// run yet. Acknowledgements say the same, in case the message is lost.
func (p *lifecycle) stopOthers() {
	running, idle := map[vicinity.ID][]jobs.RankAttempt{}, map[vicinity.ID][]jobs.RankAttempt{}
	for i := range p.Rec.Ranks {
		k := &p.Rec.Ranks[i]
		switch k.State {
		case jobs.WorkerRunning:
			running[k.Node] = append(running[k.Node], jobs.RankAttempt{Rank: i, Attempt: k.Attempt})
		case jobs.WorkerPreparing, jobs.WorkerReady:
			idle[k.Node] = append(idle[k.Node], jobs.RankAttempt{Rank: i, Attempt: k.Attempt})
		}
	}
	p.release(running, wire.Release{Stop: true, Notice: p.Rec.Cancelled != ""}) // a job that fails makes nothing that is wanted
	p.release(idle, wire.Release{})
	p.giveOffersBack()
}

// stopSurplus stops what is not needed any more since a worker counts.
func (p *lifecycle) stopSurplus(winner int) {
	rank, _ := p.Rec.Spec.RankOf(winner)
	if !p.Rec.Replicated() || p.Rec.Won.Worker[rank] != winner {
		return
	}
	stop := map[vicinity.ID][]jobs.RankAttempt{}
	p.Rec.CopiesOf(rank, func(w int, k *record.Rank) {
		if p.Rec.Surplus(w) && k.State == jobs.WorkerRunning {
			stop[k.Node] = append(stop[k.Node], jobs.RankAttempt{Rank: w, Attempt: k.Attempt})
		}
	})
	p.release(stop, wire.Release{Stop: true})
}

// retry gives ranks another attempt.
func (p *lifecycle) retry(now time.Time, ranks []jobs.RankAttempt, why string) {
	p.emit(record.Event{Kind: record.Retried, At: now, Ranks: ranks, Reason: why})
	p.Search.Again(now)
}

// regroup starts the groups of some ranks again, which are lost or have ended.
func (p *lifecycle) regroup(now time.Time, kind record.Kind, ranks []jobs.RankAttempt, why string) {
	all := p.Rec.OfGroups(ranks)
	stop := map[vicinity.ID][]jobs.RankAttempt{}
	for _, ra := range all {
		if k := &p.Rec.Ranks[ra.Rank]; k.State != jobs.WorkerWanted && k.State != jobs.WorkerLost {
			stop[k.Node] = append(stop[k.Node], ra)
		}
	}
	var names []string
	for _, ra := range ranks {
		g, _ := p.Rec.Spec.GroupOf(ra.Rank)
		names = append(names, p.Rec.Spec.Groups[g].Name)
	}
	slices.Sort(names)
	p.keepers.outdate(&p.ledger, now, all, false)
	p.emit(record.Event{Kind: kind, At: now, Ranks: all, Reason: fmt.Sprintf("%s: all of group %s", why, strings.Join(slices.Compact(names), ", "))})
	p.release(stop, wire.Release{})
	p.Search.Again(now)
}

// failedWhole reports whether all of a job is to be tried again by how its ranks ended.
func (p *lifecycle) failedWhole() bool {
	for rank := range p.Rec.Ranks {
		if k := &p.Rec.Ranks[rank]; k.State == jobs.WorkerEnded && record.BadExit(k.Exit) && p.Rec.Spec.Restarts(rank) == groups.RestartJob {
			return true
		}
	}
	return p.Rec.Spec.Rigid()
}

// retryGang starts a gang again as a whole, and reports whether it may.
func (p *lifecycle) retryGang(now time.Time, why string) bool {
	if p.Rec.Retries >= p.Rec.Spec.Retries || record.Overflowed(&p.Rec) {
		return false
	}
	p.startOver(now, record.Retried, why)
	return true
}

// startOver gives all ranks another attempt.
func (p *lifecycle) startOver(now time.Time, kind record.Kind, why string) {
	var all []jobs.RankAttempt
	for i := range p.Rec.Ranks {
		all = append(all, jobs.RankAttempt{Rank: i, Attempt: p.Rec.Ranks[i].Attempt})
	}
	p.keepers.outdate(&p.ledger, now, all, true)
	p.emit(record.Event{Kind: kind, At: now, Ranks: all, Reason: why})
	p.Search.Again(now)
	p.letGo(all)
}

// declined has a rank placed elsewhere whose node could not begin it. That is no
// failure of the program, nor is anything lost; but a gang starts together, and
// does so again.
func (p *lifecycle) declined(now time.Time, from vicinity.ID, w wire.WorkerReport) {
	why := fmt.Sprintf("%s: %s %s", p.Rec.Spec.Who(w.Rank), jobs.Label(p.Rec.Ranks[w.Rank].Name, from), w.Reason)
	p.Search.Avoid(now, from)
	p.Search.Lost(now, from, w.Reason)
	ranks := []jobs.RankAttempt{w.RankAttempt}
	if p.Rec.Ranks[w.Rank].GivenBack {
		p.emit(record.Event{Kind: record.Released, At: now, Ranks: ranks, Reason: p.Rec.Ranks[w.Rank].Retried})
		return
	}
	if p.Rec.Closing() { // nobody is looked for any more
		p.lost(now, ranks, why)
		return
	}
	if p.Rec.Replicated() {
		p.emit(record.Event{Kind: record.Lost, At: now, Ranks: ranks, Reason: why})
		if p.survives(now, ranks) { // by the other copies
			return
		}
	}
	p.beginAnew(now, ranks, why)
}

// beginAnew gives ranks that did not begin, and those that start with them, another attempt.
func (p *lifecycle) beginAnew(now time.Time, ranks []jobs.RankAttempt, why string) {
	switch p.Rec.Spec.RestartsOf(ranks) {
	case groups.RestartJob:
		p.startOver(now, record.Declined, why)
	case groups.RestartGroup:
		p.regroup(now, record.Declined, ranks, why)
	default:
		p.emit(record.Event{Kind: record.Declined, At: now, Ranks: ranks, Reason: why})
		p.Search.Again(now)
	}
}
