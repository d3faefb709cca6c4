package search

import (
	"zorilla/internal/codec"
	"zorilla/jobs"
)

// reasonSilent is that of nodes which were asked.
const reasonSilent = "has not answered"

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
