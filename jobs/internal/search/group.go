package search

import (
	"errors"
	"maps"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// The choice of nodes for jobs to which more matters than the distance from the
// origin: the round trips between their own nodes (--strategy compact,
// --max-rtt), or that copies of a rank are apart (--replicas). Whether offers
// are enough is known only by trying. Distances between two other nodes are
// estimated until a choice depends on them; then the nodes measure them.

// group is how far such a choice is since the latest flood.
type group struct {
	tried    int       // offers at the last choice
	chosenAt time.Time // of the last choice
	apart    string    // why the offers do not do; "" = they do
	// matters reports whether the round trip between two nodes of the latest choice counts; nil = each does.
	matters func(a, b vicinity.ID) bool
	doubted []vicinity.ID // the round trips between them may be why there is none; see grouping.doubted
}

// PlacePause is between two vain choices while hardly anything changes.
const PlacePause = 250 * time.Millisecond

// apart notes why no offers do, and has measured what may be wrong about that, or looks for others.
func (s *Search) apart(now time.Time, err error, n *Next) {
	if errors.Is(err, placement.ErrInvalid) || errors.Is(err, placement.ErrStrategy) {
		n.Err = err
		return
	}
	s.changed, s.group.apart, s.horizon = true, err.Error(), anywhere
	list, _ := s.measurePairs(now, s.group.doubted, len(s.group.doubted), s.maybeOnePlace)
	if n.Measure = append(n.Measure, list...); len(list) > 0 {
		s.wait(s.answersBy)
		return
	}
	if s.mayExtend(now) || s.askAgain(now, n) {
		s.decideAt = s.extended(now)
	}
}

// measuresPairs has the round trips between the nodes of a choice measured, as far as that is needed, and
// reports whether the choice has to wait: for them, or since they cannot be had.
func (s *Search) measuresPairs(now time.Time, c *choice, n *Next) bool {
	list, spent := s.measurePairs(now, chosen(c.offers, c.assign, c.demand), len(c.demand.Nodes), s.group.matters)
	switch n.Measure = append(n.Measure, list...); {
	case len(list) > 0:
		s.wait(s.answersBy)
		s.releaseAt = timers.Later(s.releaseAt, s.answersBy.Add(s.keeps))
		return true
	case spent && (s.spec.MaxRTT > 0 || s.spec.Near()), c.hoped:
		s.changed, s.group.apart = true, "the round trips between nodes could not be measured"
		return true
	}
	return false
}

// tooSoon reports whether another choice has to wait, and sets when it is due,
// and the horizon.
func (s *Search) tooSoon(now time.Time) bool {
	g := &s.group
	if now.Before(s.answersBy) {
		s.decideAt = s.answersBy
		s.releaseAt = timers.Later(s.releaseAt, now.Add(s.keeps))
		return true
	}
	if at := g.chosenAt.Add(pace(s.spec, len(s.Offers))); now.Before(at) {
		s.decideAt = at
		return true
	}
	s.horizon = anywhere
	few := len(s.Offers)*4 < g.tried*5 // hardly more than at the last choice
	switch {
	case few && s.mayExtend(now):
		s.decideAt = s.extended(now)
		return true
	case few && g.apart != "" && now.Before(g.chosenAt.Add(PlacePause)):
		if len(s.Offers) != g.tried {
			s.decideAt = g.chosenAt.Add(PlacePause)
		}
		return true
	}
	return false
}

// placePace returns how soon a choice among so many offers may follow another
// one: answers come by the hundred, and its cost grows with the square.
func placePace(offers int) time.Duration {
	return min(time.Duration(offers*offers)*time.Microsecond, PlacePause)
}

// welcomeCompact is welcome for nodes that are to be near each other: such nodes may be anywhere. Four
// times as many as are needed are choice enough, and nothing is nearer than a neighbour.
func (s *Search) welcomeCompact(c *choice) time.Duration {
	nodes := chosen(c.offers, c.assign, c.demand)
	_, _, rtt := placement.Worst(c.assign, s.between(c.offers, c.demand))
	if rtt <= time.Millisecond || len(c.offers) >= max(64, 4*len(nodes)) {
		return 0
	}
	return anywhere
}

// chosen lists the nodes that the job would have.
func chosen(offers []placement.Offer, assign []int, d *Demand) []vicinity.ID {
	list := slices.Clone(d.Nodes)
	for _, i := range slices.Compact(slices.Sorted(slices.Values(assign))) {
		if id := vicinity.ID(offers[i].Node); !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

// paceOfGroups is by how much a choice for groups takes longer than one among as many offers without.
const paceOfGroups = 4

// pace returns how soon another choice for a job may follow one among so many offers.
func pace(spec *jobs.Spec, offers int) time.Duration {
	if len(spec.Groups) > 0 {
		return paceOfGroups * placePace(offers)
	}
	return placePace(offers)
}

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
