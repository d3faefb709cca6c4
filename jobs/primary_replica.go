package jobs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/vicinity"
)

// Copies of ranks (--replicas) make a job survive what leaves one copy of each
// rank: a copy that fails or is lost matters only when no other can end with 0
// any more. What is lost after the start is not replaced.

// failedCopies returns how many ranks have failed: in none of their copies the
// program can end with 0 any more, and in one at least it failed.
func (p *primary) failedCopies() (n int) {
	for rank := range p.rec.spec.Max {
		if _, failed := p.rec.hopeless(rank); failed {
			n++
		}
	}
	return n
}

// survives handles lost copies, and reports whether the job goes on, or ends, by
// what is left. It does not if all copies of a rank were lost.
func (p *primary) survives(now time.Time, lost []RankAttempt) bool {
	for _, ra := range lost {
		rank, _ := p.rec.spec.RankOf(ra.Rank)
		if dead, failed := p.rec.hopeless(rank); dead && !failed {
			return false
		}
	}
	p.advance(now)
	return true
}

// idle reports whether the end of the job does not wait for a worker.
func (p *primary) idle(worker int) bool {
	return p.rec.replicated() && (p.rec.spare(worker) || p.rec.ranks[worker].state == WorkerLost)
}

// forgiven reports whether a program that failed did so in a copy that the job
// could do without.
func (p *primary) forgiven(worker int) bool {
	if !p.rec.replicated() {
		return false
	}
	rank, _ := p.rec.spec.RankOf(worker)
	_, failed := p.rec.hopeless(rank)
	return !failed
}

// exited is the event of a worker's end. A copy that is not needed leaves
// nothing; one that failed while others go on leaves a warning.
func (p *primary) exited(now time.Time, w WorkerReport) event {
	ev := event{Kind: evExited, At: now, Ranks: []RankAttempt{w.RankAttempt}, Exit: w.Exit, Wrote: &wrote{w.Stdout, w.Stderr}, Output: w.Output, Warn: w.Warn}
	switch {
	case !p.rec.replicated():
	case p.rec.spare(w.Rank):
		ev.Output, ev.Warn = nil, nil
	case badExit(w.Exit):
		ev.Output = nil
		rank, _ := p.rec.spec.RankOf(w.Rank)
		others := false
		p.rec.copiesOf(rank, func(worker int, k *rankRecord) {
			others = others || worker != w.Rank && (k.state == WorkerRunning || k.state == WorkerEnded && succeeded(k.exit))
		})
		if k := p.rec.ranks[w.Rank]; others {
			k.exit = w.Exit
			ev.Warn = append(slices.Clone(w.Warn), p.exitReason(w.Rank, &k)+": another copy goes on")
		}
	}
	return ev
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

// stopSpare stops what is not needed any more since a worker counts.
func (p *primary) stopSpare(winner int) {
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
	for _, id := range slices.Sorted(maps.Keys(stop)) {
		p.do(doRelease{to: id, release: Release{Job: p.rec.id, Ranks: stop[id], Stop: true}})
	}
}

// exitReason says how a worker's program ended.
func (p *primary) exitReason(worker int, k *rankRecord) string {
	return exitText(fmt.Sprintf("%s on %s", p.rec.spec.who(worker), label(k.name, k.node)), k)
}
