package search

import (
	"math"
	"slices"

	"zorilla/jobs"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// The choice for jobs to which it matters how soon their input is at a node (--strategy
// bandwidth): as by distance, but by that time, and among more nodes than the nearest.

// byBandwidth reports whether it counts how long the job's input takes to a node.
func (s *distances) byBandwidth(spec *jobs.Spec) bool {
	return placement.Strategy(spec.Strategy) == placement.Bandwidth && s.Input > 0
}

// timed returns the offers by what is to be small of them.
func (s *distances) timed(spec *jobs.Spec, offers []placement.Offer) []placement.Offer {
	if !s.byBandwidth(spec) {
		return offers
	}
	return placement.Timed(offers, s.Input, s.speeds(offers))
}

func (s *distances) speeds(offers []placement.Offer) []placement.Speed {
	list := make([]placement.Speed, len(offers))
	for i, o := range offers {
		if vicinity.ID(o.Node) == s.id { // nothing has to come here
			list[i].Rate = math.Inf(1)
			continue
		}
		v := s.Speed(vicinity.ID(o.Node))
		list[i] = placement.Speed{Rate: v.Rate, Least: v.Least}
	}
	return list
}

// compareTimes is how many times as many nodes as are taken have to offer where a farther one may
// be the better one, compareLeast how many at least. Of the nearest manyNear is looked whether any
// speed is known.
const compareTimes, compareLeast, manyNear = 4, 16, 64

// comparing reports whether nodes that have not offered yet may have the job's input sooner
// than those that ranks were assigned to: not if nothing is known of speeds, and not sooner
// than this node, which has it.
func (s *Search) comparing(assign []int, offers []placement.Offer) bool {
	if !s.byBandwidth(s.spec) || s.everybodyAnswered() {
		return false
	}
	nodes, others := map[int]bool{}, false
	for _, i := range assign {
		nodes[i] = true
		others = others || vicinity.ID(offers[i].Node) != s.id
	}
	known := func(m vicinity.Measured) bool { return s.Speed(m.ID).Rate > 0 }
	return others && len(s.Offers) < max(compareLeast, compareTimes*len(nodes)) && slices.ContainsFunc(s.Near(anywhere, manyNear), known)
}
