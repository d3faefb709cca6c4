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

// Silent lists the nodes that have never answered, though this node has asked them itself,
// if their distance is known.
func Silent(s *Search) (list []jobs.NodeAnswer) {
	for _, id := range s.frontier.Unanswered() {
		rtt := s.Measured(id)
		if _, known := s.Answers[id]; !known && rtt > 0 {
			list = append(list, jobs.NodeAnswer{Node: id, RTT: codec.Duration(rtt), Reason: reasonSilent})
		}
	}
	return list
}
