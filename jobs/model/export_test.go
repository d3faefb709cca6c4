package model

import (
	"maps"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Core is what tests look into.
func (m *Model) Core() *core.Core { return m.core }

// Writing reports whether events are on their way to the journal.
func (m *Model) Writing() bool { return len(m.writing) > 0 }

// Asking reports whether answers are awaited.
func (m *Model) Asking() bool { return len(m.asked) > 0 }

// ReportSize is how much output is in one report at most.
const ReportSize = modelReport

// Limit tells what the owner allows from now on.
func (m *Model) Limit(now time.Time, l jobs.Limits) Actions {
	m.core.Limit(l)
	return m.Tick(now)
}

// Drain makes the node take no new workers. With evict those that it has are ended, and
// are lost there.
func (m *Model) Drain(now time.Time, evict bool) Actions {
	m.core.Drain(now)
	if evict {
		m.core.Part.EvictAll(now, participant.WantEvict, wire.ReasonDraining)
	}
	return m.Tick(now)
}

// Undrain makes the node take workers again.
func (m *Model) Undrain(now time.Time) Actions {
	m.core.Claims.Undrain()
	return m.Tick(now)
}

// Book has a booking made, kept on or ended, as an origin does that does not wait for the answer.
func (m *Model) Book(now time.Time, b *wire.Book) Actions {
	_ = m.core.Bookings.Book(now, b.Job.Origin(), 0, b) // it is the origin
	return m.Tick(now)
}

// Cancel ends a job of this node.
func (m *Model) Cancel(now time.Time, id jobs.ID) Actions {
	m.core.Update(now, id, func(p *primary.Primary) { p.Cancel(now, "cancelled by a user", false) })
	return m.Tick(now)
}

// Resize asks for another number of workers of a job of this node, as a user does.
func (m *Model) Resize(now time.Time, id jobs.ID, q jobs.Resize) Actions {
	m.core.Update(now, id, func(p *primary.Primary) {
		_, _ = p.Resize(now, m.cfg.Self.ID, &wire.Resize{Job: id, Resize: q}) // what it cannot have it does without
	})
	return m.Tick(now)
}

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

// Holdings lists what the node's slots are used by and held for: workers by
// job and rank, then offers by job.
func (m *Model) Holdings() []Holding {
	var list []Holding
	for _, w := range m.core.Part.All() {
		for _, k := range w.Workers {
			if !k.Freed {
				list = append(list, Holding{Job: w.Job, Origin: w.Origin, Slots: w.Spec.Needs(k.Rank).Slots, State: k.State, Rank: k.RankAttempt})
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.core.Claims.Holds)) {
		h := m.core.Claims.Holds[id]
		list = append(list, Holding{Job: id, Origin: h.Ad.Origin(), Slots: h.Room.Slots})
	}
	return list
}

// Jobs lists the jobs that were submitted here, in that order.
func (m *Model) Jobs() []jobs.ID { return slices.Clone(m.disk.jobs) }

// Booked counts the bookings that a node has, in memory and on disk.
func (m *Model) Booked() int { return m.core.Claims.Booked() + len(m.disk.booked) }
