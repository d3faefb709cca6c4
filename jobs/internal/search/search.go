// Package search looks for the workers of one job: it counts offers, decides when there
// are enough and which to take, and when the flood goes further or begins again (when
// that is, package flood has from the paper). It calls nobody: Next answers one question,
// what is to be done now, until when nothing else is, and why.
package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/agenda"
	"zorilla/vicinity"
)

// Search has no goroutine, lock or clock: it is told of answers and of what the job
// wants.
type Search struct {
	*nodeAnswers
	distances
	Rnd *rand.Rand
	turn
	spec *jobs.Spec

	schedule flood.Search        // of floods
	frontier flood.Frontier      // of the latest flood, which is current
	others   []vicinity.Measured // all, if it asks them directly
	Current  flood.Flood
	sent     int                  // the number of its round
	reached  map[vicinity.ID]bool // in the last round

	group     group
	horizon   time.Duration // more workers are welcome if they are nearer; 0 = no more
	fruitless int           // nodes below the horizon that were reached since one of them offered
	overdue   bool          // the flood is extended even if busy nodes will have room soon

	FloodedAt  time.Time // of the latest flood
	measuredAt time.Time // of the latest requests to measure nodes since then; zero = none
	decideAt   time.Time // enough is offered; until then nearer nodes may answer. Zero = not enough
	extendAt   time.Time // the flood can be carried on; zero = it cannot
	refloodAt  time.Time // the nodes of the last round are asked again; zero = they are not

	patience
	ownAnswer
	over    bool // nobody is looked for
	changed bool // what a user sees
}

const (
	// anywhere is the horizon of a search that is short of workers.
	anywhere = time.Duration(math.MaxInt64)
	// KeepOffers is how long a job that is short of workers lets others'
	// slots be held after a flood, see patience; MaxKeep is well below their lease.
	KeepOffers = time.Second
	MaxKeep    = 3 * time.Second
	// MaxNearerWait bounds the wait for nearer offers.
	MaxNearerWait = 250 * time.Millisecond
	// MaxExtend bounds how long a job that has enough offers looks for nearer
	// ones; it is well below their lease.
	MaxExtend = time.Second
	// MaxFruitless bounds how many nodes that are near enough such a job
	// reaches without an offer: near nodes that are all busy must not cost a
	// flood of them all.
	MaxFruitless = 1024
	maxProbes    = 64
	// MaxHope bounds how long a job waits for room that another one may leave at a nearer
	// node than it would have to take.
	MaxHope = 600 * time.Millisecond
	// maxMeet bounds the near members to which a flood is carried that did not
	// reach them, at a time.
	maxMeet   = 64
	maxRounds = 64
	// giveBackPause bounds the pause of a job that gave all of its ranks back.
	giveBackPause = 500 * time.Millisecond
)

// patience is how long offers that are not enough are kept.
type patience struct {
	releaseAt time.Time     // they are given back; zero = there are none
	keeps     time.Duration // after a flood, and whatever is asked because of it
}

// turn is whose turn it is.
type turn struct {
	Call   jobs.ID   // under which nodes are asked for all jobs that take turns; "" = the job's own
	until  time.Time // the job does not look for workers before that, or its turn
	passed bool      // who has answered was not asked by this job
}

// Await has the job not look for workers until its turn comes, or a time.
func (t *turn) Await(until time.Time) { t.until = until }

// Waits reports whether the job's turn to search has not come.
func (t *turn) Waits() bool { return !t.until.IsZero() }

// Begins begins the job's turn, under the name of a call; "" = its own.
func (t *turn) Begins(call jobs.ID) { t.until, t.Call = time.Time{}, call }

// AskedItself reports whether those who have answered know the job.
func (t *turn) AskedItself() bool { return !t.passed && t.Call == "" }

// New makes a search that has not begun. Rnd is shared with the node's core.
func New(self vicinity.ID, rnd *rand.Rand) *Search {
	a := newNodeAnswers()
	return &Search{
		nodeAnswers: a, distances: newDistances(self, a.roundTrip),
		Rnd: rnd, spec: &jobs.Spec{},
		schedule: flood.NewSearch(flood.Schedule{}, 1),
		reached:  map[vicinity.ID]bool{},
		patience: patience{keeps: KeepOffers}, // of offers that come before the first flood
	}
}

// Begin takes the job's wishes. The spec is not changed by either side.
func (s *Search) Begin(spec *jobs.Spec) {
	s.spec = spec
	s.schedule = flood.NewSearch(spec.Search.Schedule(), spec.Least())
}

// Next says what is to be done to find the workers that are wanted: with the
// offers that stand, else by carrying the flood on, else by the next flood when
// it is due. The search takes it that all of it is done.
func (s *Search) Next(now time.Time, d Demand) (n Next) {
	s.extendAt = time.Time{}
	s.expire(now)
	if s.Waits() && d.Wanted > 0 && now.Before(s.until) {
		n.Outlook = s.Outlook(d)
		return n
	}
	s.until = time.Time{}
	if s.over = d.Wanted == 0; !s.over {
		s.horizon = s.choose(now, &d, &n)
	}
	switch {
	case n.Err != nil:
	case d.Wanted == 0 && s.Call != "": // others may go on with what is left
		n.Over = true
	case d.Wanted == 0:
		n.Release, n.Over = s.GiveBack(NotNeeded), true
	case !s.decideAt.IsZero(): // no flood while a choice is being made
		s.extend(now, &d, &n)
	default:
		n.Release = append(n.Release, s.recalled(now)...)
		s.reachOut(now, &d, &n)
		if s.onlyLastResort() {
			s.refloodAt = now
		}
		if short := d.Wanted - s.Offers.workers(); short > 0 && len(s.hopes) > 0 {
			if ready := s.frontier.Ready(); now.Before(ready) { // those that were reached may offer
				s.extendAt = agenda.Earlier(s.extendAt, ready)
			} else {
				n.Recall = s.recall(now, slices.Repeat([]time.Duration{anywhere}, short))
			}
		}
	}
	n.Outlook = s.Outlook(d)
	return n
}

// Outlook says what the search waits for.
func (s *Search) Outlook(d Demand) Outlook {
	o := Outlook{
		Flood: agenda.Earlier(s.schedule.Wake(), s.refloodAt),
		Why: Why{Wanted: d.Wanted, least: d.Least, asked: len(s.Answers) > 0,
			room: s.roomFor, unheard: s.unheard(), apart: s.group.apart, never: s.never(&d)},
	}
	switch {
	case d.Wanted == 0:
	case s.Waits():
		o.Until, o.Flood = s.until, s.until
	case !s.decideAt.IsZero():
		o.Until = agenda.Earlier(s.decideAt, s.extendAt)
	case s.own == asked: // until it answers, which it does
	default:
		o.Until = agenda.Earlier(agenda.Earlier(o.Flood, s.extendAt), s.releaseAt)
	}
	return o
}

// reachOut looks for more offers than there are.
func (s *Search) reachOut(now time.Time, d *Demand, n *Next) {
	if radius, due := s.schedule.Next(now); due {
		if s.ownFirst() {
			s.askOwn(now, d, n)
			return
		}
		s.schedule.Flooded(now)
		s.rest(now, d)
		if s.spec.Search.Adaptive() {
			s.overdue = true
			if s.open(now, s.horizon) {
				s.extend(now, d, n) // not all of it again
				return
			}
			radius = s.schedule.First()
		}
		s.flood(now, radius, d, n)
		return
	}
	if len(s.Rounds) > 0 && !s.refloodAt.IsZero() && !now.Before(s.refloodAt) {
		s.flood(now, s.Rounds[len(s.Rounds)-1].Radius, d, n)
		return
	}
	if !s.releaseAt.IsZero() && !now.Before(s.releaseAt) {
		s.releaseAt = time.Time{}
		n.Release = append(n.Release, s.GiveBack(notEnough)...)
	}
	s.extend(now, d, n)
}

// FollowUp says what is to be done about an offer that came from a node's queue
// and is not enough by itself: if the nodes that have answered could do it
// together, they are asked again soon; else their slots are not blocked.
func (s *Search) FollowUp(now time.Time, d Demand, from vicinity.ID) (n Next) {
	_, stands := s.Offers[from]
	switch {
	case !stands || d.Wanted == 0:
	case s.roomFor < d.Least && !s.releaseAt.IsZero(): // others have not had time to answer
	case s.roomFor < d.Least:
		n.Release = s.GiveBack(notEnough)
	default:
		if s.refloodAt.IsZero() {
			jitter := time.Duration(s.Rnd.Int64N(int64(100 * time.Millisecond)))
			s.refloodAt = agenda.Later(now, s.FloodedAt.Add(time.Second)).Add(jitter)
		}
		s.releaseAt = agenda.Later(s.releaseAt, s.refloodAt.Add(s.keeps))
	}
	n.Outlook = s.Outlook(d)
	return n
}

// Again looks for workers in the place of lost ones.
func (s *Search) Again(now time.Time) { s.schedule.Reset(now) }

// BackOff looks for all workers again after a pause with jitter, so that two
// jobs that were in each other's way do not meet again.
func (s *Search) BackOff(now time.Time) {
	s.schedule.Reset(now.Add(time.Duration(s.Rnd.Int64N(int64(giveBackPause)))))
}

// Others reports whether another node may run the job's workers, as far as is known.
func (s *Search) Others(than vicinity.ID) bool {
	if s.Members() > len(s.room) { // not all of them have answered
		return true
	}
	for id, c := range s.room {
		if id != than && c.workers > 0 {
			return true
		}
	}
	return false
}

// News reports whether what a user sees has changed since the last call.
func (s *Search) News() bool {
	changed := s.changed
	s.changed = false
	return changed
}
