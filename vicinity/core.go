package vicinity

import "time"

// Core is the protocol without clock, goroutine or socket. Its methods must
// not be called at the same time. Those that take now return the packets to
// send; after each call the next Tick is due at Next. A time before an earlier
// one counts as that earlier one.
//
// It is made of parts, each of which knows those above it only, and the core
// knows all of them: it decides what an input means to which.
type Core struct {
	*local
	pace   *pace
	peers  *peers
	where  *coordinates
	pings  *pings
	links  *links
	wishes *wishes
	near   *candidates
}

// NewCore returns the core of a node that knows nobody yet.
func NewCore(cfg CoreConfig, now time.Time) *Core {
	l := &local{cfg: cfg.withDefaults(), epoch: now}
	c := &Core{local: l, pace: newPace(l), peers: newPeers(l)}
	c.where = newCoordinates(l, c.peers)
	c.pings = &pings{local: l, where: c.where}
	c.links = &links{local: l, pace: c.pace, pings: c.pings}
	c.wishes = &wishes{local: l, pace: c.pace, peers: c.peers, links: c.links}
	c.near = &candidates{local: l, told: never, peers: c.peers, where: c.where, links: c.links, pings: c.pings}
	return c
}

// Next returns when Tick is due.
func (c *Core) Next() time.Time {
	return c.epoch.Add(min(c.pace.nextRound, c.pace.nextPlan, c.links.due()))
}

// Tick does what is due.
func (c *Core) Tick(now time.Time) []Packet {
	c.enter(now)
	if c.links.maintain() {
		c.wishes.plan()
	}
	if c.at >= c.pace.nextRound {
		c.round()
	}
	if c.at >= c.pace.nextPlan {
		c.wishes.plan()
	}
	return c.flush()
}

// Join learns of a new member, which is in the roster already. To the first
// members links are asked for at once, whatever their distance.
func (c *Core) Join(now time.Time, id ID) []Packet {
	c.enter(now)
	c.where.cameOrWent(id)
	c.where.gone.remove(id)
	switch {
	case !c.member(id):
	case c.wishes.few():
		c.wishes.plan()
	default:
		c.wishes.repick(id, c.others())
		c.near.joined(id)
	}
	return c.flush()
}

// Leave learns that a member is gone; it is no longer in the roster.
func (c *Core) Leave(now time.Time, id ID) []Packet {
	c.enter(now)
	c.where.cameOrWent(id)
	p := c.peers.known[id]
	if p != nil {
		c.where.gone.add(id, p.at)
	}
	switch {
	case p == nil:
	case p.link != nil:
		c.links.remove(p.link)
		c.peers.forget(p)
		c.wishes.plan()
	default:
		c.peers.forget(p)
	}
	if c.wishes.few() {
		c.pace.planSoon()
	}
	return c.flush()
}

// Observe takes a round trip that something else measured.
func (c *Core) Observe(now time.Time, id ID, rtt time.Duration) []Packet {
	c.enter(now)
	switch {
	case !c.member(id):
	case rtt < 0 || rtt > maxRTT:
		c.stats.Absurd++
	default:
		c.measured(c.peers.get(id), rtt)
	}
	return c.flush()
}

// measured takes a sample.
func (c *Core) measured(p *peer, rtt time.Duration) {
	shifted := c.peers.sample(p, rtt)
	c.where.check(p)
	c.links.measured(p)
	if !shifted {
		c.wishes.measured(p)
		return
	}
	c.pace.planSoon()
	switch sure, maybe := c.peers.moved(); {
	case sure:
		c.moved()
	case maybe:
		c.where.doubt()
		c.pace.changed()
	}
}

// moved begins again to look for the nearest: what this node has measured, but for its
// links, was from another place. Who was near is told soon that it is no more.
func (c *Core) moved() {
	var near []ID
	for _, p := range c.peers.ranked() {
		if p.link != nil {
			p.renew = p.renew || c.at-p.shifted >= movedTime
			p.link.due = c.at
			p.shifted = never
			continue
		}
		if len(near) < nearKept {
			near = append(near, p.id)
		}
		p.samples, p.asked, p.tries = unmeasured(), never, 0
	}
	c.peers.stale = true
	c.where.own = nil
	c.near.begin(near)
	c.pace.changed()
	c.pace.planSoon()
}

// Receive takes a payload that a member sent.
func (c *Core) Receive(now time.Time, from ID, payload []byte) []Packet {
	c.enter(now)
	c.stats.Received++
	c.stats.ReceivedBytes += int64(len(payload))
	if !c.member(from) {
		c.stats.Strangers++
		return c.flush()
	}
	m, err := decode(payload)
	if err != nil {
		c.stats.Malformed++
		return c.flush()
	}
	p := c.peers.get(from)
	p.heard = c.at
	if p.flooding(c.at) {
		c.stats.Excess++
		return c.flush()
	}
	if at, ok := bearingsFromWire(m.Place); ok {
		c.where.learn(p, at, c.at)
	}
	c.handle(p, m)
	return c.flush()
}

func (c *Core) handle(p *peer, m message) {
	switch m.Kind {
	case kindPing:
		c.links.claimed(p, m.Link)
		c.pings.pong(p, m)
	case kindPong:
		linked, ok := c.answered(p, m)
		if !ok {
			return
		}
		if m.Ack != 0 {
			c.send(p.id, message{Kind: kindAck, Nonce: m.Ack})
		}
		c.links.granted(p, m.Link, linked)
	case kindAck:
		c.answered(p, m)
	case kindSwap:
		c.send(p.id, c.list(kindList, p))
		c.learn(p, m)
	case kindList:
		c.learn(p, m)
	case kindDrop:
		if p.link != nil {
			c.links.lose(p.link)
		}
	}
}

// answered takes a pong or an ack, which measures the round trip. linked says
// that a link was claimed with what it answers.
func (c *Core) answered(p *peer, m message) (linked, ok bool) {
	w, ok := c.pings.answered(p, m)
	if rtt := c.at - w.sent; ok && rtt <= maxRTT {
		c.measured(p, rtt)
	}
	return w.linked, ok
}

// learn takes a list.
func (c *Core) learn(from *peer, m message) {
	c.near.learn(from, m.Names)
	c.where.learnRecords(m)
	c.where.infer(from, m.Names)
}

// round is what happens once a second, more rarely in the calm: the links are
// looked over, landmarks and candidates pinged, and lists swapped with one peer.
func (c *Core) round() {
	c.pace.round()
	if c.others() == 0 {
		return
	}
	c.wishes.plan()
	for _, p := range c.where.due() {
		c.pings.ping(p)
	}
	if p := c.partner(); p != nil {
		c.send(p.id, c.list(kindSwap, p))
	}
	budget := activePings
	if c.pace.slowed() {
		budget = calmPings
	}
	c.near.explore(budget)
}

// partner returns one of the four nearest, or 1 time in 4 a random member.
func (c *Core) partner() *peer {
	near := c.peers.ranked()
	if len(near) == 0 || c.cfg.Rand.IntN(4) == 0 {
		id := c.draw(func(ID) bool { return true })
		if id == "" {
			return nil
		}
		return c.peers.get(id)
	}
	return near[c.cfg.Rand.IntN(min(4, len(near)))]
}

// list names the nearest, except the one it is for.
func (c *Core) list(as kind, to *peer) message {
	m := message{Kind: as, Place: c.where.bearings().wire()}
	places := listPlaces
	if c.pace.slowed() {
		places = calmPlaces
	}
	c.where.addRecords(&m, to, places)
	for _, p := range c.peers.ranked() {
		if len(m.Names) == listLength {
			break
		}
		if p != to {
			m.Names = append(m.Names, named{ID: p.id, RTT: uint32(p.rtt / time.Microsecond)})
		}
	}
	return m
}
