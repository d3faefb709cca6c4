package model

import (
	"maps"
	"slices"

	"zorilla/jobs"
	"zorilla/vicinity"
)

// Holding is some of a node's slots that belong to a job.
type Holding struct {
	Job    jobs.ID
	Origin vicinity.ID
	Slots  int
	// State is that of the worker that has the slots, and Rank which one it
	// is; "" = they are held by an offer that stands.
	State jobs.WorkerState
	Rank  jobs.RankAttempt
}

// Slots returns how many slots workers, and what is not simulated, use, and how many are held by offers
// beside them. An older job may be offered what a younger one holds, until one of
// them is granted; so there may be less than used+held.
func (m *Model) Slots() (used, held int) {
	return m.core.Claims.Used.Slots, m.core.Claims.HeldSlots() - m.core.Claims.Used.Slots
}

// Holdings lists what the node's slots are used by and held for: workers by
// job and rank, then offers by job.
func (m *Model) Holdings() []Holding {
	var list []Holding
	for _, w := range m.core.Part.All() {
		for _, k := range w.Workers {
			if !k.Freed {
				list = append(list, Holding{Job: w.Job, Origin: w.Origin, Slots: w.Spec.Slots, State: k.State, Rank: k.RankAttempt})
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.core.Claims.Holds)) {
		h := m.core.Claims.Holds[id]
		list = append(list, Holding{Job: id, Origin: h.Ad.Origin(), Slots: h.Needs.Slots * h.Workers})
	}
	return list
}

// Jobs lists the jobs that were submitted here, in that order.
func (m *Model) Jobs() []jobs.ID { return slices.Clone(m.disk.jobs) }

// Status describes a job that was submitted here.
func (m *Model) Status(id jobs.ID) (jobs.Status, bool) {
	j := m.core.Jobs[id]
	if j == nil {
		return jobs.Status{}, false
	}
	return j.Primary.Status(), true
}

// State is the state of a job that was submitted here, "" if it was not.
func (m *Model) State(id jobs.ID) jobs.State {
	if j := m.core.Jobs[id]; j != nil {
		return j.Primary.Rec.State
	}
	return ""
}
