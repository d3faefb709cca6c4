package jobs

import (
	"fmt"
	"time"

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
func (p *lifecycle) failed(now time.Time, from vicinity.ID, w WorkerReport) {
	k := &p.rec.ranks[w.Rank]
	if !p.rec.spec.Rigid() && k.retries < p.rec.spec.Retries {
		p.search.shun(now, from)
		p.retry(now, []RankAttempt{w.RankAttempt}, p.rec.exitReason(w.Rank, k))
		return
	}
	if p.rec.failing() {
		p.stopOthers()
	}
}

// stopOthers has all that runs for the job stopped, and lets go of what does not
// run yet. Acknowledgements say the same, in case the message is lost.
func (p *lifecycle) stopOthers() {
	running, idle := map[vicinity.ID][]RankAttempt{}, map[vicinity.ID][]RankAttempt{}
	for i := range p.rec.ranks {
		k := &p.rec.ranks[i]
		switch k.state {
		case WorkerRunning:
			running[k.node] = append(running[k.node], RankAttempt{i, k.attempt})
		case WorkerPreparing, WorkerReady:
			idle[k.node] = append(idle[k.node], RankAttempt{i, k.attempt})
		}
	}
	p.release(running, true)
	p.release(idle, false)
	p.giveOffersBack()
}

// stopSpare stops what is not needed any more since a worker counts.
func (p *lifecycle) stopSpare(winner int) {
	rank, _ := p.rec.spec.RankOf(winner)
	if !p.rec.replicated() || p.rec.winner[rank] != winner {
		return
	}
	stop := map[vicinity.ID][]RankAttempt{}
	p.rec.copiesOf(rank, func(w int, k *rankRecord) {
		if p.rec.spare(w) && k.state == WorkerRunning {
			stop[k.node] = append(stop[k.node], RankAttempt{w, k.attempt})
		}
	})
	p.release(stop, true)
}

// retry gives ranks another attempt.
func (p *lifecycle) retry(now time.Time, ranks []RankAttempt, why string) {
	p.emit(event{Kind: evRetried, At: now, Ranks: ranks, Reason: why})
	p.search.again(now)
}

// retryGang starts a gang again as a whole, and reports whether it may.
func (p *lifecycle) retryGang(now time.Time, why string) bool {
	if !p.rec.spec.Rigid() || p.rec.retries >= p.rec.spec.Retries {
		return false
	}
	p.startOver(now, evRetried, why)
	return true
}

// startOver gives all ranks another attempt.
func (p *lifecycle) startOver(now time.Time, kind eventKind, why string) {
	var all []RankAttempt
	for i := range p.rec.ranks {
		all = append(all, RankAttempt{i, p.rec.ranks[i].attempt})
	}
	p.emit(event{Kind: kind, At: now, Ranks: all, Reason: why})
	p.search.again(now)
	p.letGo(all)
}

// declined has a rank placed elsewhere whose node could not begin it. That is no
// failure of the program, nor is anything lost; but a gang starts together, and
// does so again.
func (p *lifecycle) declined(now time.Time, from vicinity.ID, w WorkerReport) {
	why := fmt.Sprintf("%s: %s %s", p.rec.spec.who(w.Rank), label(p.rec.ranks[w.Rank].name, from), w.Reason)
	p.search.failedAt(now, from, w.Reason)
	ranks := []RankAttempt{w.RankAttempt}
	if p.rec.closing() { // nobody is looked for any more
		p.lost(now, ranks, why)
		return
	}
	if p.rec.replicated() {
		p.emit(event{Kind: evLost, At: now, Ranks: ranks, Reason: why})
		if p.survives(now, ranks) { // by the other copies
			return
		}
	}
	if p.rec.spec.Rigid() {
		p.startOver(now, evDeclined, why)
		return
	}
	p.emit(event{Kind: evDeclined, At: now, Ranks: ranks, Reason: why})
	p.search.again(now)
}
