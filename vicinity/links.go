package vicinity

import (
	"cmp"
	"slices"
	"time"
)

const (
	keepAlive   = 10 * time.Second       // a quiet link is pinged this often
	firstRetry  = 500 * time.Millisecond // doubling
	maxTries    = 4                      // pings without an answer, 7.5 s in all
	linger      = 3 * time.Second        // a link that nobody wants lives on
	freshSample = 3                      // a new neighbour is measured this often first
	freshPause  = 1500 * time.Millisecond
)

// link is one end of a link. It exists while at least one end wants it, the
// other end answers, and it was not refused.
type link struct {
	peer      *peer
	want      claim // of this node: none, near or far
	theirs    claim // what the other end said last
	confirmed bool  // the other end keeps it too
	since     time.Duration
	idle      time.Duration // since when nobody wants it; forever = somebody does
	due       time.Duration // next ping
	tries     int           // pings since the other end was heard
}

func (l *link) unwanted() bool { return !l.want.wants() && !l.theirs.wants() }

// end is when the link is given up because nobody wants it.
func (l *link) end() time.Duration {
	if l.idle == forever {
		return forever
	}
	return l.idle + linger
}

// settle notes since when nobody wants the link.
func (l *link) settle(at time.Duration) {
	switch {
	case !l.unwanted():
		l.idle = forever
	case l.idle == forever:
		l.idle = at
	}
}

func (l *link) far() bool {
	return l.want == claimFar || !l.want.wants() && l.theirs == claimFar
}

// claim is what this end says of the link.
func (p *peer) claim() claim {
	switch {
	case p.link == nil:
		return claimNone
	case p.link.want.wants():
		return p.link.want
	default:
		return claimHeld
	}
}

func (c *Core) addLink(p *peer) *link {
	p.link = &link{peer: p, since: c.at, idle: forever, due: c.at}
	c.links = append(c.links, p.link)
	c.version++
	return p.link
}

func (c *Core) unlink(l *link) {
	if l.want.wants() {
		c.changed()
	}
	l.peer.link = nil
	c.links = slices.DeleteFunc(c.links, func(m *link) bool { return m == l })
	c.version++
}

// drop ends a link and tells the other end.
func (c *Core) drop(l *link) {
	c.unlink(l)
	c.send(l.peer.id, message{Kind: kindDrop})
}

// room reports whether one more link can be kept; if need be it gives up one
// that nobody wants or, for a wish of this node's own, the farthest of those
// that only others want.
func (c *Core) room(own bool) bool {
	if len(c.links) < maxLinks(c.cfg) {
		return true
	}
	var worst *link
	for _, l := range c.links {
		if l.want.wants() || !own && !l.unwanted() {
			continue
		}
		if worst == nil || l.unwanted() && !worst.unwanted() ||
			l.unwanted() == worst.unwanted() && l.peer.distant() > worst.peer.distant() {
			worst = l
		}
	}
	if worst == nil {
		return false
	}
	c.drop(worst)
	return true
}

// want asks for a link, or changes what is said of it. The question is a
// ping, so that the answer measures as well.
func (c *Core) want(p *peer, as claim) {
	l := p.link
	if l != nil && l.want == as {
		return
	}
	if l == nil {
		if !c.room(true) {
			return
		}
		l = c.addLink(p)
	}
	wasFar := l.far()
	l.want = as
	l.settle(c.at)
	if l.far() != wasFar {
		c.version++
	}
	c.changed()
	c.probe(l)
}

func (c *Core) unwant(l *link) { c.want(l.peer, claimNone) }

// probe pings the other end of a link.
func (c *Core) probe(l *link) {
	l.due = c.at + firstRetry<<min(l.tries, maxTries)
	l.tries++
	c.ping(l.peer)
}

// alive notes that the other end was heard.
func (c *Core) alive(l *link) {
	l.confirmed = true
	l.tries = 0
	pause := keepAlive
	if l.peer.count < freshSample {
		pause = freshPause
	}
	l.due = c.at + c.jitter(pause)
}

// tend pings quiet links and gives up the dead and the unwanted.
func (c *Core) tend() {
	replan := false
	for _, l := range slices.Clone(c.links) {
		switch {
		case l.peer.link != l:
		case c.at >= l.end():
			c.drop(l)
		case c.at < l.due:
		case l.tries >= maxTries:
			l.peer.shun = c.at + c.jitter(calmPause)
			replan = replan || l.want.wants()
			c.drop(l)
		default:
			c.probe(l)
		}
	}
	if replan {
		c.plan()
	}
}

// claimed takes what the other end says of the link in a ping, accepting a
// link that it asks for if there is room.
func (c *Core) claimed(p *peer, says claim) {
	l := p.link
	switch {
	case l == nil && says.wants() && c.room(false):
		l = c.addLink(p)
	case l == nil:
		return
	case says == claimNone:
		// It may have been sent before the other end took the link.
		if l.confirmed && c.at-l.since > linger {
			c.lose(l)
		}
		return
	}
	wasFar := l.far()
	l.theirs = says
	l.settle(c.at)
	if l.far() != wasFar {
		c.version++
	}
	c.alive(l)
}

// lose ends a link that the other end does not keep. If this node wants it
// the other end had no room; another one is looked for.
func (c *Core) lose(l *link) {
	if l.want.wants() {
		l.peer.shun = c.at + c.jitter(calmPause)
		c.planSoon()
	}
	c.unlink(l)
}

// plan brings the links wanted in line with what is known.
func (c *Core) plan() {
	c.nextPlan = forever
	if c.others() <= c.cfg.Near+c.cfg.Far {
		c.wantAll()
		return
	}
	c.wantNear()
	c.wantFar()
}

// wantAll links to every member: the network is smaller than the number of
// links wanted.
func (c *Core) wantAll() {
	for i := range c.cfg.Roster.Len() {
		id := c.cfg.Roster.At(i)
		if id == c.cfg.Self {
			continue
		}
		if p := c.peer(id); p.shun <= c.at {
			c.want(p, claimNear)
		}
	}
}

// wantNear chooses the nearest. A neighbour is replaced only by one that is
// clearly nearer, and among those about as near a link that exists already is
// taken first, which keeps the number of links down.
func (c *Core) wantNear() {
	near := make([]*link, 0, c.cfg.Near+c.cfg.Far)
	for _, l := range c.links {
		if l.want == claimNear {
			near = append(near, l)
		}
	}
	slices.SortFunc(near, func(a, b *link) int { return cmp.Compare(a.peer.distant(), b.peer.distant()) })
	for len(near) > c.cfg.Near {
		c.unwant(near[len(near)-1])
		near = near[:len(near)-1]
	}
	for i := range near { // farthest first
		l := near[len(near)-1-i]
		best := c.nextNear()
		if best == nil || !clearly(best.rtt, l.peer.distant()) {
			break
		}
		c.unwant(l)
		c.want(best, claimNear)
	}
	for range c.cfg.Near - len(near) {
		p := c.nextNear()
		if p == nil {
			id := c.draw(func(id ID) bool { p := c.known[id]; return p == nil || p.link == nil && p.shun <= c.at })
			if id == "" {
				return
			}
			p = c.peer(id)
		}
		c.want(p, claimNear)
	}
}

// nextNear returns the best measured peer that is not a near link yet.
func (c *Core) nextNear() *peer {
	var best *peer
	for _, p := range c.ranked() {
		switch {
		case best != nil && clearly(best.rtt, p.rtt):
			return best
		case p.link != nil && p.link.want == claimNear:
		case p.link != nil && p.link.confirmed:
			return p
		case best == nil && p.link == nil && p.shun <= c.at:
			best = p
		}
	}
	return best
}

// wantFar keeps links to the members picked. Whom it cannot have it replaces
// by another random one.
func (c *Core) wantFar() {
	// A pick that is a near link for the moment stays one: would it be replaced
	// at once, members at middling distances, which are near links in the first
	// seconds, would be picked less often than all others.
	calm := c.at-c.lastChange >= calmAfter
	c.picks = slices.DeleteFunc(c.picks, func(id ID) bool { return !c.mayPick(id) && (calm || !c.nearNow(id)) })
	for len(c.picks) < c.cfg.Far {
		id := c.draw(func(id ID) bool { return c.mayPick(id) && !slices.Contains(c.picks, id) })
		if id == "" {
			break
		}
		c.picks = append(c.picks, id)
	}
	for _, l := range slices.Clone(c.links) {
		if l.want == claimFar && !slices.Contains(c.picks, l.peer.id) {
			c.unwant(l)
		}
	}
	for _, id := range c.picks {
		if !c.nearNow(id) {
			c.want(c.peer(id), claimFar)
		}
	}
}

// nearNow reports whether a member is wanted as one of the nearest.
func (c *Core) nearNow(id ID) bool {
	p := c.known[id]
	return p != nil && p.claim() == claimNear && c.cfg.Roster.Has(id)
}

func (c *Core) mayPick(id ID) bool {
	p := c.known[id]
	return c.cfg.Roster.Has(id) && (p == nil || p.shun <= c.at && p.claim() != claimNear)
}

// repick puts a new member, the n-th, among the picks with such a chance that
// the picks stay a uniform sample of all members. Thus the halves of a network
// that was cut grow together again when their members return.
func (c *Core) repick(id ID, n int) {
	for i := range c.picks {
		if c.cfg.Rand.IntN(n) == 0 && !slices.Contains(c.picks, id) && c.mayPick(id) {
			c.picks[i] = id
			c.planSoon()
		}
	}
	if len(c.picks) < c.cfg.Far {
		c.planSoon()
	}
}

// Neighbours returns the links: the near ones by round trip, then the far
// ones; of each kind the unmeasured last.
func (c *Core) Neighbours() []Neighbour {
	list := make([]Neighbour, 0, len(c.links))
	for _, l := range c.links {
		list = append(list, Neighbour{ID: l.peer.id, RTT: l.peer.rtt, Far: l.far()})
	}
	slices.SortFunc(list, func(a, b Neighbour) int {
		if a.Far != b.Far {
			if b.Far {
				return -1
			}
			return 1
		}
		// Unmeasured wraps around to the largest number.
		return cmp.Or(cmp.Compare(uint64(a.RTT)-1, uint64(b.RTT)-1), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// Version changes whenever Neighbours may return other members or kinds.
func (c *Core) Version() uint64 { return c.version }
