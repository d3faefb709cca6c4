package jobs

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// choose takes offers if there are enough of them. It returns how far away more
// workers would be welcome: 0 if they would not.
func (s *search) choose(now time.Time, d *demand, n *next) (horizon time.Duration) {
	s.decideAt = time.Time{}
	total := 0
	for _, o := range s.offers {
		total += o.workers
	}
	if total == 0 || total < d.least {
		return anywhere
	}
	if s.spec.grouped() {
		return s.chooseGroup(now, total, d, n)
	}
	offers := s.standing()
	assign, err := placement.Place(placement.Strategy(s.spec.Strategy), offers, min(total, s.spec.Max, d.wanted))
	if err != nil {
		n.err = err
		return 0
	}
	worst := farthest(offers, assign)
	horizon, since := anywhere, s.floodedAt
	switch {
	case s.spreading(d):
		if s.horizon = anywhere; s.mayExtend(now) {
			s.decideAt = s.extended(now)
			return s.horizon
		}
		horizon, since, worst = 0, later(since, s.frontier.Sent()), maxNearerWait
	case total >= d.wanted:
		if s.spec.Search.adaptive() {
			since = later(since, s.frontier.Sent())
		}
		s.frontier.Refresh(s.measured)
		if s.horizon = nearer(worst); !s.open(now) {
			s.meet()
		}
		if s.mayExtend(now) {
			s.decideAt = s.extended(now)
			return s.horizon
		}
		horizon = 0
	}
	if s.measureNodes(now, n) {
		s.measuredAt = now
	}
	if at := later(since, s.measuredAt).Add(min(2*worst, maxNearerWait)); now.Before(at) {
		s.decideAt = at
		return horizon
	}
	return s.grant(offers, assign, d, n)
}

// grant takes the offers that ranks were assigned to. It returns the horizon for
// the others.
func (s *search) grant(offers []placement.Offer, assign []int, d *demand, n *next) (horizon time.Duration) {
	places := make([][]int, len(offers))
	for rank, i := range assign {
		places[i] = append(places[i], rank)
	}
	for i, list := range places {
		if len(list) == 0 {
			continue
		}
		id := vicinity.ID(offers[i].Node)
		o := s.offers[id]
		delete(s.offers, id)
		n.grant = append(n.grant, choice{node: id, name: s.answers[id].Name, key: o.key, rtt: o.rtt, places: list})
	}
	d.wanted -= len(assign)
	if d.least = max(1, d.least-len(assign)); s.spec.Rigid() {
		d.least = d.wanted
	}
	if d.wanted == 0 {
		return 0
	}
	return anywhere
}

// spreading reports whether a job that is to be spread could have more nodes
// than have offered yet.
func (s *search) spreading(d *demand) bool {
	return placement.Strategy(s.spec.Strategy) == placement.Spread && len(s.offers) < d.wanted && !s.everybodyAnswered()
}

// standing lists the offers for placement, by node, with their distances as they
// are known by now.
func (s *search) standing() []placement.Offer {
	offers := make([]placement.Offer, 0, len(s.offers))
	for _, id := range slices.Sorted(maps.Keys(s.offers)) {
		o := s.offers[id]
		if !o.exact {
			if rtt := s.measured(id); rtt > 0 {
				o.rtt, o.exact = rtt, true
				s.offers[id] = o
				a := s.answers[id]
				a.RTT = codec.Duration(rtt)
				s.answers[id] = a
			}
		}
		offers = append(offers, placement.Offer{Node: string(id), RTT: o.rtt, Workers: o.workers})
	}
	return offers
}

// farthest is the distance of the farthest node that ranks were assigned to.
func farthest(offers []placement.Offer, assign []int) (worst time.Duration) {
	for _, i := range assign {
		worst = max(worst, offers[i].RTT)
	}
	return worst
}

// nearer returns the distance below which a node would be nearer than another:
// less differs by noise only.
func nearer(rtt time.Duration) time.Duration {
	return max(0, rtt-max(rtt/32, 200*time.Microsecond))
}

// measureNodes has nodes measured of which only an upper bound of their distance
// is known, and reports whether there were any: those that offer, and those on
// the rim beyond which somebody nearer may be.
func (s *search) measureNodes(now time.Time, n *next) bool {
	var unknown []vicinity.ID
	for id, o := range s.offers {
		if !o.exact && !o.probed {
			unknown = append(unknown, id)
		}
	}
	slices.SortFunc(unknown, func(a, b vicinity.ID) int {
		return cmp.Or(cmp.Compare(s.offers[a].rtt, s.offers[b].rtt), cmp.Compare(a, b))
	})
	unknown = unknown[:min(len(unknown), maxProbes)]
	for _, id := range unknown {
		o := s.offers[id]
		o.probed = true
		s.offers[id] = o
	}
	if s.spec.Search.adaptive() && s.horizon > 0 && s.fruitless < maxFruitless && now.Before(s.floodedAt.Add(maxExtend)) {
		unknown = append(unknown, s.frontier.Unsure(s.horizon, maxProbes-len(unknown))...)
	}
	if len(unknown) > 0 {
		n.measure = append(n.measure, measurement{s.id, unknown})
	}
	return len(unknown) > 0
}
