package model

import (
	"cmp"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/calendar"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// Own slots are never passed over: what a job is granted elsewhere, its own node had no room
// for when that was decided.

// ownSlots is what the audit knows of the room for the jobs of a node at that node itself.
type ownSlots struct {
	since  map[jobs.ID]time.Time // when there came to be room
	failed map[jobs.ID]time.Time // when the node last could not run a worker of the job
	seen   map[participant.WorkerID]bool
}

// passing is how long room of a node may be there before its own jobs count on it.
const passing = time.Millisecond

func newOwnSlots() ownSlots {
	return ownSlots{map[jobs.ID]time.Time{}, map[jobs.ID]time.Time{}, map[participant.WorkerID]bool{}}
}

// nearest reports whether only the distance of each node by itself counts for a job, and
// nothing keeps it from its own node but slots.
func nearest(s *jobs.Spec) bool {
	return !s.JointChoice() && !s.OnePerNode && s.Search.Adaptive() && s.Where == "" && s.GPUs == 0 && s.Memory == 0 && s.Disk == 0 &&
		placement.Strategy(cmp.Or(s.Strategy, string(placement.Nearest))) == placement.Nearest
}

// ownRoom counts the workers of a job of this node that there would be room for at this node,
// beside all that is held, or booked for the time in which they would run, for others.
func (m *Model) ownRoom(now time.Time, id jobs.ID) int {
	c, rec := m.core.Claims, &m.core.Jobs[id].Primary.Rec
	l := &c.Limits
	if c.Closed != "" || l.Paused || l.MaxJobs > 0 || l.MaxWorkersPerJob > 0 || !l.Hours.IsZero() || c.Ending[id] || c.Booked() > 0 || c.Disk.Full || c.Disk.Hangs || c.Starts.Broken != "" ||
		m.cfg.Unable() != "" {
		return 0
	}
	for _, k := range m.disk.workers {
		if k.Job == id && k.over { // then the job does not grow, which its origin may hear of later
			return 0
		}
	}
	var until time.Time
	if spec := &rec.Spec; spec.Walltime > 0 && spec.Array == nil {
		until = now.Add(spec.Walltime.Std() + 2*wire.HoldLease + calendar.Overdue)
	}
	left := c.Least(now, now, until, id).Slots
	for other, h := range c.Holds {
		if other != id {
			left -= h.Room.Slots
		}
	}
	granted := -c.Jobs[id] // and not claimed yet
	for i := range rec.Ranks {
		switch k := &rec.Ranks[i]; k.State {
		case jobs.WorkerPreparing, jobs.WorkerReady, jobs.WorkerRunning:
			if k.Node == m.cfg.Self.ID {
				granted++
			}
		}
	}
	if granted > 0 { // until the grant comes no more is offered
		return 0
	}
	return left / max(1, rec.Spec.Slots)
}

// own checks the jobs of a node that has just done something.
func (a *Audit) own(now time.Time, m *Model) {
	self, o := m.cfg.Self.ID, &a.ownSlots
	for _, w := range m.writing {
		for i := range w.Events {
			a.ownEvent(now, m, w.Job, &w.Events[i])
		}
	}
	for id, j := range m.core.Jobs {
		if id.Origin() != self || j.Primary.Rec.State.Final() || !nearest(&j.Primary.Rec.Spec) || m.ownRoom(now, id) <= 0 {
			delete(o.since, id)
		} else if o.since[id].IsZero() {
			o.since[id] = now
		}
	}
}

func (a *Audit) ownEvent(now time.Time, m *Model, id jobs.ID, ev *record.Event) {
	self, o := m.cfg.Self.ID, &a.ownSlots
	switch ev.Kind {
	case record.Granted:
		first := participant.WorkerID{Job: id, RankAttempt: ev.Ranks[0]}
		if ev.Node == self || o.seen[first] || m.core.Jobs[id] == nil || !nearest(&m.core.Jobs[id].Primary.Rec.Spec) {
			return
		}
		o.seen[first] = true
		ranks := m.core.Jobs[id].Primary.Rec.Ranks
		if slices.ContainsFunc(ev.Ranks, func(ra jobs.RankAttempt) bool { return ra.Rank < len(ranks) && ranks[ra.Rank].Left != "" }) {
			return // it was moved: away from here, or to where it is wanted
		}
		since, roomy := o.since[id]
		failed, avoided := o.failed[id]
		if avoided && now.Before(failed.Add(search.AvoidFor)) || !roomy || now.Before(since.Add(passing)) || m.ownRoom(now, id) <= 0 {
			return
		}
		a.Fail(id, "job %s takes slots of node %s, and its own node %s has room for %d workers since %v ago", id, ev.Node.Short(), self.Short(), m.ownRoom(now, id), now.Sub(since))
	case record.Released, record.Declined, record.Lost, record.Retried, record.Moved:
		o.failed[id] = now
	}
}

// forgetOwn notes that a node's life has ended.
func (a *Audit) forgetOwn(node vicinity.ID) {
	for id := range a.since {
		if id.Origin() == node {
			delete(a.since, id)
		}
	}
}
