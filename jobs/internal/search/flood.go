package search

import (
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// ownFirst reports whether this node's own slots are to be asked for before others are:
// nobody is nearer, and if there are enough nobody else needs to know.
func (s *Search) ownFirst() bool { return s.own != answered && s.ownCounts(s.spec) }

// ownCounts reports whether nothing can be better for a job than what this node itself has.
func (s *distances) ownCounts(spec *jobs.Spec) bool {
	return simple(spec) || spec.Search.Adaptive() && !spec.JointChoice() && s.byBandwidth(spec)
}

// simple reports whether only the distance of each node by itself counts.
func simple(spec *jobs.Spec) bool {
	return spec.Search.Adaptive() && !spec.JointChoice() && (spec.Strategy == "" || placement.Strategy(spec.Strategy) == placement.Nearest)
}

// ownAnswer is what this node has said.
type ownAnswer struct {
	own    ownNode
	ownAt  time.Time // when it said something last
	queued bool      // it has the job in its queue, for want of room alone, as it said then
}

// ownNode is how far the question to this node itself is that comes before a flood, and before
// the offers of others are taken.
type ownNode int

const (
	notAsked ownNode = iota
	asked
	answered
)

// askOwn advertises the job to this node alone, which always answers.
func (s *Search) askOwn(now time.Time, d *Demand, n *Next) {
	if s.own == asked {
		return
	}
	s.own = asked
	n.Flood = jobs.Round{Number: s.number(), At: now, Wait: codec.Duration(KeepOffers), Wanted: d.all()}
}

// flood begins a round: the job is advertised once.
func (s *Search) flood(now time.Time, radius int, d *Demand, n *Next) {
	number := s.number()
	s.own, s.taught = notAsked, false
	s.reached = map[vicinity.ID]bool{}
	s.FloodedAt, s.overdue, s.fruitless = now, false, 0
	s.keeps = s.keepFor(d)
	s.measuredAt, s.refloodAt, s.releaseAt = time.Time{}, time.Time{}, now.Add(s.keeps)
	s.group = group{apart: s.group.apart}
	clear(s.hopes)
	s.resort()
	s.distances.renew()
	s.byLinks = s.byLinks || s.frontier.IsDirect() && len(s.frontier.Unanswered()) > 0
	if s.others = nil; simple(s.spec) && !s.byLinks {
		s.others = s.everybody()
	}
	if n.Direct = s.others != nil; n.Direct {
		radius = 1
	}
	wait := max(s.schedule.Wake().Sub(now), 0)
	n.Flood = jobs.Round{Number: number, Radius: radius, At: now, Wait: codec.Duration(wait), Wanted: d.all()}
	s.Rounds = append(s.Rounds, n.Flood)
	if len(s.Rounds) > maxRounds {
		s.Rounds = slices.Delete(s.Rounds, 1, 2) // the first one tells most
	}
	s.changed = true
}

// keepFor is how long the offers of a flood are kept: until those can have answered without whose
// room, as they have reported, the job would never get what it needs at once.
func (s *Search) keepFor(d *Demand) time.Duration {
	near, far, most := 0, time.Duration(0), jobs.MaxRanks
	if s.spec.Replicas > 1 { // a node gets no rank twice
		most = s.spec.Max
	}
	for id, c := range s.room {
		if rtt := s.far(id) * 5 / 4; rtt <= KeepOffers {
			near += min(c.workers, most)
		} else if c.workers > 0 && rtt <= MaxKeep {
			far = max(far, rtt)
		}
	}
	if near >= d.Least || s.roomFor < d.Least {
		return KeepOffers
	}
	return max(KeepOffers, far)
}

// Sent notes that the round's flood is on its way.
func (s *Search) Sent(now time.Time, round int, f flood.Flood) {
	if n := len(s.Rounds); n > 0 && s.Rounds[n-1].Number == round {
		s.Current, s.sent = f, round
		s.frontier.Begin(f, now)
		if s.others != nil {
			s.frontier.Direct(s.others)
		}
		s.countCost()
	}
}

// maxOvertaken is by how much the number of an answer may be smaller than that of one that
// came before it, if it was sent earlier: microseconds. What is more comes of a clock that
// was put back.
const maxOvertaken = 60_000_000

// Answered takes a node's offer or decline; granted is set if its offer was
// taken already. It reports whether next may have something to do because of
// it, and whether the offer is refused, so that the node must be told.
func (s *Search) Answered(now time.Time, from vicinity.Member, rtt time.Duration, a wire.Answer, granted bool) (act, refused bool) {
	if from.ID == s.id {
		s.ownAt = now
		s.ownQueue(&a)
	}
	if from.ID == s.id && s.own == asked {
		if s.own, act = answered, true; a.Workers == 0 {
			return act, false // it is asked once more with all others
		}
	}
	if len(s.Answers) >= jobs.MaxRanks || s.overtaken(from.ID, a.Number) {
		return act, false
	}
	s.changed = true
	if a.Recall {
		if o, stands := s.Offers[from.ID]; stands && o.key == a.Key {
			o.recalled = true
			s.Offers[from.ID] = o
			return true, false
		}
	}
	rtt, exact, past := s.distance(now, from.ID, rtt, a.Round)
	avoids := a.Workers > 0 && s.keepsAway(now, from.ID)
	_, known := s.Answers[from.ID]
	noted := !known || !s.over && (!avoids || s.avoid[from.ID].program) // why it avoids the node says more
	if noted {
		s.Answers[from.ID] = jobs.NodeAnswer{
			Node: from.ID, Name: from.Name, RTT: codec.Duration(rtt), Offered: a.Workers, Reason: a.Reason,
			At: now, Round: a.Round, Hops: a.Hops,
		}
	}
	s.count(now, from, rtt, a)
	s.Plan.note(now, from.ID, &a)
	s.hope(now, from.ID, a.Held)
	if granted {
		s.fate(from.ID, taken)
		return act, false // sent before the grant arrived; to give it back would take the grant back
	}
	if g := s.back[from.ID]; g.names(&a) {
		if noted {
			s.fate(from.ID, g.why)
		}
		return act, false
	}
	if avoids {
		s.refuse(from.ID, &a, noted)
		return act || s.onlyLastResort(), true
	}
	if a.Workers = s.takings[from.ID].left(now, &a); a.Workers == 0 {
		delete(s.Offers, from.ID)
		return true, false
	}
	if confirmed(&s.frontier, from.ID, rtt) {
		past = nil
	}
	s.Offers[from.ID] = offer{key: a.Key, workers: a.Workers, rtt: rtt, exact: exact, old: past, expires: now.Add(wire.HoldLease), recalled: a.Recall,
		hold: holdOf(&a)}
	return true, false
}

// refuse does not take an offer of a node that the job keeps away from, and notes why.
func (s *nodeAnswers) refuse(id vicinity.ID, a *wire.Answer, noted bool) {
	back := givenBack{key: a.Key, round: s.number() - 1}
	if node := s.avoid[id]; node.program {
		node.passed = node.passed || a.Round < s.number() // else this node is asked before the others are
		s.avoid[id] = node
		if noted {
			back.why = failedThere
			s.fate(id, failedThere)
		}
	}
	s.back[id] = back
	delete(s.Offers, id) // which may be the same one, from before
}

// overtaken reports whether an answer was sent before one that has come already.
func (s *nodeAnswers) overtaken(from vicinity.ID, number uint64) bool {
	if number == 0 {
		return false
	}
	if last := s.numbers[from]; number < last && last-number < maxOvertaken {
		return true
	}
	s.numbers[from] = number
	return false
}

// count counts a node's room, and its first answer to the latest round.
func (s *Search) count(now time.Time, member vicinity.Member, rtt time.Duration, a wire.Answer) {
	from, room := member.ID, capacityOf(member, &a)
	if a.Free > 0 {
		room.free = now.Add(time.Duration(a.Free) * time.Millisecond)
	}
	if was := s.room[from]; was.workers != room.workers || was.fits != room.fits || was.most != room.most || s.about[from] != member.Speeds {
		s.told++
	}
	s.about[from] = member.Speeds
	s.counted(s.room[from], -1)
	s.counted(room, 1)
	s.room[from] = room
	n := len(s.Rounds)
	if n == 0 || s.reached[from] || a.Round != s.Rounds[n-1].Number {
		return
	}
	s.reached[from] = true
	r := &s.Rounds[n-1]
	r.Reached++
	s.schedule.Heard(r.Reached)
	if a.Hops > 0 {
		switch {
		case rtt >= s.horizon:
		case a.Workers > 0:
			s.fruitless = 0
		default:
			s.fruitless++
		}
		s.frontier.Answered(now, flood.Reach{Node: from, RTT: rtt, Hops: a.Hops, Rim: a.Rim, Onward: a.Onward})
		s.countCost()
	}
	if a.Workers > 0 {
		r.Offers++
		r.Workers += a.Workers
	} else {
		r.Declines++
	}
}

// countCost notes what the latest flood has taken so far.
func (s *Search) countCost() {
	r, c := &s.Rounds[len(s.Rounds)-1], s.frontier.Cost()
	r.Messages, r.Duplicates, r.Bytes = c.Messages, max(0, c.Messages-c.Reached), c.Messages*s.Current.Size
	r.Hops, r.Extended = c.Hops, c.Extended
	s.changed = true
}

// extend carries the flood on beyond the nearest nodes of its rim that are
// nearer than the horizon, and sets when it can be carried on again.
func (s *Search) extend(now time.Time, d *Demand, n *Next) {
	short, horizon := d.Wanted-s.Offers.workers(), s.horizon
	if d.behind > 0 && short+d.behind > 0 { // what is too far for this job may do for those behind it
		horizon = anywhere
	}
	if !s.open(now, horizon) {
		if short > 0 {
			s.extendAt = s.shortAgain(now, n)
		}
		return
	}
	if short > 0 && s.frontier.Cost().Messages > 0 { // else nobody has been asked in this round
		soon, until := s.freeSoon(now)
		if soon >= short {
			s.extendAt = until
			return
		}
	}
	var rim []flood.Reach
	if s.frontier.IsDirect() {
		rim = s.frontier.Ask(now, horizon, d.all()-s.Offers[s.id].workers, func(id vicinity.ID) int { return s.Offers[id].workers })
	} else {
		rim = s.frontier.Next(now, horizon, short+d.behind, s.Measured)
	}
	if len(rim) > 0 {
		n.Extend = append(n.Extend, rim...)
		s.releaseAt = timers.Later(s.releaseAt, now.Add(s.keeps))
		s.countCost()
	}
	if s.open(now, horizon) {
		s.extendAt = s.frontier.Due(now, horizon)
	}
}

// shortAgain asks nodes again that have not answered a job which is short of workers, though
// nobody else is left to be asked, and returns when to look again; zero = only after an input.
func (s *Search) shortAgain(now time.Time, n *Next) time.Time {
	if due := s.frontier.Due(now, anywhere); now.Before(due) {
		return due
	}
	if s.horizon = anywhere; s.askAgain(now, n) {
		s.countCost()
		return s.extended(now)
	}
	return time.Time{}
}

// onlyLastResort reports whether nodes that were put off have offered, and nobody else is left who may.
func (s *Search) onlyLastResort() bool { return s.lastResort() && s.everybodyAnswered() }

// freeSoon returns how many workers nodes nearer than the rim will have room for, or may
// have: it would be a pity to go farther for their sake. That is by the walltimes of others
// before the timer of the schedule runs, none after that until the next flood; and what is held for
// others, which is waited for until a time, zero if there is none.
func (s *Search) freeSoon(now time.Time) (workers int, until time.Time) {
	nearest, ok := s.frontier.Nearest()
	if !ok {
		return 0, until
	}
	workers, until = s.hoped(now, max(2*nearest, nearest+time.Millisecond))
	if s.overdue {
		return workers, until
	}
	timer := s.schedule.Wake()
	for id, c := range s.room {
		if !c.free.IsZero() && !c.free.After(timer) && time.Duration(s.Answers[id].RTT) <= nearest {
			workers++
		}
	}
	return workers, until
}

// A node that is alone need not be asked again and again: its queue has what found no room, and
// offers when there is some. Thousands of jobs that wait there cost nothing, then.

// alone is how long a job waits at most before it asks again all the same. An advertisement that
// lasts for so long is kept beyond that, see wire.MaxLife.
const alone = 9 * time.Minute

// ownQueue notes whether this node has the job in its queue. If it has not, the job asks again as it
// would otherwise: what it was offered may not do, and then no more is offered by itself.
func (s *Search) ownQueue(a *wire.Answer) {
	s.queued = a.Workers == 0 && a.Capacity > 0 && a.Reason == wire.ReasonBusy
	if !s.queued {
		s.schedule.PutOff(time.Time{})
	}
}

// pauseFloods puts the next flood off, if it would reach nobody but this node, which need not be asked. A
// worker that ends takes its job out of the queue.
func (s *Search) pauseFloods(now time.Time, d *Demand) {
	if s.queued && !d.Placed && s.Members() == 1 {
		s.schedule.PutOff(now.Add(alone))
	}
}
