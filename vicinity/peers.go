package vicinity

import (
	"cmp"
	"slices"
	"time"
)

// peers are the records of other nodes, of which so many are kept as the
// configuration says.
type peers struct {
	*local
	known map[ID]*peer
	list  []*peer       // the same, in an order that does not depend on the map
	order []*peer       // cache of ranked
	stale bool          // order is out of date
	needs func(ID) bool // whose record is not given up for that of another
}

func newPeers(l *local) *peers { return &peers{local: l, known: make(map[ID]*peer)} }

// get returns the record of id, making one if there is none.
func (s *peers) get(id ID) *peer {
	if p := s.known[id]; p != nil {
		return p
	}
	if len(s.list) >= s.cfg.Peers {
		s.evict()
	}
	p := &peer{id: id, samples: unmeasured(), heard: s.at, asked: never, backoff: never}
	s.known[id] = p
	s.list = append(s.list, p)
	return p
}

func (s *peers) forget(p *peer) {
	delete(s.known, p.id)
	i := slices.Index(s.list, p)
	s.list[i] = s.list[len(s.list)-1]
	s.list[len(s.list)-1] = nil
	s.list = s.list[:len(s.list)-1]
	s.stale = true
}

// evict forgets the peer not heard of for longest that is neither linked nor
// one of the nearest.
func (s *peers) evict() {
	keep := s.ranked()
	keep = keep[:min(len(keep), s.cfg.Peers/2)]
	limit := time.Duration(0)
	if len(keep) > 0 {
		limit = keep[len(keep)-1].rtt
	}
	var oldest *peer
	for _, p := range s.list {
		if p.link != nil || p.rtt > 0 && p.rtt <= limit || s.needs(p.id) {
			continue
		}
		if oldest == nil || p.heard < oldest.heard {
			oldest = p
		}
	}
	if oldest == nil { // many at exactly the same distance
		for _, p := range s.list {
			if p.link == nil {
				oldest = p
				break
			}
		}
	}
	if oldest != nil {
		s.forget(oldest)
	}
}

// sample takes a round trip to a peer. It reports whether the way there is another one
// than it was.
func (s *peers) sample(p *peer, rtt time.Duration) (shifted bool) {
	s.stale = true
	enough := rowLength
	if p.link == nil {
		enough = fewLength
	}
	return p.sample(s.at, max(rtt, minRTT), enough)
}

// moved reports whether most ways have just become other ones, so that it is this node that
// is at another place, and whether that may be since at least some have.
func (s *peers) moved() (sure, maybe bool) {
	since, shifted, steady := s.at, 0, 0
	for _, p := range s.list {
		if s.at-p.shifted < movedTime {
			since = min(since, p.shifted-rowTime) // so long it takes at least to find out
			shifted++
		}
	}
	if shifted < movedLeast {
		return false, false
	}
	for _, p := range s.list {
		if s.at-p.shifted >= movedTime && p.sampled > since && p.count > rowLength && !p.doubtful() {
			steady++
		}
	}
	return shifted > steady, true
}

// rtt returns the measured round trip to a member: the smallest of the last
// minutes.
func (s *peers) rtt(id ID) (time.Duration, bool) {
	p := s.known[id]
	if p == nil || p.rtt == 0 {
		return 0, false
	}
	return p.rtt, true
}

// ranked returns the measured peers, nearest first. The slice belongs to the
// records and is valid until the next sample or loss.
func (s *peers) ranked() []*peer {
	if !s.stale {
		return s.order
	}
	clear(s.order)
	s.order = s.order[:0]
	for _, p := range s.list {
		if p.rtt > 0 {
			s.order = append(s.order, p)
		}
	}
	slices.SortFunc(s.order, func(a, b *peer) int {
		if a.rtt != b.rtt {
			return cmp.Compare(a.rtt, b.rtt)
		}
		return cmp.Compare(a.id, b.id)
	})
	s.stale = false
	return s.order
}
