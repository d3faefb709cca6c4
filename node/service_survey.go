package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"zorilla/internal/codec"
	"zorilla/node/api"
	"zorilla/node/usage"
	"zorilla/vicinity"
)

const (
	surveyNearest  = 64               // members that are asked
	surveyAgain    = time.Second      // and not asked again before: what is done at one is seen at all at once
	surveySilent   = 15 * time.Second // the same for those that gave no answer, which others wait for
	maxWhy         = 500              // bytes
	surveyBelieved = 30 * time.Second // what one has told is not known any more then
	maxTold        = 64               // links that a member is believed to have
	clusterAgain   = 5 * time.Second  // clusters are found anew no sooner: it takes the square of the members
	maxFar         = 24               // clusters whose distances are told, the nearest
	maxPairs       = 4                // members of each that are looked at for that
)

// memberStats remembers what members have told of their load and links.
type memberStats struct {
	asking chan struct{} // holds one token, of whoever asks

	mu   sync.Mutex // guards told; not held while anybody is asked
	told map[vicinity.ID]memberStat
}

type memberStat struct {
	asked  time.Time
	silent bool      // no answer came
	at     time.Time // when it was asked what it has told last; zero = nothing yet
	busy   int
	state  string
	why    string
	links  []api.Link
	lately *usage.Lately
}

func newMemberStats() *memberStats {
	return &memberStats{asking: make(chan struct{}, 1), told: map[vicinity.ID]memberStat{}}
}

// Survey asks the nearest members how they are, then lists all.
func (s *memberService) Survey(ctx context.Context) ([]api.NodeInfo, error) {
	select {
	case s.stats.asking <- struct{}{}:
		defer func() { <-s.stats.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	list, err := s.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	s.stats.forget(list)
	due := s.stats.due(list[1:], time.Now())
	if len(due) == 0 {
		return list, nil
	}
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	inParallel(due, func(id *vicinity.ID) {
		asked := time.Now()
		info, err := s.net.at(*id).Node(ask)
		switch {
		case ctx.Err() != nil: // it was not its fault
		case err != nil:
			s.stats.silence(*id, asked)
		default:
			s.stats.put(*id, memberStat{at: asked, busy: info.Busy, state: info.State, why: info.Why, links: info.Links, lately: info.Lately})
		}
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s.Nodes(ctx)
}

// due returns which of the nearest members are to be asked.
func (m *memberStats) due(nearest []api.NodeInfo, now time.Time) []vicinity.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var due []vicinity.ID
	for _, n := range nearest[:min(len(nearest), surveyNearest)] {
		t, wait := m.told[n.ID], surveyAgain
		if t.silent {
			wait = surveySilent
		}
		if now.Sub(t.asked) >= wait {
			due = append(due, n.ID)
		}
	}
	return due
}

// silence notes that a member did not answer. What it told before stands.
func (m *memberStats) silence(id vicinity.ID, asked time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.told[id]
	t.asked, t.silent = asked, true
	m.told[id] = t
}

// put takes what a member has told, as far as it can be true.
func (m *memberStats) put(id vicinity.ID, t memberStat) {
	var links []api.Link
	for _, l := range t.links[:min(len(t.links), maxTold)] {
		if l.ID.Valid() && l.ID != id && (l.Kind == linkNear || l.Kind == linkFar) {
			links = append(links, l)
		}
	}
	if !t.lately.Sound() {
		t.lately = nil
	}
	t.asked, t.links, t.busy = t.at, links, max(0, t.busy)
	switch t.state {
	case stateBroken, stateHours:
	case stateDraining, statePaused:
		t.why = ""
	default:
		t.state, t.why = "", ""
	}
	t.why = t.why[:min(len(t.why), maxWhy)]
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told[id] = t
}

// forget drops who is no member any more.
func (m *memberStats) forget(members []api.NodeInfo) {
	is := make(map[vicinity.ID]bool, len(members))
	for _, n := range members {
		is[n.ID] = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.told {
		if !is[id] {
			delete(m.told, id)
		}
	}
}

// fill writes down what the members have told not too long ago.
func (m *memberStats) fill(list []api.NodeInfo, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range list {
		n := &list[i]
		if t := m.told[n.ID]; now.Sub(t.at) < surveyBelieved {
			n.Told, n.Busy, n.State, n.Why, n.Links, n.Lately = t.at, min(t.busy, n.Slots), t.state, t.why, t.links, t.lately
		}
	}
}

// clusters remembers who belongs together.
type clusters struct {
	mu    sync.Mutex // guards what follows
	found time.Time
	names map[vicinity.ID]string
	far   []api.Distance
}

// of returns the name of each member's cluster, and the distances of clusters, at most
// clusterAgain old.
func (c *clusters) of(table *vicinity.Table) (names map[vicinity.ID]string, far []api.Distance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.names != nil && time.Since(c.found) < clusterAgain {
		return c.names, c.far
	}
	c.names, c.found = map[vicinity.ID]string{}, time.Now()
	list := table.Clusters()
	for _, cluster := range list {
		for _, id := range cluster.Members {
			c.names[id] = cluster.Name
		}
	}
	c.far = distances(list[:min(len(list), maxFar)], table.Distance)
	return c.names, c.far
}

// distances returns the median distances within and between clusters.
func distances(list []vicinity.Cluster, distance func(a, b vicinity.ID) (time.Duration, bool)) (far []api.Distance) {
	for i, a := range list {
		for k, b := range list[:i+1] {
			var some []time.Duration
			for x, from := range spread(a.Members) {
				for y, to := range spread(b.Members) {
					if d, ok := distance(from, to); ok && (i != k || x > y) {
						some = append(some, d)
					}
				}
			}
			if slices.Sort(some); len(some) > 0 {
				far = append(far, api.Distance{From: a.Name, To: b.Name, RTT: codec.Duration(some[len(some)/2])})
			}
		}
	}
	return far
}

// spread returns at most maxPairs of a list, from all over it.
func spread(ids []vicinity.ID) []vicinity.ID {
	if len(ids) <= maxPairs {
		return ids
	}
	some := make([]vicinity.ID, maxPairs)
	for i := range some {
		some[i] = ids[i*len(ids)/maxPairs]
	}
	return some
}
