package vicinity

import (
	"cmp"
	"slices"
	"time"
)

const (
	maxCandidates = 40
	activePings   = 5                // to candidates, in an active round
	calmPings     = 2                // in a calm one
	askAgain      = 30 * time.Second // a candidate is not pinged again before
)

// candidate is a member that may be near.
type candidate struct {
	id  ID
	est time.Duration // upper bound by way of who named it; maxRTT = unknown
}

// candidates looks for members that are nearer than the neighbours.
type candidates struct {
	*local
	peers *peers
	where *coordinates
	links *links
	pings *pings
	list  []candidate
}

// joined takes a new member, of which nothing is known.
func (s *candidates) joined(id ID) {
	if len(s.list) < maxCandidates {
		s.list = append(s.list, candidate{id: id, est: maxRTT})
	}
}

// learn takes the names of a list as candidates, unless they cannot be nearer
// than the neighbours: who is 0.2 ms from a node 10 ms away is 9.8 ms away.
func (s *candidates) learn(from *peer, names []named) {
	bound := s.links.bound()
	for _, n := range names {
		if !s.member(n.ID) {
			continue
		}
		hint := time.Duration(n.RTT) * time.Microsecond
		est := maxRTT
		if from.rtt > 0 {
			est = min(maxRTT, from.rtt+hint)
			if from.rtt-hint > bound || hint-from.rtt > bound {
				continue
			}
		}
		// A name known already is of interest only if its few samples look
		// too large to be true.
		if p := s.peers.known[n.ID]; p != nil && p.rtt > 0 && (p.count >= freshSample || !muchNearer(2*est, p.rtt)) {
			continue
		}
		if i := slices.IndexFunc(s.list, func(x candidate) bool { return x.id == n.ID }); i >= 0 {
			s.list[i].est = min(s.list[i].est, est)
			continue
		}
		if len(s.list) >= maxCandidates {
			s.list = slices.Delete(s.list, 0, 1)
		}
		s.list = append(s.list, candidate{id: n.ID, est: est})
	}
}

// explore pings the most promising candidates, and always a random member or
// more that was not measured, since lists alone may know only one corner.
func (s *candidates) explore(budget int) {
	s.list = slices.DeleteFunc(s.list, func(x candidate) bool { return !s.mayAsk(x.id) })
	s.propose()
	slices.SortStableFunc(s.list, func(a, b candidate) int { return cmp.Compare(a.est, b.est) })
	n := min(budget-1, len(s.list))
	for _, x := range s.list[:n] {
		s.pings.ping(s.peers.get(x.id))
	}
	s.list = slices.Delete(s.list, 0, n)
	for range budget - n {
		id := s.draw(func(id ID) bool { p := s.peers.known[id]; return p == nil || p.rtt == 0 && s.mayAsk(id) })
		if id == "" {
			return
		}
		s.pings.ping(s.peers.get(id))
	}
}

// propose makes candidates of the members that seem, by their bearings, nearer
// than the farthest near neighbour.
func (s *candidates) propose() {
	mine, bound := s.where.bearings(), s.links.bound()
	for _, p := range s.peers.list {
		if p.rtt > 0 || len(p.at) == 0 || !s.mayAsk(p.id) {
			continue
		}
		least, ok := mine.apart(p.at)
		if !ok || !muchNearer(least, bound) || slices.ContainsFunc(s.list, func(x candidate) bool { return x.id == p.id }) {
			continue
		}
		s.list = append(s.list, candidate{id: p.id, est: least})
	}
}

// mayAsk reports whether a member is worth a ping now.
func (s *candidates) mayAsk(id ID) bool {
	p := s.peers.known[id]
	return s.cfg.Roster.Has(id) && (p == nil || p.link == nil && s.at-p.asked >= askAgain)
}
