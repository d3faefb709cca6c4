package search

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/vicinity"
)

// Surroundings is what the node of a job knows of others.
type Surroundings struct {
	Measured func(id vicinity.ID) time.Duration // round trip; 0 = not measured
	Fresh    func(id vicinity.ID) time.Duration // Measured within FreshFor; 0 = not
	Near     func(than time.Duration, limit int) []vicinity.Measured
	Members  func() int                           // how many, this node included
	Distance func(a, b vicinity.ID) time.Duration // between two others, estimated; 0 = not known
	Speed    func(id vicinity.ID) vicinity.Speed  // of files from this node to another one
	Input    int64                                // bytes that a node fetches which has none of them
	id       vicinity.ID                          // of this node
}

// distances is what a search knows of the round trips between nodes.
type distances struct {
	*Surroundings
	byAnswer func(id vicinity.ID) time.Duration // of a node that has answered; 0 = not known
	pairs    map[pair]time.Duration             // measured by others; MaxApart = in vain
}

// pair is two nodes, in order.
type pair struct{ a, b vicinity.ID }

func pairOf(a, b vicinity.ID) pair {
	if b < a {
		a, b = b, a
	}
	return pair{a, b}
}

func newDistances(self vicinity.ID, byAnswer func(vicinity.ID) time.Duration) distances {
	return distances{pairs: map[pair]time.Duration{}, byAnswer: byAnswer, Surroundings: &Surroundings{
		Measured: func(vicinity.ID) time.Duration { return 0 },
		Fresh:    func(vicinity.ID) time.Duration { return 1 },
		Near:     func(time.Duration, int) []vicinity.Measured { return nil },
		Members:  func() int { return math.MaxInt },
		Distance: func(a, b vicinity.ID) time.Duration { return 0 },
		Speed:    func(vicinity.ID) (none vicinity.Speed) { return none },
		id:       self,
	}}
}

// far is the round trip from this node as far as it is known.
func (s *distances) far(id vicinity.ID) time.Duration {
	return cmp.Or(s.Measured(id), s.byAnswer(id), jobs.MaxApart)
}

// Between is the round trip between two nodes; sure is false where it is
// estimated, too high where hardly anything is known.
func (s *distances) Between(a, b vicinity.ID) (rtt time.Duration, sure bool) {
	if a == b {
		return 0, true
	}
	if b == s.id {
		a, b = b, a
	}
	if a == s.id {
		rtt = s.Measured(b)
		return cmp.Or(rtt, s.far(b)), rtt > 0
	}
	if rtt, ok := s.pairs[pairOf(a, b)]; ok {
		return rtt, true
	}
	if rtt = s.Distance(a, b); rtt > 0 {
		return rtt, false
	}
	return min(s.far(a)+s.far(b), jobs.MaxApart), false
}

// unsurePair is two nodes between which the round trip is estimated.
type unsurePair struct {
	pair
	rtt time.Duration
}

// unsure lists the pairs of nodes that others must measure, the farthest
// first, and the nodes that this one must.
func (s *distances) unsure(nodes []vicinity.ID) (pairs []unsurePair, own []vicinity.ID) {
	for i, a := range nodes {
		for _, b := range nodes[:i] {
			switch rtt, sure := s.Between(a, b); {
			case sure:
			case a == s.id:
				own = append(own, b)
			case b == s.id:
				own = append(own, a)
			default:
				pairs = append(pairs, unsurePair{pairOf(a, b), rtt})
			}
		}
	}
	slices.SortFunc(pairs, func(x, y unsurePair) int {
		return cmp.Or(cmp.Compare(y.rtt, x.rtt), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
	return pairs, own
}

// learn takes the round trips from one node to others, 0 where there is none.
func (s *distances) learn(from vicinity.ID, nodes []vicinity.ID, rtt []time.Duration) {
	for i, id := range nodes {
		d := jobs.MaxApart
		if i < len(rtt) && rtt[i] > 0 {
			d = min(rtt[i], jobs.MaxApart)
		}
		s.pairs[pairOf(from, id)] = d
	}
}

// renew forgets what could not be measured, so that it is tried again.
func (s *distances) renew() {
	maps.DeleteFunc(s.pairs, func(_ pair, rtt time.Duration) bool { return rtt >= jobs.MaxApart })
}
