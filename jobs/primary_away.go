package jobs

import (
	"time"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// waitedFor renews the lease of a participant that waits for this node.
func (p *primary) waitedFor(now time.Time, id vicinity.ID) {
	if part := p.parts[id]; part != nil {
		part.heard = now
	}
}

// leaves keeps a participant that is being started again: its workers go on. What
// has not started is looked for elsewhere.
func (p *primary) leaves(now time.Time, from vicinity.ID, away time.Duration) {
	part := p.parts[from]
	if part == nil || away <= 0 || p.rec.state.Final() {
		return
	}
	away = min(away, maxAway)
	part.back = now.Add(away)
	p.emit(event{Kind: evAway, At: now, Node: from, For: codec.Duration(away)})
	var idle []RankAttempt
	for i := range p.rec.ranks {
		if k := &p.rec.ranks[i]; k.node == from && (k.state == WorkerPreparing || k.state == WorkerReady) {
			idle = append(idle, RankAttempt{i, k.attempt})
		}
	}
	p.unprepared(now, from, idle, reasonLeaving)
}

// expected returns when a node that was stopped before this one was is back at
// the latest, or zero. Clocks may have jumped since.
func (p *primary) expected(now time.Time, id vicinity.ID) time.Time {
	back := p.rec.away[id]
	if !now.Before(back) {
		return time.Time{}
	}
	return earlier(back, now.Add(maxAway))
}

// lease returns when a participant that stays silent is given up.
func (p *part) lease() time.Time { return later(p.heard.Add(partLease), p.back) }
