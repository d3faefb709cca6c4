package model

import (
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
)

// What happens to nodes: they are killed, fail with their machines, are stopped,
// come back, are cut off, and are told what their owners allow.

// kill ends a node, perhaps in the middle of what it does; with machine its
// workers too.
func (w *world) kill(p *place, machine bool) {
	what := "killed"
	if machine {
		what = "its machine failed"
	}
	w.tracer.note(w, p, "", "%s", what)
	r := p.core.Kill(w.local(p), machine)
	p.core, p.remains, p.leaving, p.next = nil, &r, false, time.Time{}
	w.audit.killed(w, p, machine)
	for _, o := range w.owed {
		if o.to == p && !machine { // a machine that fails says nothing
			w.fails(o.from, o.m, w.latency(p, o.from))
		}
	}
	w.owed = slices.DeleteFunc(w.owed, func(o owing) bool { return o.from == p || o.to == p })
	w.sweepSoon()
}

// revive starts a node again, with another clock: that it is set while the node
// is down must not matter.
func (w *world) revive(p *place, skew time.Duration) {
	w.tracer.note(w, p, "", "started again, clock %v ahead", skew.Round(time.Millisecond))
	p.remains.Shift(skew - p.skew) // processes do not look at the clock
	p.skew = skew
	p.life++
	core, out := Revive(w.local(p), w.config(p), *p.remains)
	p.core, p.remains = core, nil
	w.perform(p, out)
}

// stop ends a node as SIGTERM does.
func (w *world) stop(p *place) {
	w.tracer.note(w, p, "", "is being stopped")
	p.leaving = true
	life := p.life
	w.perform(p, p.core.Leave(w.local(p)))
	w.after(w.upTo(wire.LeaveWait), func() {
		if p.core != nil && p.life == life {
			w.kill(p, false)
		}
	})
}

func (w *world) limit(p *place, l jobs.Limits) {
	w.tracer.note(w, p, "", "limits: paused %v, %d jobs, %d workers per job", l.Paused, l.MaxJobs, l.MaxWorkersPerJob)
	w.perform(p, p.core.Limit(w.local(p), l))
}

// drain lets a node take no new workers; with evict it ends those that it has.
func (w *world) drain(p *place, evict bool) {
	w.tracer.note(w, p, "", "drains, evicts: %v", evict)
	w.perform(p, p.core.Drain(w.local(p), evict))
}

// undrain lets it take workers again, if it lives.
func (w *world) undrain(p *place) {
	if p.core != nil && !p.leaving {
		w.tracer.note(w, p, "", "does not drain any more")
		w.perform(p, p.core.Undrain(w.local(p)))
	}
}

func (w *world) cancel(p *place, id jobs.ID) {
	w.tracer.note(w, p, id, "cancelled")
	w.perform(p, p.core.Cancel(w.local(p), id))
}

// part cuts the network in two, or heals it.
func (w *world) part(cut bool) {
	split := ""
	for _, p := range w.nodes {
		p.island = 0
		if cut && w.chance(0.4) {
			p.island = 1
		}
		split += string(rune('0' + p.island))
	}
	w.tracer.note(w, nil, "", "islands: %s", split)
	w.sweepSoon()
}

// suspicion is for how many sweeps, one a second, a node may be silent before the
// overlay declares it dead.
const suspicion = 5

// sweepSoon has the overlay look for members that are gone.
func (w *world) sweepSoon() {
	if !w.pinging {
		w.pinging = true
		w.after(w.upTo(time.Second), w.sweep)
	}
}

func (w *world) sweep() {
	w.pinging = false
	for _, p := range w.nodes {
		for _, other := range w.nodes {
			switch {
			case p.core == nil || other.core != nil && w.reachable(p, other):
				delete(p.silent, other.id)
				continue
			case p.silent[other.id] < suspicion:
				w.pinging = true
				if p.silent[other.id]++; p.silent[other.id] == suspicion {
					w.tracer.note(w, p, "", "declares %s dead", other.id.Short())
					w.perform(p, p.core.MemberGone(w.local(p), other.id))
				}
			}
		}
	}
	if w.pinging {
		w.after(time.Second, w.sweep)
	}
}

// missed returns how many members a node takes for dead.
func (w *world) missed(p *place) (n int) {
	for _, s := range p.silent {
		if s >= suspicion {
			n++
		}
	}
	return n
}

// alive lists the nodes that run, without those that are being stopped.
func (w *world) alive() (list []*place) {
	for _, p := range w.nodes {
		if p.core != nil && !p.leaving {
			list = append(list, p)
		}
	}
	return list
}
