package model

import "zorilla/jobs"

// Slots returns how many slots workers, and what is not simulated, use, and how many are held by offers
// beside them. An older job may be offered what a younger one holds, until one of
// them is granted; so there may be less than used+held.
func (m *Model) Slots() (used, held int) {
	return m.core.Claims.Used.Slots, m.core.Claims.HeldSlots() - m.core.Claims.Used.Slots
}

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
