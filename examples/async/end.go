package main

// How the ranks find that they have come to the solution, without one that is asked.
//
// After S. A. Savari and D. P. Bertsekas, Finite termination of asynchronous iterative
// algorithms (Parallel Computing 22, 1996), a rank whose residual is within the tolerance
// neither iterates nor says anything new until it hears a plane with which that is no longer
// so. Such iterations come to rest, and what is left is to detect rest: nobody iterates, and
// no plane is on its way.
//
// To see that, a rank at rest says which version its slab is and which versions of its
// neighbours' planes it rests on. All ranks pass on the newest that they know of each. If all
// are at rest, and each on just the versions that its neighbours say they are, then these
// slabs fit together, whenever and by whatever way that was heard: the residual of the whole is
// within the tolerance. A version has the attempt of its rank in it, so that what a lost rank
// said is never taken for what its successor has. As long as no rank is lost, nobody can leave
// such a rest, since to do so needs a newer plane; so all see the same one.
//
// If a rank is lost that others have seen at rest, they may have ended on what it had, and it
// begins anew. They keep their slabs as they are, their planes are given for it, and it needs
// to rest on theirs only, not they on its. That makes it wrong by at most another eighth of the
// tolerance, since it solves the equations between their planes.

// version names one content of a slab; there is no other of that name.
type version struct{ Attempt, Iteration int }

func (v version) newer(than version) bool {
	return v.Attempt > than.Attempt || v.Attempt == than.Attempt && v.Iteration > than.Iteration
}

// phase is how far a rank is. It goes back only from settled to active, or with the attempt.
type phase int

const (
	active  phase = iota
	settled       // at rest
	final         // its slab will not change any more
	safe          // and is written
)

// state is what a rank says of itself.
type state struct {
	Version version
	Serial  int        // of what this attempt has said
	Beside  [2]version // of the neighbours' planes that it rests on
	Phase   phase
}

func (s state) newer(than state) bool {
	return version{s.Version.Attempt, s.Serial}.newer(version{than.Version.Attempt, than.Serial})
}

// table is the newest that is known of all ranks.
type table []state

// hear takes what another rank knows, and reports whether that is news.
func (t table) hear(other table) (news bool) {
	if len(other) != len(t) {
		return false // of another grid
	}
	for rank, s := range other {
		if s.newer(t[rank]) {
			t[rank], news = s, true
		}
	}
	return news
}

// agreed reports whether the slabs of all ranks fit together.
func (t table) agreed() bool {
	for rank, s := range t {
		switch {
		case s.Phase == active:
			return false
		case s.Phase >= final: // it has agreed before
		case rank > 0 && s.Beside[below] != t[rank-1].Version:
			return false
		case rank < len(t)-1 && s.Beside[above] != t[rank+1].Version:
			return false
		}
	}
	return true
}

// safe reports whether all ranks have written their slabs.
func (t table) safe() bool {
	for _, s := range t {
		if s.Phase < safe {
			return false
		}
	}
	return true
}

// part is what one rank does, without clock, lock or network.
type part struct {
	rank, attempt int
	tolerance     float64
	sweeps        int // of an iteration

	slab      *slab
	iteration int
	beside    [2]version // of the neighbours' planes
	fresh     bool       // something has changed since the residual was looked at
	all       table
	changes   int // of all
}

// newPart returns the part of an attempt of a rank, of so many, which begins with zeros.
func newPart(n, rank, size, attempt int, tolerance float64, sweeps int) *part {
	p := &part{rank: rank, attempt: attempt, tolerance: tolerance, sweeps: sweeps,
		slab: newSlab(n, rank, size), fresh: true, all: make(table, size)}
	p.declare(active)
	return p
}

func (p *part) version() version { return version{p.attempt, p.iteration} }
func (p *part) phase() phase     { return p.all[p.rank].Phase }

// declare says how far this rank is. That it is active is said once, and not in each iteration.
func (p *part) declare(ph phase) {
	old := p.all[p.rank]
	now := state{p.version(), old.Serial, p.beside, ph}
	if now == old || ph == active && old.Phase == active && old.Version.Attempt == p.attempt {
		return
	}
	now.Serial++
	p.all[p.rank] = now
	p.changes++
}

// step does an iteration, with whatever is known of the neighbours by now. It reports whether
// there was anything to do.
func (p *part) step() bool {
	if !p.fresh || p.phase() >= final {
		return false
	}
	if p.slab.residual() <= p.tolerance {
		p.fresh = false
		p.declare(settled)
		return false
	}
	p.declare(active)
	p.slab.relax(p.sweeps)
	p.iteration++
	return true
}

// side is at which side of this rank another one is, if it is its neighbour.
func (p *part) side(rank int) (side int, ok bool) {
	switch rank {
	case p.rank - 1:
		return below, true
	case p.rank + 1:
		return above, true
	}
	return 0, false
}

// hear takes what another rank says, and reports whether that is news.
func (p *part) hear(from int, m message) (news bool) {
	if p.all.hear(m.All) {
		p.changes++
		news = true
	}
	side, ok := p.side(from)
	if !ok || m.Plane == nil || !m.Version.newer(p.beside[side]) || p.phase() >= final || p.slab.beside(side, m.Plane) != nil {
		return news
	}
	p.beside[side], p.fresh = m.Version, true
	return true
}

// replaced reports whether another attempt of this rank has been heard of.
func (p *part) replaced() bool { return p.all[p.rank].Version.Attempt > p.attempt }

// conclude makes the slab final if it is a part of the solution, and reports whether it has
// just become so.
func (p *part) conclude() bool {
	if p.phase() != settled || !p.all.agreed() {
		return false
	}
	p.declare(final)
	return true
}
