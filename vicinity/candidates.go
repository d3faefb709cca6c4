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
	oldSample     = 2 * time.Minute  // a round trip measured before may be another one now
	nearKept      = 24               // nearest that are measured again, and told when this node moves
	tellPings     = 4                // of these in a round
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
	tell  []ID          // who was near this node at another place
	told  time.Duration // since when it is where they were told it is
}

// begin forgets all candidates, as this node is at another place now, and takes whom to
// tell of it.
func (s *candidates) begin(tell []ID) { s.list, s.tell = nil, slices.Repeat(tell, fewLength) }

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
		if p := s.peers.known[n.ID]; p != nil && p.rtt > 0 && !s.contradicted(p, est) {
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

// contradicted reports whether a measured round trip is to be measured again, as it cannot
// be true by way of who named the peer: it has few samples, or old ones.
func (s *candidates) contradicted(p *peer, est time.Duration) bool {
	if p.count < freshSample && muchNearer(2*est, p.rtt) {
		return true
	}
	return muchNearer(est, p.rtt) && s.at-p.sampled > oldSample && s.at-p.asked > oldSample
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
	s.inform()
	for _, p := range s.outdated(budget - 1 - n) {
		s.pings.ping(p)
		n++
	}
	for range budget - n {
		id := s.draw(func(id ID) bool { p := s.peers.known[id]; return p == nil || p.rtt == 0 && s.mayAsk(id) })
		if id == "" {
			return
		}
		s.pings.ping(s.peers.get(id))
	}
}

// inform pings some of those who were near this node where it was before, each as often as
// it needs to believe it; with the ping they get its bearings.
func (s *candidates) inform() {
	if len(s.where.bearings()) == 0 {
		return
	}
	if s.where.moved > s.told {
		s.told = s.where.moved
		var near []ID
		for _, p := range s.peers.ranked() {
			if len(near) < nearKept && p.link == nil && s.where.outdated(p) && !slices.Contains(s.tell, p.id) {
				near = append(near, p.id)
			}
		}
		s.tell = append(s.tell, slices.Repeat(near, fewLength)...)
	}
	n := min(tellPings, len(s.tell))
	for _, id := range s.tell[:n] {
		if s.member(id) {
			s.pings.ping(s.peers.get(id))
		}
	}
	s.tell = s.tell[n:]
}

// outdated returns up to so many members without a link that are to be measured again: all
// that were last measured before this node came to doubt where it is, the nearest first,
// else the one of the nearest that was measured longest ago, if that is long ago.
func (s *candidates) outdated(most int) (list []*peer) {
	if most <= 0 {
		return nil
	}
	near := s.peers.ranked()
	if s.at-s.where.doubted < movedTime {
		for _, p := range near {
			if len(list) < most && p.sampled < s.where.doubted && s.mayAsk(p.id) {
				list = append(list, p)
			}
		}
		if len(list) > 0 {
			return list
		}
	}
	var worst *peer
	for _, p := range near[:min(len(near), nearKept)] {
		if s.at-p.sampled > oldSample && s.mayAsk(p.id) && (worst == nil || p.sampled < worst.sampled) {
			worst = p
		}
	}
	if worst != nil {
		list = append(list, worst)
	}
	return list
}

// propose makes candidates of the members that seem, by their bearings, nearer
// than the farthest near neighbour.
func (s *candidates) propose() {
	mine, bound := s.where.bearings(), s.links.bound()
	for _, p := range s.peers.list {
		if p.rtt > 0 && (p.renew || p.doubtful()) && p.rtt < 2*bound && s.mayAsk(p.id) {
			s.list = append(s.list, candidate{id: p.id, est: p.rtt})
			continue
		}
		if p.rtt > 0 && !p.renew && !s.where.outdated(p) && !s.where.heldUp(p) || len(p.at) == 0 || !s.mayAsk(p.id) {
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
	if p == nil || !s.cfg.Roster.Has(id) {
		return p == nil && s.cfg.Roster.Has(id)
	}
	pause := askAgain
	if p.doubtful() {
		pause = freshPause << min(p.row.all, 4)
	}
	return p.link == nil && s.at-p.asked >= pause
}
