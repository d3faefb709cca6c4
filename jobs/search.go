package jobs

import (
	"math"
	"math/rand/v2"
	"time"

	"zorilla/flood"
	"zorilla/vicinity"
)

// search looks for the workers of one job. It has no goroutine, lock or clock,
// and calls nobody: it is told of answers and of what the job wants, and next
// says what is to be done about it, until when nothing else is, and why.
type search struct {
	*nodeAnswers
	distances
	rnd  *rand.Rand
	spec *Spec

	schedule flood.Search   // of floods
	frontier flood.Frontier // of the latest flood, which is current
	current  flood.Flood
	rounds   []Round
	reached  map[vicinity.ID]bool // in the last round

	group     group
	horizon   time.Duration // more workers are welcome if they are nearer; 0 = no more
	fruitless int           // nodes below the horizon that were reached since one of them offered
	overdue   bool          // the flood is extended even if busy nodes will have room soon

	floodedAt  time.Time // of the latest flood
	measuredAt time.Time // of the latest requests to measure nodes since then; zero = none
	decideAt   time.Time // enough is offered; until then nearer nodes may answer. Zero = not enough
	extendAt   time.Time // the flood can be carried on; zero = it cannot
	refloodAt  time.Time // the nodes of the last round are asked again; zero = they are not
	releaseAt  time.Time // offers that are not enough are given back; zero = there are none

	changed bool // what a user sees
}

const (
	// anywhere is the horizon of a search that is short of workers.
	anywhere = time.Duration(math.MaxInt64)
	// keepOffers is how long a job that is short of workers lets others'
	// slots be held after a flood.
	keepOffers = time.Second
	// maxNearerWait bounds the wait for nearer offers.
	maxNearerWait = 250 * time.Millisecond
	// maxExtend bounds how long a job that has enough offers looks for nearer
	// ones; it is well below their lease.
	maxExtend = time.Second
	// maxFruitless bounds how many nodes that are near enough such a job
	// reaches without an offer: near nodes that are all busy must not cost a
	// flood of them all.
	maxFruitless = 1024
	maxProbes    = 64
	// maxMeet bounds the near members to which a flood is carried that did not
	// reach them, at a time.
	maxMeet   = 64
	maxRounds = 64
	// avoidFor keeps a job away from a node that could not prepare it.
	avoidFor = 30 * time.Second
	// giveBackPause bounds the pause of a job that gave all of its ranks back.
	giveBackPause = 500 * time.Millisecond
)

func newSearch(self vicinity.ID, rnd *rand.Rand, schedule flood.Schedule) *search {
	a := newNodeAnswers()
	return &search{
		nodeAnswers: a, distances: newDistances(self, a.roundTrip),
		rnd: rnd, spec: &Spec{},
		schedule: flood.NewSearch(schedule, 1),
		reached:  map[vicinity.ID]bool{},
	}
}

// begin takes the job's wishes. The spec is not changed by either side.
func (s *search) begin(spec *Spec, schedule flood.Schedule) {
	s.spec = spec
	s.schedule = flood.NewSearch(spec.Search.schedule(schedule), spec.least())
}

// next says what is to be done to find the workers that are wanted: with the
// offers that stand, else by carrying the flood on, else by the next flood when
// it is due. The search takes it that all of it is done.
func (s *search) next(now time.Time, d demand) (n next) {
	s.extendAt = time.Time{}
	s.expire(now)
	if d.wanted > 0 {
		s.horizon = s.choose(now, &d, &n)
	}
	switch {
	case n.err != nil:
	case d.wanted == 0:
		n.release, n.over = s.giveBack(), true
	case !s.decideAt.IsZero(): // no flood while a choice is being made
		s.extend(now, &d, &n)
	default:
		s.reachOut(now, &d, &n)
	}
	n.outlook = s.outlook(d)
	return n
}

// outlook says what the search waits for.
func (s *search) outlook(d demand) outlook {
	o := outlook{
		flood: earlier(s.schedule.Wake(), s.refloodAt),
		why:   why{wanted: d.wanted, least: d.least, asked: len(s.answers) > 0, room: s.roomFor, apart: s.group.apart},
	}
	switch {
	case d.wanted == 0:
	case !s.decideAt.IsZero():
		o.until = earlier(s.decideAt, s.extendAt)
	default:
		o.until = earlier(earlier(o.flood, s.extendAt), s.releaseAt)
	}
	return o
}

// reachOut looks for more offers than there are.
func (s *search) reachOut(now time.Time, d *demand, n *next) {
	if radius, due := s.schedule.Next(now); due {
		s.schedule.Flooded(now)
		if s.spec.Search.adaptive() {
			s.overdue = true
			if s.open(now) {
				s.extend(now, d, n) // not all of it again
				return
			}
			radius = s.schedule.First()
		}
		s.flood(now, radius, d, n)
		return
	}
	if !s.refloodAt.IsZero() && !now.Before(s.refloodAt) {
		s.flood(now, s.rounds[len(s.rounds)-1].Radius, d, n)
		return
	}
	if !s.releaseAt.IsZero() && !now.Before(s.releaseAt) {
		s.releaseAt = time.Time{}
		n.release = s.giveBack()
	}
	s.extend(now, d, n)
}

// followUp says what is to be done about an offer that came from a node's queue
// and is not enough by itself: if the nodes that have answered could do it
// together, they are asked again soon; else their slots are not blocked.
func (s *search) followUp(now time.Time, d demand, from vicinity.ID) (n next) {
	_, stands := s.offers[from]
	switch {
	case !stands || d.wanted == 0:
	case s.roomFor < d.least:
		n.release = s.giveBack()
	default:
		if s.refloodAt.IsZero() {
			jitter := time.Duration(s.rnd.Int64N(int64(100 * time.Millisecond)))
			s.refloodAt = later(now, s.floodedAt.Add(time.Second)).Add(jitter)
		}
		s.releaseAt = later(s.releaseAt, s.refloodAt.Add(keepOffers))
	}
	n.outlook = s.outlook(d)
	return n
}

// again looks for workers in the place of lost ones.
func (s *search) again(now time.Time) { s.schedule.Reset(now) }

// backOff looks for all workers again after a pause with jitter, so that two
// jobs that were in each other's way do not meet again.
func (s *search) backOff(now time.Time) {
	s.schedule.Reset(now.Add(time.Duration(s.rnd.Int64N(int64(giveBackPause)))))
}

// news reports whether what a user sees has changed since the last call.
func (s *search) news() bool {
	changed := s.changed
	s.changed = false
	return changed
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
