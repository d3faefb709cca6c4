package jobs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// What happens when a rank fails: its program ends with another code than 0, or
// its node is lost. Programs and machines are told apart, because a machine's
// failure is nobody's fault: a malleable job replaces its rank without counting.

// badExit reports whether a rank's program failed by itself: what Zorilla
// stopped because of others says nothing about the job.
func badExit(e *process.Exit) bool { return e != nil && e.Code != 0 && e.Cause != process.Stopped }

// failedRanks returns how many ranks have failed for good.
func (p *primary) failedRanks() (n int) {
	if p.rec.replicated() {
		return p.failedCopies()
	}
	for i := range p.rec.ranks {
		if k := &p.rec.ranks[i]; k.state == WorkerEnded && badExit(k.exit) {
			n++
		}
	}
	return n
}

// failing reports whether the job ends because ranks have failed: nobody is
// looked for any more, and who runs is stopped.
func (p *primary) failing() bool {
	spec := &p.rec.spec
	n := p.failedRanks()
	if t := p.rec.tasks; t != nil {
		n = t.failed
	}
	return n > 0 && spec.stopsOnBadExit() || spec.MaxFails > 0 && n > spec.MaxFails
}

// failed handles a rank whose program has just failed. A malleable job tries
// the rank again, if it may; a gang is tried again as a whole, once the others
// have ended.
func (p *primary) failed(now time.Time, from vicinity.ID, w WorkerReport) {
	k := &p.rec.ranks[w.Rank]
	if !p.rec.spec.Rigid() && k.retries < p.rec.spec.Retries {
		p.avoid[from] = now.Add(avoidFor)
		p.retry(now, []RankAttempt{w.RankAttempt}, p.exitReason(w.Rank, k))
		return
	}
	if p.failing() {
		p.stopOthers()
	}
}

// stopOthers has all that runs for the job stopped, and lets go of what does not
// run yet. Acknowledgements say the same, in case the message is lost.
func (p *primary) stopOthers() {
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
	for _, id := range slices.Sorted(maps.Keys(running)) {
		p.do(doRelease{to: id, release: Release{Job: p.rec.id, Ranks: running[id], Stop: true}})
	}
	for _, id := range slices.Sorted(maps.Keys(idle)) {
		p.do(doRelease{to: id, release: Release{Job: p.rec.id, Ranks: idle[id]}})
	}
	p.yieldAll()
}

// retry gives ranks another attempt.
func (p *primary) retry(now time.Time, ranks []RankAttempt, why string) {
	p.emit(event{Kind: evRetried, At: now, Ranks: ranks, Reason: why})
	p.search.Reset(now)
}

// retryGang starts a gang again as a whole, and reports whether it may.
func (p *primary) retryGang(now time.Time, why string) bool {
	if !p.rec.spec.Rigid() || p.rec.retries >= p.rec.spec.Retries {
		return false
	}
	p.startOver(now, evRetried, why)
	return true
}

// startOver gives all ranks another attempt.
func (p *primary) startOver(now time.Time, kind eventKind, why string) {
	var all []RankAttempt
	for i := range p.rec.ranks {
		all = append(all, RankAttempt{i, p.rec.ranks[i].attempt})
	}
	p.emit(event{Kind: kind, At: now, Ranks: all, Reason: why})
	p.search.Reset(now)
	for _, id := range slices.Sorted(maps.Keys(p.parts)) {
		p.do(doRelease{to: id, release: Release{Job: p.rec.id, Ranks: all}})
	}
	p.parts = map[vicinity.ID]*part{}
	p.yieldAll()
}

// declined has a rank placed elsewhere whose node could not begin it. That is no
// failure of the program, nor is anything lost; but a gang starts together, and
// does so again.
func (p *primary) declined(now time.Time, from vicinity.ID, w WorkerReport) {
	why := fmt.Sprintf("%s: %s %s", p.rec.spec.who(w.Rank), label(p.rec.ranks[w.Rank].name, from), w.Reason)
	p.avoid[from] = now.Add(avoidFor)
	if a, ok := p.answers[from]; ok {
		a.Offered, a.Reason, a.At = 0, w.Reason, now
		p.answers[from] = a
	}
	ranks := []RankAttempt{w.RankAttempt}
	if p.closing() { // nobody is looked for any more
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
	p.search.Reset(now)
}

// stopped returns how many ranks ended because others had failed.
func (p *primary) stopped() (n int) {
	for i := range p.rec.ranks {
		if e := p.rec.ranks[i].exit; e != nil && e.Cause == process.Stopped {
			n++
		}
	}
	return n
}

func exitText(who string, k *rankRecord) string {
	switch {
	case k.exit.Detail == "":
		return fmt.Sprintf("%s ended with %d", who, k.exit.Code)
	case k.exit.Cause == process.Signalled:
		return fmt.Sprintf("%s was %s", who, k.exit.Detail)
	}
	return fmt.Sprintf("%s: %s", who, k.exit.Detail)
}
