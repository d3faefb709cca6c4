package search

import (
	"errors"
	"slices"
	"time"

	"zorilla/jobs/internal/agenda"
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
}

// PlacePause is between two vain choices while hardly anything changes.
const PlacePause = 250 * time.Millisecond

// chooseGroup is choose for jobs whose nodes depend on each other.
func (s *Search) chooseGroup(now time.Time, total int, d *Demand, n *Next) (horizon time.Duration) {
	g := &s.group
	if s.tooSoon(now) {
		return s.horizon
	}
	offers := s.standing()
	g.tried, g.chosenAt = len(offers), now
	assign, err := s.place(offers, total, d)
	if err != nil {
		s.changed = true
		if g.apart = err.Error(); s.mayExtend(now) || s.askAgain(now, n) {
			s.decideAt = s.extended(now)
		}
		return anywhere
	}
	g.apart = ""
	worst := farthest(offers, assign)
	s.frontier.Refresh(s.Measured)
	if s.horizon = s.groupHorizon(offers, assign, worst, d); s.horizon < anywhere && !s.open(now, s.horizon) {
		s.meet()
	}
	if s.mayExtend(now) {
		g.tried = 0 // the next choice is another one
		if s.horizon == anywhere {
			g.tried = len(offers)
		}
		s.decideAt = s.extended(now)
		return s.horizon
	}
	if s.askAgain(now, n) {
		g.tried = 0
		s.decideAt = s.extended(now)
		return s.horizon
	}
	if s.measureNodes(now, n) {
		s.measuredAt = now
	}
	wait := min(2*worst, MaxNearerWait)
	if s.spreading(d) || s.comparing(assign, offers) { // any node that answers is of use
		wait = MaxNearerWait
	}
	at := agenda.Later(agenda.Later(s.FloodedAt, s.frontier.Sent()), s.measuredAt).Add(wait)
	if at = agenda.Later(at, s.Offers.measuredBy(now, offers, assign)); now.Before(at) {
		g.tried = 0
		s.decideAt = at
		return 0
	}
	if s.spec.Pairwise() {
		list, spent := s.measurePairs(now, chosen(offers, assign, d), len(d.Nodes))
		switch n.Measure = append(n.Measure, list...); {
		case len(list) > 0:
			g.tried = 0
			s.decideAt = s.answersBy
			s.releaseAt = agenda.Later(s.releaseAt, s.answersBy.Add(s.keeps))
			return 0
		case spent && s.spec.MaxRTT > 0:
			g.apart = "the round trips between nodes could not be measured"
			s.changed = true
			return 0
		}
	}
	return s.grant(now, offers, assign, d, n)
}

// tooSoon reports whether another choice has to wait, and sets when it is due,
// and the horizon.
func (s *Search) tooSoon(now time.Time) bool {
	g := &s.group
	if now.Before(s.answersBy) {
		s.decideAt = s.answersBy
		s.releaseAt = agenda.Later(s.releaseAt, now.Add(s.keeps))
		return true
	}
	if at := g.chosenAt.Add(placePace(len(s.Offers))); now.Before(at) {
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

// groupHorizon says how far away more offers are welcome when there are enough.
func (s *Search) groupHorizon(offers []placement.Offer, assign []int, worst time.Duration, d *Demand) time.Duration {
	if len(assign) < d.Wanted || s.spreading(d) || s.comparing(assign, offers) {
		return anywhere
	}
	if placement.Strategy(s.spec.Strategy) != placement.Compact {
		return nearer(worst)
	}
	// Nodes that are nearer to each other may be anywhere. Four times as many
	// as are needed are choice enough, and nothing is nearer than a neighbour.
	nodes := chosen(offers, assign, d)
	_, _, rtt := placement.Worst(assign, s.apart(offers, d))
	if rtt <= time.Millisecond || len(offers) >= max(64, 4*len(nodes)) {
		return 0
	}
	return anywhere
}

// place chooses offers for as many wanted ranks as it can, all of a rigid job.
func (s *Search) place(offers []placement.Offer, total int, d *Demand) (assign []int, err error) {
	most := min(total, d.Wanted)
	try := func(workers int) ([]int, error) {
		w := placement.Wish{
			Strategy: placement.Strategy(s.spec.Strategy), Ranks: workers / s.spec.Copies(), Replicas: s.spec.Replicas,
			MaxRTT: time.Duration(s.spec.MaxRTT), Between: s.apart(offers, d),
		}
		list, err := w.Place(s.timed(s.spec, offers))
		if err != nil {
			return nil, err
		}
		return slices.Concat(list...), nil
	}
	if assign, err = try(most); err == nil || !errors.Is(err, placement.ErrApart) || s.spec.Rigid() {
		return assign, err
	}
	low := d.Least // the most that can be placed is looked for by halves
	if assign, err = try(low); err != nil {
		return nil, err
	}
	for high := most; high-low > 1; {
		mid := low + (high-low)/2
		if more, err := try(mid); err == nil {
			assign, low = more, mid
		} else {
			high = mid
		}
	}
	return assign, nil
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
