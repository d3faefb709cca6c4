package search

import (
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/units"
	"zorilla/jobs"
)

// reasonSilent is that of nodes which were asked.
const reasonSilent = "has not answered"

// passed notes how long slots were held for others at the least, where they are not waited for
// any longer.
func passed(now time.Time, s *nodeAnswers) {
	for id, h := range s.hopes {
		if held, known := units.Millis(now.Sub(h.since)); known && s.Answers[id].Fate == heldForOther {
			s.fate(id, heldForOther+", for at least "+held+" ms")
		}
	}
}

// heardBy is the flood by which each member of a small network has answered that gets messages.
const heardBy = 3

// unheard counts the members that have never answered, once they should have: where there are so
// few that each is asked.
func (s *Search) unheard() int {
	if s.number() <= heardBy {
		return 0
	}
	members := s.Members()
	if members > maxDirect {
		return 0
	}
	return max(members-len(s.room), 0)
}

// Silent lists the nodes that have never answered, though this node has asked them itself,
// if their distance is known.
func (s *Search) Silent() (list []jobs.NodeAnswer) {
	for _, id := range s.frontier.Unanswered() {
		rtt := s.Measured(id)
		if _, known := s.Answers[id]; !known && rtt > 0 {
			list = append(list, jobs.NodeAnswer{Node: id, RTT: codec.Duration(rtt), Reason: reasonSilent})
		}
	}
	return list
}
