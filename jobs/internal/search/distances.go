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

const (
	// FreshFor is how old a round trip may be by which offers are compared: routes change.
	FreshFor = 30 * time.Second
	// maxPairs bounds what is measured for a job within FreshFor, and how much of it is
	// remembered: the rest, of the nearest pairs by estimate, count by their estimates.
	maxPairs = 8192
)

// Surroundings is what the node of a job knows of others.
type Surroundings struct {
	Measured func(id vicinity.ID) time.Duration // round trip; 0 = not measured
	Fresh    func(id vicinity.ID) time.Duration // Measured within FreshFor; 0 = not
	Near     func(than time.Duration, limit int) []vicinity.Measured
	Members  func() int // how many, this node included
	Member   func(id vicinity.ID) (m vicinity.Member, ok bool)
	Distance func(a, b vicinity.ID) time.Duration // between two others, estimated; 0 = not known
	Speed    func(id vicinity.ID) vicinity.Speed  // of files from this node to another one
	Input    int64                                // bytes that a node fetches which has none of them
	id       vicinity.ID                          // of this node
}

// distances is what a search knows of the round trips between nodes.
type distances struct {
	*Surroundings
	byAnswer func(id vicinity.ID) time.Duration // of a node that has answered; 0 = not known
	pairs    map[pair]apartness                 // measured by others
	learnt   int                                // counts what was learnt of them

	// Since the latest flood:
	tries      int       // rounds of measurements
	unanswered int       // requests to measure
	answersBy  time.Time // they are waited for until then at most; zero = there are none
}

// apartness is a round trip, MaxApart if it could not be measured, and when that was.
type apartness struct {
	rtt time.Duration
	at  time.Time
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
	return distances{pairs: map[pair]apartness{}, byAnswer: byAnswer, Surroundings: &Surroundings{
		Measured: func(vicinity.ID) time.Duration { return 0 },
		Fresh:    func(vicinity.ID) time.Duration { return 1 },
		Near:     func(time.Duration, int) []vicinity.Measured { return nil },
		Members:  func() int { return math.MaxInt },
		Member:   func(vicinity.ID) (none vicinity.Member, ok bool) { return none, false },
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
		if rtt = s.Measured(b); rtt > 0 {
			return max(rtt, s.Fresh(b)), true
		}
		return s.far(b), false
	}
	if known, ok := s.pairs[pairOf(a, b)]; ok {
		return known.rtt, true
	}
	if rtt = s.Distance(a, b); rtt > 0 {
		return rtt, false
	}
	return min(s.far(a)+s.far(b), jobs.MaxApart), false
}

// Estimate is Between where it does not matter whether it was measured.
func (s *distances) Estimate(a, b vicinity.ID) time.Duration {
	rtt, _ := s.Between(a, b)
	return rtt
}

// unsurePair is two nodes between which the round trip is estimated.
type unsurePair struct {
	pair
	rtt time.Duration
}

// unsure lists the pairs of nodes that others must measure, the farthest
// first, and the nodes that this one must. The job has the first of the nodes
// already: how far these are from each other need not be measured again.
func (s *distances) unsure(now time.Time, nodes []vicinity.ID, has int, matters func(a, b vicinity.ID) bool) (pairs []unsurePair, own []vicinity.ID) {
	for i, a := range nodes {
		for _, b := range nodes[:i] {
			known, old := s.pairs[pairOf(a, b)]
			old = old && i >= has && now.Sub(known.at) > FreshFor
			switch rtt, sure := s.Between(a, b); {
			case sure && !old, matters != nil && !matters(a, b):
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

// freshPairs counts the pairs that have been measured of late.
func (s *distances) freshPairs(now time.Time) (n int) {
	for _, known := range s.pairs {
		if now.Sub(known.at) <= FreshFor {
			n++
		}
	}
	return n
}

// learn takes the round trips from one node to others, 0 where there is none. What comes so late
// that there is no room for it any more is as good as not measured.
func (s *distances) learn(now time.Time, from vicinity.ID, nodes []vicinity.ID, rtt []time.Duration) {
	s.learnt++
	for i, id := range nodes {
		d := jobs.MaxApart
		old, known := s.pairs[pairOf(from, id)]
		switch {
		case !known && len(s.pairs) >= maxPairs:
			continue
		case i < len(rtt) && rtt[i] > 0:
			d = min(rtt[i], jobs.MaxApart)
		case known: // which counts where a new one is not to be had
			d = old.rtt
		}
		s.pairs[pairOf(from, id)] = apartness{d, now}
	}
}

// makeRoom has no more than maxPairs known when these have been measured: a job that lives long
// has many nodes, one after the other. Pairs of nodes that do not count any more are forgotten
// first, then the oldest; what was measured of late stays, and what is measured again.
func (s *distances) makeRoom(now time.Time, unsure []unsurePair, nodes []vicinity.ID) {
	excess := len(s.pairs) - maxPairs
	again := map[pair]bool{}
	for _, u := range unsure {
		if _, known := s.pairs[u.pair]; known {
			again[u.pair] = true
		} else {
			excess++
		}
	}
	if excess <= 0 {
		return
	}
	counts := make(map[vicinity.ID]bool, len(nodes))
	for _, id := range nodes {
		counts[id] = true
	}
	var past [2][]pair // of others, and of nodes that count
	for p, known := range s.pairs {
		switch {
		case now.Sub(known.at) <= FreshFor || again[p]:
		case counts[p.a] && counts[p.b]:
			past[1] = append(past[1], p)
		default:
			past[0] = append(past[0], p)
		}
	}
	for _, list := range past {
		slices.SortFunc(list, func(x, y pair) int {
			return cmp.Or(s.pairs[x].at.Compare(s.pairs[y].at), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
		})
		for _, p := range list[:min(max(0, excess), len(list))] {
			delete(s.pairs, p)
			excess--
		}
	}
}

// renew forgets what could not be measured, so that it is tried again after the next flood.
func (s *distances) renew() {
	s.tries, s.unanswered, s.answersBy = 0, 0, time.Time{}
	maps.DeleteFunc(s.pairs, func(_ pair, known apartness) bool { return known.rtt >= jobs.MaxApart })
}
