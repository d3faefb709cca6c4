package model

import (
	"time"

	"zorilla/jobs/internal/participant"
)

// hours: outside of its owner's hours a node has no worker that it did not have before.
func (a *Audit) hours(now time.Time, m *Model) {
	limits := &m.core.Claims.Limits
	for _, w := range m.core.Part.All() {
		for _, k := range w.Workers {
			id := participant.WorkerID{Job: w.Job, RankAttempt: k.RankAttempt}
			if !a.taken[id] && !limits.Hours.Open(now) {
				a.Fail(w.Job, "node %s took rank %d of job %s in at %v, outside of its owner's hours: %s", m.cfg.Self.ID.Short(), k.Rank, w.Job, now, limits.Hours)
			}
			a.taken[id] = true
		}
	}
	for job := range m.core.Claims.Spares {
		if !limits.Hours.Open(now) {
			a.Fail(job, "node %s has spares of job %s at %v, outside of its owner's hours: %s", m.cfg.Self.ID.Short(), job, now, limits.Hours)
		}
	}
}
