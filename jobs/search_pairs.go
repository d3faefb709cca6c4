package jobs

import (
	"maps"
	"slices"
	"time"

	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

const (
	// maxPairs bounds what is measured for a job: the rest, of the nearest
	// pairs by estimate, count by their estimates.
	maxPairs = 8192
	// maxMeasured bounds one request.
	maxMeasured = 256
	// measureTime bounds how long a node measures, measureWait how long its
	// answer is waited for.
	measureTime  = 300 * time.Millisecond
	measurePause = 10 * time.Millisecond
	measureWait  = 700 * time.Millisecond
	// measureRounds is how often a choice may change because of what was
	// measured.
	measureRounds = 6
)

// apart tells how far apart the nodes of offers are, and each from the nodes
// that the job has.
func (s *search) apart(offers []placement.Offer, d *demand) func(a, b int) time.Duration {
	return func(a, b int) (rtt time.Duration) {
		x := vicinity.ID(offers[a].Node)
		if a != b {
			rtt, _ = s.between(x, vicinity.ID(offers[b].Node))
			return rtt
		}
		for _, id := range d.nodes {
			far, _ := s.between(x, id)
			rtt = max(rtt, far)
		}
		return rtt
	}
}

// measurePairs has the round trips between nodes measured that are not known,
// and reports whether it is worth to wait for them.
func (s *search) measurePairs(now time.Time, nodes []vicinity.ID, n *next) bool {
	if !s.spec.pairwise() {
		return false
	}
	g := &s.group
	pairs, own := s.unsure(nodes)
	pairs = pairs[:min(len(pairs), max(0, maxPairs-len(s.pairs)))]
	if g.rounds >= measureRounds {
		if len(pairs)+len(own) > 0 && s.spec.MaxRTT > 0 {
			g.apart = "the round trips between nodes could not be measured"
			s.changed = true
		}
		return false
	}
	asks := map[vicinity.ID][]vicinity.ID{}
	for _, u := range pairs {
		from, to := u.a, u.b
		if len(asks[to]) < len(asks[from]) {
			from, to = to, from
		}
		if len(asks[from]) < maxMeasured {
			asks[from] = append(asks[from], to)
		}
	}
	if len(asks) == 0 && len(own) == 0 {
		return false
	}
	g.rounds++
	g.unanswered, g.answersBy = len(asks), now.Add(measureWait)
	for _, from := range slices.Sorted(maps.Keys(asks)) {
		n.measure = append(n.measure, measurement{from, asks[from]})
	}
	if len(own) > 0 {
		n.measure = append(n.measure, measurement{s.id, own})
	}
	return true
}

// paired takes the round trips from one node to others, 0 where there is none;
// of a node that did not answer there are none at all. It reports whether that
// was the last answer that the choice waits for.
func (s *search) paired(from vicinity.ID, nodes []vicinity.ID, rtt []time.Duration) (last bool) {
	s.learn(from, nodes, rtt)
	if s.group.unanswered--; s.group.unanswered > 0 {
		return false
	}
	s.group.answersBy = time.Time{}
	return true
}
