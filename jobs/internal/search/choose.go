package search

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// allocate gives the offers to demands, in order, as far as it is time to: if one is to wait, so are
// those after it. It returns the demands that are left.
func (s *Search) allocate(now time.Time, list []Demand, n *Next) (left []Demand) {
	s.decideAt = time.Time{}
	var plan *placement.Plan
	var offers []placement.Offer
	for i := range list {
		d := &list[i]
		if total := s.Offers.workers(); total == 0 || total < d.Least {
			s.horizon = anywhere
			return list[i:]
		}
		if plan == nil {
			if old := s.Offers.toMeasure(now); len(old) > 0 {
				n.Measure = append(n.Measure, Measurement{s.id, old})
			}
			if s.spec.JointChoice() && s.tooSoon(now) {
				return list[i:]
			}
			offers = s.standing()
			plan = placement.NewPlan(s.timed(s.spec, offers))
			s.group.tried, s.group.chosenAt = len(offers), now
		}
		c, err := s.choose(plan, d, offers)
		if err != nil {
			s.apart(now, err, n)
			return list[i:]
		}
		s.group.apart, c.number = "", i
		if !s.decide(now, c, n) || d.Wanted > 0 {
			return list[i:]
		}
	}
	return nil
}

// choose returns what a demand could get of the offers that stand, and takes it out of the plan.
func (s *Search) choose(plan *placement.Plan, d *Demand, offers []placement.Offer) (*choice, error) {
	near := newNearness(d.Lost, offers, s.Estimate)
	if d.Groups != nil {
		return (&grouping{Search: s, near: near}).arrange(d, offers)
	}
	c := &choice{demand: d, offers: offers, near: near}
	if d.Spares != nil && !s.spec.Pairwise() {
		power := alike
		if s.spec.Mapped() {
			power = s.powerOf
		}
		c.assign = d.Spares.spread(d.Wanted, offers, power, s.Estimate)
	} else if s.spec.Mapped() {
		var err error
		if c.assign, err = mapped(s.spec, d, offers, s.powerOf, s.Estimate); err != nil {
			return nil, err
		}
	} else if near != nil { // a job alone has lost ranks: nobody comes after it
		var err error
		if c.assign, err = near.replace(s.wish(offers, d), offers, s.timed(s.spec, offers), s.spec.JointChoice()); err != nil {
			return nil, err
		}
	} else {
		got := plan.Allocate(s.wish(offers, d))
		if got.Err != nil {
			return nil, got.Err
		}
		c.assign = got.Offers
	}
	c.worst = farthest(offers, c.assign)
	c.any = s.spreading(d) || s.spec.Mapped() && near == nil && !s.everybodyAnswered() || near == nil && s.comparing(c.assign, offers)
	return c, nil
}

// wish is how a job is to be placed.
func (s *Search) wish(offers []placement.Offer, d *Demand) placement.Demand {
	return placement.Demand{Least: d.Least, Most: d.Wanted, Wish: placement.Wish{
		Strategy: placement.Strategy(s.spec.Strategy), Replicas: s.spec.Replicas,
		MaxRTT: time.Duration(s.spec.MaxRTT), Between: s.between(offers, d),
	}}
}

// decide takes what a demand is to get, or sets until when other nodes are waited for, and reports
// whether it has taken it.
func (s *Search) decide(now time.Time, c *choice, n *Next) bool {
	since, wait, horizon := s.lastAsked(), min(2*c.worst, MaxNearerWait), time.Duration(0)
	if at, more := s.beside.better(now, s.FloodedAt, s.sent, s.reached, c.near, c.nodes()); now.Before(at) {
		n.Extend = append(n.Extend, s.frontier.Besides(now, more)...)
		if s.wait(at); len(c.assign) == c.demand.Wanted && !s.spec.JointChoice() { // nobody else would be better
			s.horizon = 0
		}
		return false
	}
	switch {
	case len(c.assign) < c.demand.Wanted && !c.any && !s.spec.JointChoice(): // it begins with these, while the flood goes on
		since, horizon = s.FloodedAt, anywhere
	case c.near != nil && !c.any && (!s.spec.JointChoice() || s.spec.Mapped()): // who is nearer to this node is not better
	case s.looksOn(now, c, n):
		return false
	}
	if c.any {
		wait = MaxNearerWait
	}
	if s.measureNodes(now, n) {
		s.measuredAt = now
	}
	s.horizon = horizon
	at := timers.Later(since, s.measuredAt).Add(wait)
	if at = timers.Later(at, s.Offers.measuredBy(now, c.offers, c.assign)); now.Before(at) {
		s.wait(at)
		return false
	}
	if s.spec.Pairwise() && s.measuresPairs(now, c, n) {
		return false
	}
	if s.own == asked || c.near == nil && s.ownAt.Before(now) && s.ownCounts(s.spec) && elsewhere(s.id, c.offers, c.assign) {
		s.askOwn(now, c.demand, n) // nobody is nearer, and it may have room that it has not reported
		s.wait(now.Add(time.Millisecond))
		return false
	}
	s.grant(now, c, n)
	return true
}

// wait sets when to decide again, whatever comes until then.
func (s *Search) wait(at time.Time) { s.decideAt, s.group.tried = at, 0 }

// looksOn reports whether nodes are looked or waited for that may be better than those of a choice.
func (s *Search) looksOn(now time.Time, c *choice, n *Next) bool {
	s.frontier.Refresh(s.Measured)
	if s.horizon = s.welcome(c); s.horizon < anywhere && !s.open(now, s.horizon) {
		s.meet()
	}
	nearest := !c.any && !s.spec.JointChoice() // only the distance of each node counts
	switch {
	case s.mayExtend(now):
		if s.wait(s.extended(now)); s.horizon == anywhere {
			s.group.tried = len(c.offers)
		}
		return true
	case nearest && s.awaitsRoom(now, c, n):
		return true
	case s.askAgain(now, n) || nearest && s.frontier.Awaits(now, s.horizon):
		s.wait(s.extended(now))
		return true
	}
	return false
}

// welcome is how far away nodes may be to be better than those of a choice.
func (s *Search) welcome(c *choice) time.Duration {
	switch {
	case c.any || len(c.assign) < c.demand.Wanted:
		return anywhere
	case placement.Strategy(s.spec.Strategy) == placement.Compact:
		return s.welcomeCompact(c)
	}
	return nearer(c.worst)
}

// awaitsRoom reports whether room that others may leave is waited for, or is to be theirs.
func (s *Search) awaitsRoom(now time.Time, c *choice, n *Next) bool {
	// Not even a neighbour is as near as this node itself.
	_, until := s.hoped(now, max(s.worthAWait(c.worst), min(c.worst, 2)))
	switch recalled, _ := s.Offers.recalled(c.offers, c.assign); {
	case !now.Before(until):
		return false
	case s.wantedBack(now, c.offers, c.assign):
		s.horizon = anywhere
		return true
	case recalled > 0: // who waits for them has waited enough
		return false
	}
	n.Release = append(n.Release, s.unassigned(c.offers, c.assign, c.demand.behind)...)
	n.Recall = s.recall(now, ranges(c.offers, c.assign))
	s.wait(until)
	return true
}

// grant takes the offers of a choice.
func (s *Search) grant(now time.Time, c *choice, n *Next) {
	passed(now, s.nodeAnswers)
	places := make([][]int, len(c.offers))
	for rank, i := range c.assign {
		places[i] = append(places[i], rank)
	}
	for i, list := range places {
		if len(list) == 0 {
			continue
		}
		id := vicinity.ID(c.offers[i].Node)
		o := s.Offers[id]
		delete(s.Offers, id)
		if s.fate(id, taken); s.Shared {
			s.assign(now, id, o, len(list))
			s.fate(id, takenForOther)
		}
		n.Grant = append(n.Grant, Choice{Demand: c.number, Node: id, Name: s.Answers[id].Name, Key: o.key, RTT: o.rtt,
			Places: list, Replaced: c.near.replaced(id, list)})
	}
	s.own, s.horizon, s.vain = notAsked, 0, 0
	d := c.demand
	if n.Sizes = c.sizes; d.Groups != nil { // it has all that it will have
		d.Wanted = len(c.assign)
	}
	if d.Wanted -= len(c.assign); d.Wanted > 0 {
		s.horizon = anywhere
	}
	if d.Least = max(1, d.Least-len(c.assign)); s.spec.FixedSize() {
		d.Least = d.Wanted
	}
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

// unassigned lets go of the offers that no rank was assigned to, and lists them; none if jobs behind
// this one may need them.
func (s *nodeAnswers) unassigned(offers []placement.Offer, assign []int, behind int) []Returned {
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
	if s.Shared {
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
