package jobs

import (
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// flood begins a round: the job is advertised once.
func (s *search) flood(now time.Time, radius int, d *demand, n *next) {
	number := 1
	if last := len(s.rounds) - 1; last >= 0 {
		number = s.rounds[last].Number + 1
	}
	s.reached = map[vicinity.ID]bool{}
	s.floodedAt, s.overdue, s.fruitless = now, false, 0
	s.measuredAt, s.refloodAt, s.releaseAt = time.Time{}, time.Time{}, now.Add(keepOffers)
	s.group = group{apart: s.group.apart}
	s.distances.renew()
	wait := max(s.schedule.Wake().Sub(now), 0)
	n.flood = Round{Number: number, Radius: radius, At: now, Wait: codec.Duration(wait), Wanted: d.wanted}
	s.rounds = append(s.rounds, n.flood)
	if len(s.rounds) > maxRounds {
		s.rounds = slices.Delete(s.rounds, 1, 2) // the first one tells most
	}
	s.changed = true
}

// sent tells that the round's flood is on its way.
func (s *search) sent(now time.Time, round int, f flood.Flood) {
	if n := len(s.rounds); n > 0 && s.rounds[n-1].Number == round {
		s.current = f
		s.frontier.Begin(f, now)
		s.countCost()
	}
}

// answered takes a node's offer or decline; granted is set if its offer was
// taken already. It reports whether next may have something to do because of
// it, and whether the offer is refused, so that the node must be told.
func (s *search) answered(now time.Time, from vicinity.Member, rtt time.Duration, a Answer, granted bool) (act, refused bool) {
	if len(s.answers) >= MaxRanks {
		return false, false
	}
	s.changed = true
	exact := rtt > 0
	if !exact {
		rtt = now.Sub(s.floodedAt) // no larger than this
	}
	s.answers[from.ID] = NodeAnswer{
		Node: from.ID, Name: from.Name, RTT: codec.Duration(rtt), Offered: a.Workers, Reason: a.Reason,
		At: now, Round: a.Round, Hops: a.Hops,
	}
	room := capacity{workers: a.Capacity}
	if a.Free > 0 {
		room.free = now.Add(time.Duration(a.Free) * time.Millisecond)
	}
	s.roomFor += room.workers - s.room[from.ID].workers
	s.room[from.ID] = room
	s.count(now, from.ID, rtt, a)
	if granted {
		return false, false // sent before the grant arrived; to give it back would take the grant back
	}
	if a.Workers == 0 {
		delete(s.offers, from.ID)
		return true, false
	}
	if until, ok := s.avoid[from.ID]; ok && now.Before(until) {
		return false, true
	}
	s.offers[from.ID] = offer{key: a.Key, workers: a.Workers, rtt: rtt, exact: exact, expires: now.Add(holdLease)}
	return true, false
}

// count counts the first answer of a node to the latest round.
func (s *search) count(now time.Time, from vicinity.ID, rtt time.Duration, a Answer) {
	n := len(s.rounds)
	if n == 0 || s.reached[from] || a.Round != s.rounds[n-1].Number {
		return
	}
	s.reached[from] = true
	r := &s.rounds[n-1]
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
func (s *search) countCost() {
	r, c := &s.rounds[len(s.rounds)-1], s.frontier.Cost()
	r.Messages, r.Duplicates, r.Bytes = c.Messages, max(0, c.Messages-c.Reached), c.Messages*s.current.Size
	r.Hops, r.Extended = c.Hops, c.Extended
	s.changed = true
}

// extend carries the flood on beyond the nearest nodes of its rim that are
// nearer than the horizon, and sets when it can be carried on again.
func (s *search) extend(now time.Time, d *demand, n *next) {
	if !s.open(now) {
		return
	}
	short := d.wanted
	for _, o := range s.offers {
		short -= o.workers
	}
	if short > 0 && s.freeSoon() >= short {
		return
	}
	if rim := s.frontier.Next(now, s.horizon, short, s.measured); len(rim) > 0 {
		n.extend = rim
		s.releaseAt = later(s.releaseAt, now.Add(keepOffers))
		s.countCost()
	}
	if s.open(now) {
		s.extendAt = s.frontier.Ready()
	}
}

// open reports whether the flood can be extended to nodes that have not been
// reached, beyond nodes nearer than the horizon.
func (s *search) open(now time.Time) bool {
	return s.spec.Search.adaptive() && s.frontier.Open(now, s.horizon) && !s.everybodyAnswered()
}

// everybodyAnswered reports whether all members have answered the latest flood.
func (s *search) everybodyAnswered() bool { return s.frontier.Cost().Reached+1 >= s.members() }

// mayExtend reports whether somebody below the horizon may still be found. A
// search that has enough offers does not go on for ever.
func (s *search) mayExtend(now time.Time) bool {
	return s.open(now) && s.fruitless < maxFruitless && now.Before(s.floodedAt.Add(maxExtend))
}

// extended returns when a flood that may be extended has brought more: not at
// once, since it may have to wait for nodes that are free soon.
func (s *search) extended(now time.Time) time.Time {
	return later(now.Add(time.Millisecond), s.frontier.Ready())
}

// meet has the flood carried to members that are known to be nearer than the
// horizon, though it found no way to them: all links of a small site may lead to
// nodes farther away than that.
func (s *search) meet() {
	if !s.spec.Search.adaptive() || s.horizon <= 0 {
		return
	}
	for _, m := range s.near(s.horizon, maxMeet) {
		s.frontier.Meet(m.ID, m.RTT)
	}
}

// freeSoon returns how many busy nodes nearer than the rim will have room before
// the timer of the schedule: it would be a pity to go farther for their sake.
// Once the timer has run it is 0 until the next flood.
func (s *search) freeSoon() (nodes int) {
	nearest, ok := s.frontier.Nearest()
	if s.overdue || !ok {
		return 0
	}
	timer := s.schedule.Wake()
	for id, c := range s.room {
		if !c.free.IsZero() && !c.free.After(timer) && time.Duration(s.answers[id].RTT) <= nearest {
			nodes++
		}
	}
	return nodes
}
