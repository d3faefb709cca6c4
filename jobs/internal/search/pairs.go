package search

import (
	"maps"
	"slices"
	"time"

	"zorilla/jobs/internal/wire"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// measureRounds is how often a choice may change because of what was measured.
const measureRounds = 6

// between returns how far apart the nodes of offers are, and each from the nodes
// that the job has.
func (s *distances) between(offers []placement.Offer, d *Demand) func(a, b int) time.Duration {
	return func(a, b int) (rtt time.Duration) {
		x := vicinity.ID(offers[a].Node)
		if a != b {
			rtt, _ = s.Between(x, vicinity.ID(offers[b].Node))
			return rtt
		}
		for _, id := range d.Nodes {
			far, _ := s.Between(x, id)
			rtt = max(rtt, far)
		}
		return rtt
	}
}

// measurePairs returns what is to be measured of the round trips between nodes, of which the job has
// the first already: those that matter (nil = all) and are not known, or not any more, if it is worth to wait for them.
// It reports whether some stay unknown, as too much was tried.
func (s *distances) measurePairs(now time.Time, nodes []vicinity.ID, has int, matters func(a, b vicinity.ID) bool) (list []Measurement, spent bool) {
	pairs, own := s.unsure(now, nodes, has, matters)
	pairs = pairs[:min(len(pairs), max(0, maxPairs-s.freshPairs(now)))]
	if s.tries >= measureRounds {
		return nil, len(pairs)+len(own) > 0
	}
	asks := map[vicinity.ID][]vicinity.ID{}
	for _, u := range pairs {
		from, to := u.a, u.b
		if len(asks[to]) < len(asks[from]) {
			from, to = to, from
		}
		if len(asks[from]) < wire.MaxMeasured {
			asks[from] = append(asks[from], to)
		}
	}
	if len(asks) == 0 && len(own) == 0 {
		return nil, false
	}
	s.makeRoom(now, pairs, nodes)
	s.tries++
	s.unanswered, s.answersBy = len(asks), now.Add(wire.MeasureWait)
	for _, from := range slices.Sorted(maps.Keys(asks)) {
		list = append(list, Measurement{from, asks[from]})
	}
	if len(own) > 0 {
		list = append(list, Measurement{s.id, own})
	}
	return list, false
}

// Paired takes the round trips from one node to others, 0 where there is none;
// of a node that did not answer there are none at all. It reports whether that
// was the last answer that the choice waits for.
func (s *distances) Paired(now time.Time, from vicinity.ID, nodes []vicinity.ID, rtt []time.Duration) (last bool) {
	s.learn(now, from, nodes, rtt)
	if s.unanswered--; s.unanswered > 0 {
		return false
	}
	s.answersBy = time.Time{}
	return true
}
