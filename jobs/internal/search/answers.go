package search

import (
	"maps"
	"slices"
	"time"

	"zorilla/jobs"
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
	Answers map[vicinity.ID]jobs.NodeAnswer // the latest of every node
	room    map[vicinity.ID]capacity
	roomFor int                       // workers: all of room together
	Offers  map[vicinity.ID]offer     // those that stand
	avoid   map[vicinity.ID]time.Time // nodes that could not do their work, until when
}

func newNodeAnswers() *nodeAnswers {
	return &nodeAnswers{
		Answers: map[vicinity.ID]jobs.NodeAnswer{},
		room:    map[vicinity.ID]capacity{},
		Offers:  map[vicinity.ID]offer{},
		avoid:   map[vicinity.ID]time.Time{},
	}
}

// roundTrip is the distance of a node by its latest answer; 0 = not known.
func (s *nodeAnswers) roundTrip(id vicinity.ID) time.Duration {
	return max(0, time.Duration(s.Answers[id].RTT))
}

// expire drops the offers that have ended.
func (s *nodeAnswers) expire(now time.Time) {
	maps.DeleteFunc(s.Offers, func(_ vicinity.ID, o offer) bool { return !now.Before(o.expires) })
}

// GiveBack lets go of the offers that stand, and lists their nodes.
func (s *nodeAnswers) GiveBack() []vicinity.ID {
	nodes := slices.Sorted(maps.Keys(s.Offers))
	clear(s.Offers)
	return nodes
}

// Close drops all offers, and lists the nodes that have answered.
func (s *nodeAnswers) Close() []vicinity.ID {
	clear(s.Offers)
	return slices.Sorted(maps.Keys(s.Answers))
}

// Gone drops the offer of a node that the overlay has declared dead.
func (s *nodeAnswers) Gone(id vicinity.ID) { delete(s.Offers, id) }

// Shun keeps the job away from a node for a while.
func (s *nodeAnswers) Shun(now time.Time, id vicinity.ID) { s.avoid[id] = now.Add(AvoidFor) }

// Forgive ends what shun began.
func (s *nodeAnswers) Forgive(id vicinity.ID) { delete(s.avoid, id) }

// FailedAt keeps the job away from a node that could not run what it was
// granted, and takes the reason for its latest answer.
func (s *nodeAnswers) FailedAt(now time.Time, id vicinity.ID, why string) {
	s.Shun(now, id)
	if a, ok := s.Answers[id]; ok {
		a.Offered, a.Reason, a.At = 0, why, now
		s.Answers[id] = a
	}
}

// Tally sums up what nodes have answered.
func (s *nodeAnswers) Tally() jobs.Tally {
	t := jobs.Tally{Asked: len(s.Answers), Declined: map[string]int{}}
	for _, a := range s.Answers {
		if a.Reason == "" {
			t.Offered++
			continue
		}
		t.Declined[a.Reason]++
	}
	if len(t.Declined) > jobs.MaxReasons {
		for _, r := range t.Reasons()[jobs.MaxReasons-1:] {
			t.Declined[jobs.OtherReasons] += t.Declined[r]
			delete(t.Declined, r)
		}
	}
	return t
}
