package search

import (
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// old is about an offer whose distance was not measured within FreshFor.
type old struct {
	least time.Duration // round trip, as it was
	most  time.Duration // that it can be now
	asked time.Time     // since when it is being measured; zero = it is not
}

// distance says how far a node is that has answered, if its round trip was measured to be
// so long, or is not known: exact is false for an upper bound.
func (s *Search) distance(now time.Time, id vicinity.ID, rtt time.Duration, round int) (at time.Duration, exact bool, past *old) {
	since := jobs.MaxApart // an offer of somebody's queue, from before this node was started again
	if !s.FloodedAt.IsZero() {
		since = min(since, now.Sub(s.FloodedAt))
	}
	if rtt == 0 {
		return since, false, nil
	}
	if id == s.id || s.Fresh(id) > 0 {
		return rtt, true, nil
	}
	if round == s.number()-1 && since < rtt*3/4 { // it has come nearer
		rtt = since
	}
	return rtt, true, &old{least: rtt, most: since}
}

// toMeasure lists the nodes whose offers have an old distance, and takes it that they are
// being measured, while the search waits anyway for who may be nearer.
func (o offers) toMeasure(now time.Time) (ids []vicinity.ID) {
	for id, offer := range o {
		if offer.old != nil && offer.old.asked.IsZero() && len(ids) < maxProbes {
			offer.old.asked = now
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// measuredBy returns when to look again whether the offers that ranks were assigned to have
// been measured, or when that is not waited for any longer; zero = there is nothing to wait for.
func (o offers) measuredBy(now time.Time, list []placement.Offer, assign []int) (at time.Time) {
	for _, i := range assign {
		past := o[vicinity.ID(list[i].Node)].old
		if past == nil || past.asked.IsZero() {
			continue
		}
		next := past.asked.Add(max(past.least*9/8+time.Millisecond, 2*now.Sub(past.asked)))
		last := past.asked.Add(min(max(past.least, past.most)*9/8+time.Millisecond, MaxNearerWait))
		at = timers.Later(at, timers.Earlier(next, last))
	}
	return at
}
