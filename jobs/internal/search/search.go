// Package search looks for the workers of a job, or of a batch of jobs that want the same: it
// counts offers, decides when there are enough and which to take, and when the flood goes
// further or begins again (when that is, package flood has from the paper). It calls nobody:
// Next answers one question, what is to be done now, until when nothing else is, and why.
package search

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/timers"
	"zorilla/vicinity"
)

// Search has no goroutine, lock or clock: its methods take answers, and what jobs want.
type Search struct {
	*nodeAnswers
	distances
	floods
	Rnd  *rand.Rand
	spec *jobs.Spec

	Shared bool // several jobs have it: what one of them leaves of an offer stands for the next
	taught bool // the answers are those that a shared search got, see Learn

	group      group
	beside     beside
	measuredAt time.Time // of the latest requests to measure nodes since then; zero = none
	decideAt   time.Time // enough is offered; until then nearer nodes may answer. Zero = not enough
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
	maxProbes     = 64
	// MaxHope bounds how long a job waits for room that another one may leave at a nearer
	// node than it would have to take.
	MaxHope   = 600 * time.Millisecond
	maxRounds = 64
	// maxVain bounds patience.pause: to 8 s.
	maxVain = 3
	// giveBackPause bounds the pause of a job that gave all of its ranks back.
	giveBackPause = 500 * time.Millisecond
)

// patience is how long offers that are not enough are kept.
type patience struct {
	releaseAt time.Time     // they are given back; zero = there are none
	keeps     time.Duration // after a flood, and whatever is asked because of it
	vain      int           // floods because of what a queue offered, since workers were found
}

// pause is how long a flood because of what a queue offers comes after the one before. It doubles
// with each in vain: nodes that offer by turns, to jobs that are in each other's way, would cause one a second.
func (p *patience) pause() time.Duration { return time.Second << min(p.vain, maxVain) }

// New makes a search that has not begun. Rnd is shared with the node's core.
func New(self vicinity.ID, rnd *rand.Rand) *Search {
	a := newNodeAnswers()
	known := newDistances(self, a.roundTrip)
	return &Search{
		nodeAnswers: a, distances: known,
		floods: floods{around: known.Surroundings, schedule: flood.NewSearch(flood.Schedule{}, 1), reached: map[vicinity.ID]bool{}},
		Rnd:    rnd, spec: &jobs.Spec{},
		patience: patience{keeps: KeepOffers}, // of offers that come before the first flood
	}
}

// Begin takes the job's wishes. The spec is not changed by either side.
func (s *Search) Begin(spec *jobs.Spec) {
	s.spec, s.adaptive = spec, spec.Search.Adaptive()
	s.schedule = flood.NewSearch(spec.Search.Schedule(), spec.Least())
}

// Next says what is to be done to find the workers that are wanted, for one job after the other: with the
// offers that stand, else by carrying the flood on, else by the next flood when it is due. Of several demands
// each wants at least one worker. The search takes it that all of it is done.
func (s *Search) Next(now time.Time, list ...Demand) (n Next) {
	s.extendAt = time.Time{}
	s.expire(now)
	list = demands(list)
	n.Release = s.leave(list)
	if s.over = len(list) == 0; !s.over {
		n.Spares = list[0].Spares != nil
		if lost := list[0].Lost; len(lost) > 0 && s.adaptive && s.sent > 0 && s.sent == s.number()-1 {
			known := s.known(now, s.id, s.Near(anywhere, maxDirect))
			for _, id := range list[0].To {
				known[id] = s.far(id)
			}
			n.Extend = s.frontier.Besides(now, s.beside.begin(now, s.sent, &list[0], known, s.Estimate))
		}
		list = s.allocate(now, list, &n)
	}
	var d Demand
	if len(list) > 0 {
		d = list[0]
	}
	switch {
	case n.Err != nil:
	case d.Wanted == 0:
		n.Release, n.Over = append(n.Release, s.GiveBack(NotNeeded)...), true
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
				s.extendAt = timers.Earlier(s.extendAt, ready)
			} else {
				n.Recall = s.recall(now, slices.Repeat([]time.Duration{anywhere}, short))
			}
		}
	}
	n.Outlook = s.Outlook(d)
	return n
}

// demands returns those that want something, each with what is wanted after it.
func demands(list []Demand) []Demand {
	if len(list) == 1 && list[0].Wanted == 0 {
		return nil
	}
	list = slices.Clone(list)
	behind := 0
	for i := range slices.Backward(list) {
		list[i].behind = behind
		behind += list[i].Wanted
	}
	return list
}

// Outlook says what the search waits for.
func (s *Search) Outlook(d Demand) Outlook {
	o := Outlook{
		Flood: timers.Earlier(s.schedule.Wake(), s.refloodAt),
		Why: Why{Wanted: d.Wanted, Spares: d.Spares != nil, least: d.Least, asked: len(s.Answers) > 0,
			room: s.roomFor, unheard: s.unheard(), apart: s.group.apart, never: s.never(&d)},
	}
	switch {
	case d.Wanted == 0:
	case !s.decideAt.IsZero():
		o.Until = timers.Earlier(s.decideAt, s.extendAt)
	case s.own == asked: // until it answers, which it does
	default:
		o.Until = timers.Earlier(timers.Earlier(o.Flood, s.extendAt), s.releaseAt)
	}
	return o
}

// reachOut looks for more offers than there are.
func (s *Search) reachOut(now time.Time, d *Demand, n *Next) {
	if s.Plan.due {
		s.Plan.begin(now)
		s.schedule.Flooded(now)
		s.flood(now, s.schedule.First(), d, n)
		n.Plan, s.overdue, s.horizon = true, true, anywhere
		return
	}
	if radius, due := s.schedule.Next(now); due {
		if s.ownFirst() && len(d.Lost) == 0 {
			s.askOwn(now, d, n)
			return
		}
		s.schedule.Flooded(now)
		s.pauseFloods(now, d)
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
		s.vain++
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
	case s.lacks(&d) && !s.releaseAt.IsZero(): // others have not had time to answer
	case s.lacks(&d):
		n.Release = s.GiveBack(notEnough)
	default:
		if s.refloodAt.IsZero() {
			jitter := time.Duration(s.Rnd.Int64N(int64(100 * time.Millisecond)))
			s.refloodAt = timers.Later(now, s.FloodedAt.Add(s.pause())).Add(jitter)
		}
		s.releaseAt = timers.Later(s.releaseAt, s.refloodAt.Add(s.keeps))
	}
	n.Outlook = s.Outlook(d)
	return n
}

// lacks reports whether the nodes that have answered could not do what is wanted if they were idle.
func (s *Search) lacks(d *Demand) bool {
	s.judge(d)
	return s.roomFor < d.Least || s.infeasible != ""
}

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

// Shareable reports whether jobs with this spec may share a search: nothing but the distance of each
// node by itself counts, and how many workers they get is given. What a node offers several jobs may be more than
// one for each.
func Shareable(spec *jobs.Spec) bool { return simple(spec) && spec.Rigid() && !spec.OnePerNode }

// Short reports whether all who could be asked have answered, and do not offer what is wanted.
func (s *Search) Short(now time.Time) bool {
	n, ready := len(s.Rounds), s.frontier.Ready()
	return n > 0 && s.sent == s.Rounds[n-1].Number && s.decideAt.IsZero() && !s.open(now, anywhere) &&
		(s.frontier.IsDirect() || !ready.IsZero() && !now.Before(ready))
}

// Learn takes over what a shared search was answered, for those who ask; got is what it has found for
// the job.
func (s *Search) Learn(from *Search, got []Choice) {
	s.Answers, s.Rounds = maps.Clone(from.Answers), slices.Clone(from.Rounds)
	s.taught, s.changed = true, true
	for _, c := range got {
		s.fate(c.Node, taken)
	}
}

// Asked reports whether the nodes that have answered know the job itself.
func (s *Search) Asked() bool { return !s.taught }
