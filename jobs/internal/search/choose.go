package search

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/internal/agenda"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// choose takes offers if there are enough of them. It returns how far away more
// workers would be welcome: 0 if they would not.
func (s *Search) choose(now time.Time, d *Demand, n *Next) (horizon time.Duration) {
	s.decideAt = time.Time{}
	total := s.Offers.workers()
	if total == 0 || total < d.Least {
		return anywhere
	}
	if old := s.Offers.toMeasure(now); len(old) > 0 {
		n.Measure = append(n.Measure, Measurement{s.id, old})
	}
	if s.spec.Grouped() {
		return s.chooseGroup(now, total, d, n)
	}
	offers := s.standing()
	assign, err := placement.Place(placement.Strategy(s.spec.Strategy), s.timed(s.spec, offers), min(total, s.spec.Max, d.Wanted))
	if err != nil {
		n.Err = err
		return 0
	}
	worst := farthest(offers, assign)
	horizon, since := anywhere, s.FloodedAt
	switch {
	case s.spreading(d) || s.comparing(assign, offers):
		if s.horizon = anywhere; s.mayExtend(now) || s.askAgain(now, n) {
			s.decideAt = s.extended(now)
			return s.horizon
		}
		horizon, since, worst = 0, agenda.Later(since, s.frontier.Sent()), MaxNearerWait
	case total >= d.Wanted:
		since = s.lastAsked()
		s.frontier.Refresh(s.Measured)
		if s.horizon = nearer(worst); !s.open(now, s.horizon) {
			s.meet()
		}
		if s.mayExtend(now) {
			s.decideAt = s.extended(now)
			return s.horizon
		}
		// Not even a neighbour is as near as this node itself.
		_, until := s.hoped(now, max(s.worthAWait(worst), min(worst, 2)))
		switch recalled, _ := s.Offers.recalled(offers, assign); {
		case !now.Before(until):
		case s.wantedBack(now, offers, assign):
			return anywhere
		case recalled == 0: // else who waits for them has waited enough
			n.Release = append(n.Release, s.spare(offers, assign, d.Behind)...)
			n.Recall = s.recall(now, ranges(offers, assign))
			s.decideAt = until
			return s.horizon
		}
		if s.askAgain(now, n) || s.frontier.Awaits(now, s.horizon) {
			s.decideAt = s.extended(now)
			return s.horizon
		}
		horizon = 0
	}
	if s.measureNodes(now, n) {
		s.measuredAt = now
	}
	at := agenda.Later(since, s.measuredAt).Add(min(2*worst, MaxNearerWait))
	if at = agenda.Later(at, s.Offers.measuredBy(now, offers, assign)); now.Before(at) {
		s.decideAt = at
		return horizon
	}
	if s.own == asked || s.ownAt.Before(now) && s.ownCounts(s.spec) && elsewhere(s.id, offers, assign) {
		s.askOwn(now, d, n) // nobody is nearer, and it may have room of which it has not told
		s.decideAt = now.Add(time.Millisecond)
		return horizon
	}
	return s.grant(now, offers, assign, d, n)
}

// grant takes the offers that ranks were assigned to. It returns the horizon for
// the others.
func (s *Search) grant(now time.Time, offers []placement.Offer, assign []int, d *Demand, n *Next) (horizon time.Duration) {
	passed(now, s.nodeAnswers)
	places := make([][]int, len(offers))
	for rank, i := range assign {
		places[i] = append(places[i], rank)
	}
	for i, list := range places {
		if len(list) == 0 {
			continue
		}
		id := vicinity.ID(offers[i].Node)
		o := s.Offers[id]
		delete(s.Offers, id)
		if s.Call != "" {
			s.take(now, id, o, len(list))
		}
		s.fate(id, taken)
		n.Grant = append(n.Grant, Choice{Node: id, Name: s.Answers[id].Name, Key: o.key, RTT: o.rtt, Places: list})
	}
	s.own = notAsked
	d.Wanted -= len(assign)
	if d.Least = max(1, d.Least-len(assign)); s.spec.Rigid() {
		d.Least = d.Wanted
	}
	if d.Wanted == 0 {
		return 0
	}
	return anywhere
}

// askAgain sends the flood once more to nodes nearer than the horizon that have had time to
// answer and have not: packets get lost. It reports whether there are any.
func (s *Search) askAgain(now time.Time, n *Next) bool {
	if !s.spec.Search.Adaptive() {
		return false
	}
	n.Extend = append(n.Extend, s.frontier.Silent(now, s.horizon, s.Measured)...)
	return len(n.Extend) > 0
}

// elsewhere reports whether ranks were assigned to other nodes than this one.
func elsewhere(self vicinity.ID, offers []placement.Offer, assign []int) bool {
	return slices.ContainsFunc(assign, func(i int) bool { return offers[i].Node != string(self) })
}

// ranges lists the distances of ranks, the farthest first.
func ranges(offers []placement.Offer, assign []int) (list []time.Duration) {
	for _, i := range assign {
		list = append(list, offers[i].RTT)
	}
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

// wantedBack reports whether it would be right to give back offers that ranks were assigned
// to, since a job that goes before wants them: there is as much to hope for at no more than
// half of the distance. What is given back may be gone for good.
func (s *nodeAnswers) wantedBack(now time.Time, offers []placement.Offer, assign []int) bool {
	ranks, nearest := s.Offers.recalled(offers, assign)
	left, _ := s.hoped(now, nearest/2)
	return ranks > 0 && left >= ranks
}

// spare lets go of the offers that no rank was assigned to, and lists them; none if jobs behind
// this one may need them.
func (s *nodeAnswers) spare(offers []placement.Offer, assign []int, behind int) []Returned {
	if behind > 0 {
		return nil
	}
	taken := map[vicinity.ID]bool{}
	for _, i := range assign {
		taken[vicinity.ID(offers[i].Node)] = true
	}
	return s.returns(NotNeeded, func(id vicinity.ID) bool { return !taken[id] })
}

// spreading reports whether a job that is to be spread could have more nodes
// than have offered yet.
func (s *Search) spreading(d *Demand) bool {
	return placement.Strategy(s.spec.Strategy) == placement.Spread && len(s.Offers) < d.Wanted && !s.everybodyAnswered()
}

// bounds lowers the bounds of distances that are not known by what was measured only once: a
// packet of the second time was lost.
func (o offers) bounds(near func(than time.Duration, limit int) []vicinity.Measured) {
	most := time.Duration(0)
	for _, offer := range o {
		if !offer.exact && offer.probed {
			most = max(most, offer.rtt)
		}
	}
	if most == 0 {
		return
	}
	for _, m := range near(most, maxDirect) {
		if offer, ok := o[m.ID]; ok && !offer.exact && !m.Least && m.RTT < offer.rtt {
			offer.rtt = m.RTT
			o[m.ID] = offer
		}
	}
}

// standing lists the offers for placement, by node, with their distances as they
// are known by now.
func (s *Search) standing() []placement.Offer {
	s.Offers.bounds(s.Near)
	offers := make([]placement.Offer, 0, len(s.Offers))
	for _, id := range slices.Sorted(maps.Keys(s.Offers)) {
		o := s.Offers[id]
		if o.old != nil {
			if rtt := s.Fresh(id); rtt > 0 {
				o.rtt, o.old = rtt, nil
				s.Offers[id] = o
				a := s.Answers[id]
				a.RTT = codec.Duration(rtt)
				s.Answers[id] = a
			}
		} else if !o.exact {
			if rtt := cmp.Or(s.Measured(id), twice(&s.frontier, id)); rtt > 0 {
				o.rtt, o.exact = rtt, true
				s.Offers[id] = o
				a := s.Answers[id]
				a.RTT = codec.Duration(rtt)
				s.Answers[id] = a
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

// worthAWait returns the distance below which room that another job may leave is waited for by
// one that could have other room at a distance now: for less than a quarter it begins later than
// it would be better off. Jobs that take turns are in nobody's way but their own, and what one leaves
// comes at once.
func (s *Search) worthAWait(rtt time.Duration) time.Duration {
	if s.Call != "" {
		return s.horizon
	}
	return min(s.horizon, rtt-rtt/4)
}

// measureNodes has nodes measured of which only an upper bound of their distance
// is known, and reports whether there were any: those that offer, and those on
// the rim beyond which somebody nearer may be.
func (s *Search) measureNodes(now time.Time, n *Next) bool {
	var unknown []vicinity.ID
	for id, o := range s.Offers {
		if !o.exact && !o.probed {
			unknown = append(unknown, id)
		}
	}
	slices.SortFunc(unknown, func(a, b vicinity.ID) int {
		return cmp.Or(cmp.Compare(s.Offers[a].rtt, s.Offers[b].rtt), cmp.Compare(a, b))
	})
	unknown = unknown[:min(len(unknown), maxProbes)]
	for _, id := range unknown {
		o := s.Offers[id]
		o.probed = true
		s.Offers[id] = o
	}
	if s.spec.Search.Adaptive() && s.horizon > 0 && s.fruitless < MaxFruitless && now.Before(s.FloodedAt.Add(MaxExtend)) {
		unknown = append(unknown, s.frontier.Unsure(s.horizon, maxProbes-len(unknown))...)
	}
	if len(unknown) > 0 {
		n.Measure = append(n.Measure, Measurement{s.id, unknown})
	}
	return len(unknown) > 0
}
