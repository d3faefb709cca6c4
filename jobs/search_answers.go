package jobs

import (
	"maps"
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// offer is a node's leased hold.
type offer struct {
	key     uint64
	workers int
	rtt     time.Duration
	exact   bool // rtt is measured, else an upper bound
	probed  bool // rtt is being measured
	expires time.Time
}

// capacity is what a node could do for the job beyond what it offers.
type capacity struct {
	workers int       // that it could ever run
	free    time.Time // when there will be room for one; zero = not known
}

// nodeAnswers is what nodes have answered.
type nodeAnswers struct {
	answers map[vicinity.ID]NodeAnswer // the latest of every node
	room    map[vicinity.ID]capacity
	roomFor int                       // workers: all of room together
	offers  map[vicinity.ID]offer     // those that stand
	avoid   map[vicinity.ID]time.Time // nodes that could not do their work, until when
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

// far is the round trip from the origin as far as it is known.
func (s *search) far(id vicinity.ID) time.Duration {
	if rtt := s.measured(id); rtt > 0 {
		return rtt
	}
	if a, ok := s.answers[id]; ok && a.RTT > 0 {
		return time.Duration(a.RTT)
	}
	return maxApart
}

// expire drops the offers that have ended.
func (s *nodeAnswers) expire(now time.Time) {
	maps.DeleteFunc(s.offers, func(_ vicinity.ID, o offer) bool { return !now.Before(o.expires) })
}

// giveBack lets go of the offers that stand, and lists their nodes.
func (s *nodeAnswers) giveBack() []vicinity.ID {
	nodes := slices.Sorted(maps.Keys(s.offers))
	clear(s.offers)
	return nodes
}

// close drops all offers, and lists the nodes that have answered.
func (s *nodeAnswers) close() []vicinity.ID {
	clear(s.offers)
	return slices.Sorted(maps.Keys(s.answers))
}

// gone drops the offer of a node that the overlay has declared dead.
func (s *nodeAnswers) gone(id vicinity.ID) { delete(s.offers, id) }

// shun keeps the job away from a node for a while.
func (s *nodeAnswers) shun(now time.Time, id vicinity.ID) { s.avoid[id] = now.Add(avoidFor) }

// forgive ends what shun began.
func (s *nodeAnswers) forgive(id vicinity.ID) { delete(s.avoid, id) }

// failedAt keeps the job away from a node that could not run what it was
// granted, and takes the reason for its latest answer.
func (s *nodeAnswers) failedAt(now time.Time, id vicinity.ID, why string) {
	s.shun(now, id)
	if a, ok := s.answers[id]; ok {
		a.Offered, a.Reason, a.At = 0, why, now
		s.answers[id] = a
	}
}

// tally sums up what nodes have answered.
func (s *nodeAnswers) tally() Tally {
	t := Tally{Asked: len(s.answers), Declined: map[string]int{}}
	for _, a := range s.answers {
		if a.Reason == "" {
			t.Offered++
			continue
		}
		t.Declined[a.Reason]++
	}
	if len(t.Declined) > maxReasons {
		for _, r := range t.reasons()[maxReasons-1:] {
			t.Declined[otherReasons] += t.Declined[r]
			delete(t.Declined, r)
		}
	}
	return t
}
