package model

import (
	"maps"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
)

// Remains is what a node leaves behind that was killed: what it had written
// down, and its workers, which go on without it.
type Remains struct {
	number uint64
	disk   disk
}

// Shift moves the times of processes to another clock: they do not look at it.
func (r *Remains) Shift(d time.Duration) {
	for _, k := range r.disk.workers {
		if !k.began.IsZero() {
			k.began = k.began.Add(d)
		}
		if !k.ends.IsZero() {
			k.ends = k.ends.Add(d)
		}
	}
}

// Kill ends the node at once, as SIGKILL does; the Model must not be used any
// more. What was on its way to the disk may have got there. If the machine fails
// with it, the workers are gone, and perhaps what was not durable.
func (m *Model) Kill(now time.Time, machine bool) Remains {
	durable := m.cfg.Rand.IntN(len(m.writing) + 1)
	for _, w := range m.writing[:durable] {
		m.disk.append(w)
	}
	if durable < len(m.writing) {
		m.disk.tear(m.writing[durable], m.cfg.Rand.IntN)
	}
	m.disk.workers = slices.DeleteFunc(m.disk.workers, func(k *worker) bool {
		k.finish(now)
		return k.claim == nil || machine && !k.synced && m.cfg.Rand.IntN(2) == 0
	})
	if machine {
		m.disk.fail(now)
	}
	return Remains{m.number, m.disk}
}

// fail is the end of a machine.
func (d *disk) fail(now time.Time) {
	for _, k := range d.workers {
		if !k.began.IsZero() && !k.over {
			k.wrote, k.over, k.failed = k.written(now), true, true
		}
	}
	for _, job := range d.outputs {
		for _, o := range job {
			o.data = o.data[:o.safe]
		}
	}
}

// apply takes an event of the journal, as it was written down.
func (m *Model) apply(e entry) {
	rec := &m.core.Jobs[e.job].Primary.Rec
	var ev record.Event
	if err := codec.Unmarshal(codec.MustMarshal(e.ev), &ev); err != nil || !ev.Sound(rec) {
		panic("model: its journal cannot be read")
	}
	rec.Apply(ev)
}

// Revive makes a node go on with what an earlier life of it left. A worker
// whose end came in the meantime has ended.
func Revive(now time.Time, cfg Config, r Remains) (*Model, Actions) {
	m := New(cfg)
	m.number, m.disk = r.number+1, r.disk
	m.disk.jobs = nil
	for _, e := range m.disk.journal { // as origin.Jobs.Load does
		j := m.core.Jobs[e.job]
		if j == nil {
			j = m.core.NewJob(e.job)
			m.core.Add(j)
			m.disk.jobs = append(m.disk.jobs, e.job)
		}
		if e.ev.Kind != record.Checkpointed {
			m.apply(e)
		}
	}
	for _, e := range m.disk.newest() {
		if !m.core.Jobs[e.job].Primary.Rec.State.Final() {
			m.apply(e)
		}
	}
	m.disk.begin(now)
	for _, name := range slices.Sorted(maps.Keys(m.disk.booked)) {
		if !m.core.Bookings.Rebook(now, name, m.disk.booked[name]) {
			m.record(now, &write{forget: name})
		}
	}
	m.savings.expireLater(now)
	for _, k := range m.disk.workers {
		m.core.Adopt(now, *k.claim)
	}
	for _, id := range m.disk.jobs {
		j := m.core.Jobs[id]
		m.core.Clock.Saw(j.Primary.Rec.Stamp, now)
		for i := range j.Primary.Rec.Ranks {
			ra := jobs.RankAttempt{Rank: i, Attempt: j.Primary.Rec.Ranks[i].Attempt}
			j.Primary.Received[ra] = m.disk.has(id, ra)
		}
		if j.Settled = j.Primary.Rec.State.Final(); !j.Settled {
			m.core.Resume(now, j)
		}
	}
	m.core.Stalled(now)
	return m, m.Tick(now)
}
