package jobs

import (
	"maps"
	"slices"
	"time"

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

func newNodeAnswers() *nodeAnswers {
	return &nodeAnswers{
		answers: map[vicinity.ID]NodeAnswer{},
		room:    map[vicinity.ID]capacity{},
		offers:  map[vicinity.ID]offer{},
		avoid:   map[vicinity.ID]time.Time{},
	}
}

// roundTrip is the distance of a node by its latest answer; 0 = not known.
func (s *nodeAnswers) roundTrip(id vicinity.ID) time.Duration {
	return max(0, time.Duration(s.answers[id].RTT))
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
