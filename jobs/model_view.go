package jobs

import (
	"maps"
	"slices"

	"zorilla/vicinity"
)

// Holding is some of a node's slots that belong to a job.
type Holding struct {
	Job    ID
	Origin vicinity.ID
	Slots  int
	// State is that of the worker that has the slots, and Rank which one it
	// is; "" = they are held by an offer that stands.
	State WorkerState
	Rank  RankAttempt
}

// Slots returns how many slots workers, and what is not simulated, use, and how many are held by offers
// beside them. An older job may be offered what a younger one holds, until one of
// them is granted; so there may be less than used+held.
func (m *Model) Slots() (used, held int) {
	return m.core.claims.used.slots, m.core.claims.heldSlots() - m.core.claims.used.slots
}

// Holdings lists what the node's slots are used by and held for: workers by
// job and rank, then offers by job.
func (m *Model) Holdings() []Holding {
	var list []Holding
	for _, w := range m.core.part.all() {
		for _, k := range w.workers {
			if !k.freed {
				list = append(list, Holding{Job: w.job, Origin: w.origin, Slots: w.spec.Slots, State: k.state, Rank: k.RankAttempt})
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.core.claims.holds)) {
		h := m.core.claims.holds[id]
		list = append(list, Holding{Job: id, Origin: h.ad.Origin(), Slots: h.needs.slots * h.workers})
	}
	return list
}

// Jobs lists the jobs that were submitted here, in that order.
func (m *Model) Jobs() []ID { return slices.Clone(m.disk.jobs) }

// Status describes a job that was submitted here.
func (m *Model) Status(id ID) (Status, bool) {
	j := m.core.jobs[id]
	if j == nil {
		return Status{}, false
	}
	return j.core.status(), true
}

// State is the state of a job that was submitted here, "" if it was not.
func (m *Model) State(id ID) State {
	if j := m.core.jobs[id]; j != nil {
		return j.core.rec.state
	}
	return ""
}
