package jobs

import (
	"fmt"
	"slices"
	"time"

	"zorilla/vicinity"
)

// overslept is called when this node did not run for a while: paused, on a
// machine that had no time for it, or long in starting. Its participants were not
// silent then, they were not heard.
func (p *primary) overslept(now time.Time) {
	for _, part := range p.parts {
		part.heard, part.spare = now, true
	}
}

// forgotten gives up the ranks of a node that its reports have not named for a
// lease: a node that was killed before it had written down what it was granted
// goes on reporting the job's other ranks, so that its silence does not tell.
func (p *primary) forgotten(now time.Time, from vicinity.ID, rep Report) {
	part := p.parts[from]
	if part == nil || p.rec.state.Final() || now.Before(part.counted.Add(reportEvery)) {
		return
	}
	part.counted = now // a job may have very many ranks
	named := make(map[RankAttempt]bool, len(rep.Workers))
	for _, w := range rep.Workers {
		named[w.RankAttempt] = true
	}
	unnamed := map[RankAttempt]time.Time{}
	var unstarted, running []RankAttempt
	for i := range p.rec.ranks {
		k := &p.rec.ranks[i]
		ra := RankAttempt{i, k.attempt}
		if k.node != from || named[ra] || k.state == WorkerEnded && k.collected {
			continue
		}
		since, again := part.unnamed[ra]
		if !again {
			since = now
		}
		unnamed[ra] = since
		if now.Before(since.Add(partLease)) {
			continue
		}
		switch k.state {
		case WorkerPreparing, WorkerReady:
			unstarted = append(unstarted, ra)
		case WorkerRunning, WorkerEnded:
			running = append(running, ra)
		}
	}
	part.unnamed = unnamed
	if len(unstarted) > 0 {
		p.unprepared(now, from, unstarted, reasonForgot)
	}
	running = slices.DeleteFunc(running, func(ra RankAttempt) bool { return !p.owned(from, ra) })
	if len(running) > 0 {
		p.lost(now, running, fmt.Sprintf("node %s does not know %s any more", label(p.rec.ranks[running[0].Rank].name, from), p.rec.spec.list(running)))
	}
}

const reasonForgot = "forgot the grant"
