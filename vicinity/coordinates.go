package vicinity

import (
	"math"
	"slices"
	"time"
)

// landmark is one of the members with the smallest IDs, so that all nodes
// choose the same ones without a word.
type landmark struct {
	id  ID
	tag uint16
	at  Coordinate
	set bool // at is known
}

// coordinates knows where nodes are: the landmarks, sorted by tag, and by their
// bearings to these the others. Coordinates are worked out when somebody asks,
// never sent.
type coordinates struct {
	*local
	peers     *peers
	landmarks []landmark
	stale     bool          // the landmarks have to be chosen anew
	solved    time.Duration // when their coordinates were worked out
	issue     int           // counts how often these changed; 0 = never
	own       bearings      // complete, taken less than a second ago; or old
	taken     time.Duration // when own was taken
	settled   bearings      // own, of up to a minute ago
	since     time.Duration // when settled was taken
	moved     time.Duration // when they were last those of another place
	doubted   time.Duration // landmarks that were not asked since are asked soon
	gone      departed
}

const (
	solveEvery      = 5 * time.Second
	moved           = 5e-4                   // seconds; less does not make a new issue of the coordinates
	landmarkSamples = 3                      // of each landmark, wanted at first
	landmarkPings   = 3                      // to landmarks in a round, at least
	landmarkLoad    = 3000                   // pings that a landmark gets in a second at most, if all start at once
	landmarkRetry   = 400 * time.Millisecond // doubling
	// absurd is by how much bearings may contradict what was measured. Real
	// ones do so by milliseconds; who is off by this does not mean to be right.
	absurd = time.Second
)

func newCoordinates(l *local, s *peers) *coordinates {
	c := &coordinates{local: l, peers: s, stale: true, solved: never, since: never, moved: never, doubted: never}
	s.needs = c.isLandmark
	return c
}

// current returns the landmarks that there are now.
func (c *coordinates) current() []landmark {
	if !c.stale {
		return c.landmarks
	}
	c.stale = false
	least := make([]ID, 0, maxLandmarks+1)
	for i := range c.cfg.Roster.Len() {
		id := c.cfg.Roster.At(i)
		if len(least) == maxLandmarks && id > least[maxLandmarks-1] {
			continue
		}
		at, _ := slices.BinarySearch(least, id)
		least = slices.Insert(least, at, id)
		least = least[:min(len(least), maxLandmarks)]
	}
	before := c.landmarks
	c.landmarks = nil
	for _, id := range least {
		m := landmark{id: id, tag: tagOf(id)}
		if i := slices.IndexFunc(before, func(b landmark) bool { return b.id == id }); i >= 0 {
			m = before[i]
		}
		c.landmarks = append(c.landmarks, m)
	}
	slices.SortStableFunc(c.landmarks, func(a, b landmark) int { return int(a.tag) - int(b.tag) })
	// Of two with one tag, by great chance, one is enough.
	c.landmarks = slices.CompactFunc(c.landmarks, func(a, b landmark) bool { return a.tag == b.tag })
	c.solved, c.own = never, nil
	return c.landmarks
}

func (c *coordinates) isLandmark(id ID) bool {
	return slices.ContainsFunc(c.current(), func(m landmark) bool { return m.id == id })
}

// cameOrWent takes note of a member that did.
func (c *coordinates) cameOrWent(id ID) {
	if len(c.landmarks) < maxLandmarks || slices.ContainsFunc(c.landmarks, func(m landmark) bool { return id <= m.id }) {
		c.stale = true
	}
}

// bearings returns this node's own, if most landmarks have been measured. One
// sample may be far off, two hardly ever are. The result must not be changed.
func (c *coordinates) bearings() bearings {
	all := c.current()
	if c.at-c.taken < time.Second && len(c.own) > 0 {
		return c.own
	}
	c.own = nil
	var out bearings
	for _, m := range all {
		if m.id == c.cfg.Self {
			out = append(out, bearing{tag: m.tag})
		} else if p := c.peers.known[m.id]; p != nil && p.count > 1 {
			out = append(out, bearing{m.tag, p.rtt})
		}
	}
	if 4*len(out) < 3*len(all) {
		return nil
	}
	if len(out) == len(all) {
		c.own, c.taken = out, c.at
		c.notice(out)
	}
	return out
}

// notice compares this node's bearings with those of up to a minute ago.
func (c *coordinates) notice(now bearings) {
	other := elsewhere(c.settled, now)
	if other {
		c.moved = c.at
	}
	if other || c.at-c.since > time.Minute {
		c.settled, c.since = now, c.at
	}
}

// doubt has the landmarks measured again soon, as this node may be at another place.
func (c *coordinates) doubt() {
	if c.at-c.doubted > movedTime {
		c.doubted = c.at
	}
}

// outdated reports whether a peer was last measured from another place.
func (c *coordinates) outdated(p *peer) bool { return p.sampled < c.moved }

// due returns the landmarks that are to be pinged now, since they are not
// measured well. The more nodes there are, the less often each asks, since all
// ask the same few.
func (c *coordinates) due() []*peer {
	pause := max(time.Minute, time.Duration(c.others())*250*time.Millisecond)
	most := max(landmarkPings, landmarkLoad*maxLandmarks/max(1, c.others()))
	var list []*peer
	all := c.current()
	first := 0
	if len(all) > 0 {
		first = c.cfg.Rand.IntN(len(all))
	}
	for i := range all {
		m := all[(first+i)%len(all)]
		if m.id == c.cfg.Self || len(list) >= most {
			continue
		}
		p := c.peers.get(m.id)
		if since := c.at - p.asked; since > pause || p.count < landmarkSamples && since > landmarkRetry<<min(p.tries, 7) ||
			p.asked < c.doubted || p.doubtful() && since > freshPause {
			p.tries++
			list = append(list, p)
		}
	}
	return list
}

// solve works out where the landmarks are, from their bearings to each other.
// It begins with the coordinates of last time, so that a map stays as it is.
func (c *coordinates) solve() {
	all := c.current()
	if c.at-c.solved < solveEvery && c.issue > 0 {
		return
	}
	c.solved = c.at
	before := slices.Clone(all)
	seen := make([]bearings, len(all))
	for i := range all {
		seen[i] = c.bearingsOf(all[i].id)
		if !all[i].set { // somewhere, the same at every node
			for d := range all[i].at.Vec {
				all[i].at.Vec[d] = 0.02 * (float64(tagOf(all[i].id[d+1:]))/math.MaxUint16 - 0.5)
			}
		}
	}
	if len(all) == 1 {
		all[0].set = true
	}
	for round := range 100 {
		for i := range all {
			if list := sights(all, seen, i); len(list) > 0 {
				all[i].at = all[i].at.pull(list, round >= 50)
				all[i].set = true
			}
		}
	}
	for i := range all {
		if all[i].set != before[i].set || all[i].at.Distance(before[i].at).Seconds() > moved {
			c.issue++
			return
		}
	}
	c.issue = max(1, c.issue)
}

// sights returns what is known of the way from one landmark to the others.
func sights(all []landmark, seen []bearings, i int) []witness {
	var list []witness
	for k := range all {
		if k == i {
			continue
		}
		rtt, ok := seen[i].to(all[k].tag)
		if back, ok2 := seen[k].to(all[i].tag); ok2 && (!ok || back < rtt) {
			rtt, ok = back, true
		}
		if ok {
			list = append(list, witness{at: all[k].at, rtt: rtt.Seconds()})
		}
	}
	return list
}

// bearingsOf returns the last known bearings of a node, also of one that has left, or this one's.
func (c *coordinates) bearingsOf(id ID) bearings {
	if id == c.cfg.Self {
		return c.bearings()
	}
	if p := c.peers.known[id]; p != nil {
		return p.at
	}
	return c.gone.at[id]
}

// learn notes the bearings that a peer had at a time, unless newer ones are
// known or they cannot be true.
func (c *coordinates) learn(p *peer, at bearings, when time.Duration) {
	if len(at) == 0 || len(p.at) > 0 && when <= p.located {
		return
	}
	if p.rtt > 0 && c.contradicts(at, p.rtt) {
		c.stats.Absurd++
		return
	}
	if p.link == nil && c.at-p.shifted > movedTime && elsewhere(p.at, at) {
		p.renew = true
	}
	p.at, p.located, p.issue = at, when, 0
}

// check drops a peer's bearings if they contradict the round trip to it, at
// most once a second.
func (c *coordinates) check(p *peer) {
	if c.at-p.checked > time.Second && len(p.at) > 0 {
		p.checked = c.at
		if c.contradicts(p.at, p.rtt) {
			p.at = nil
			c.stats.Absurd++
		}
	}
}

// contradicts reports whether bearings cannot be those of a node so far away.
func (c *coordinates) contradicts(at bearings, rtt time.Duration) bool {
	least, ok := c.bearings().apart(at)
	return ok && least-rtt > absurd
}

// heldUp reports whether the only packet that measured a peer must have been held up, since
// it is next door by its bearings.
func (c *coordinates) heldUp(p *peer) bool {
	if p.count != 1 || p.rtt < nextDoor || len(p.at) == 0 {
		return false
	}
	least, _, common := c.bearings().compare(p.at)
	return same(least, common)
}

// of returns where a node is; see Core.Coordinate.
func (c *coordinates) of(id ID) (Coordinate, bool) {
	c.solve()
	all := c.current()
	if i := slices.IndexFunc(all, func(m landmark) bool { return m.id == id }); i >= 0 && all[i].set {
		return all[i].at, true
	}
	p := c.peers.known[id]
	if p != nil && p.issue == c.issue {
		return p.place, true
	}
	var list []witness
	for _, b := range c.bearingsOf(id) {
		if i := slices.IndexFunc(all, func(m landmark) bool { return m.tag == b.tag }); i >= 0 && all[i].set {
			list = append(list, witness{at: all[i].at, rtt: b.rtt.Seconds()})
		}
	}
	if len(list) < min(3, len(all)) || len(list) == 0 {
		return Coordinate{}, false
	}
	at := locate(list)
	if p != nil {
		p.place, p.issue = at, c.issue
	}
	return at, true
}

// distance predicts the round trip between two nodes; see Core.Distance.
func (c *coordinates) distance(a, b ID) (time.Duration, bool) {
	if a == b {
		return 0, true
	}
	for range 2 {
		if rtt, ok := c.peers.rtt(b); ok && a == c.cfg.Self {
			return rtt, true
		}
		if rtt, ok := c.bearingsOf(a).to(tagOf(b)); ok && c.isLandmark(b) {
			return max(rtt, minRTT), true
		}
		a, b = b, a
	}
	from, ok := c.of(a)
	to, ok2 := c.of(b)
	if !ok || !ok2 {
		return 0, false
	}
	return predict(from, to, c.bearingsOf(a), c.bearingsOf(b)), true
}

// predict returns the round trip between two nodes: that of their coordinates,
// as far as their bearings allow it.
func predict(from, to Coordinate, a, b bearings) time.Duration {
	d := from.Distance(to)
	least, most, common := a.compare(b)
	if common < 3 {
		return d
	}
	if same(least, common) {
		most = least
	}
	return max(minRTT, least, min(d, most))
}
