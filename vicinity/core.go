package vicinity

import (
	"math/rand/v2"
	"time"
)

const (
	activePause = time.Second      // between rounds while the neighbours change
	calmPause   = 20 * time.Second // between rounds at the calmest
	calmAfter   = 20 * time.Second // without a change
	activePings = 5                // to candidates, in an active round
	calmPings   = 2                // in a calm one
	askAgain    = 30 * time.Second // a candidate is not pinged again before
	ackEvery    = 5 * time.Second  // an answerer wants a sample of its own this often
	maxBurst    = 12               // messages per second taken from one peer
	maxPending  = 1024             // answers awaited
)

// Packet is a payload to be sent to a member.
type Packet struct {
	To      ID
	Payload []byte
}

// Stats counts what a node did since it started.
type Stats struct {
	Sent          int64 `json:"sent"` // messages
	Received      int64 `json:"received"`
	SentBytes     int64 `json:"sent_bytes"`
	ReceivedBytes int64 `json:"received_bytes"`
	Malformed     int64 `json:"malformed"`  // messages dropped for their form
	Absurd        int64 `json:"absurd"`     // round trips and coordinates not taken because they cannot be true
	Strangers     int64 `json:"strangers"`  // messages dropped because the sender is no member
	Excess        int64 `json:"excess"`     // messages dropped because a peer sent too many
	Unanswered    int64 `json:"unanswered"` // questions whose answer did not come: it, or they, were lost, or the member is gone
	Lost          int64 `json:"lost"`       // packets not sent because too many were waiting
	Links         int   `json:"links"`
	Measured      int   `json:"measured"` // members with a measured round trip
}

// CoreConfig describes a Core. Self, Rand and Roster are required.
type CoreConfig struct {
	Self      ID
	Near, Far int        // links wanted; 0 = 6 and 2
	Peers     int        // records of other nodes kept; 0 = 1024
	Rand      *rand.Rand // owned by the core
	Roster    *Roster    // all members; may hold Self; the caller keeps it up to date
}

// Core is the protocol without clock, goroutine or socket. Its methods must
// not be called at the same time. Those that take now return the packets to
// send; after each call the next Tick is due at Next. A time before an earlier
// one counts as that earlier one.
type Core struct {
	cfg   CoreConfig
	epoch time.Time
	at    time.Duration // now, since epoch
	out   []Packet
	stats Stats

	known map[ID]*peer
	peers []*peer // the same, in an order that does not depend on the map
	order []*peer // cache of ranked
	stale bool    // order is out of date
	atlas atlas

	links      []*link
	picks      []ID // the far links wanted: a uniform sample of the members
	version    uint64
	candidates []candidate
	pending    []pending // oldest first
	answers    []Answer  // that Answers has yet to return

	lastChange time.Duration // of the links wanted
	pause      time.Duration
	nextRound  time.Duration
	nextPlan   time.Duration
}

// NewCore returns the core of a node that knows nobody yet.
func NewCore(cfg CoreConfig, now time.Time) *Core {
	if cfg.Near <= 0 {
		cfg.Near = 6
	}
	if cfg.Far <= 0 {
		cfg.Far = 2
	}
	if cfg.Peers <= 0 {
		cfg.Peers = 1024
	}
	cfg.Peers = max(cfg.Peers, 4*maxLinks(cfg))
	return &Core{
		cfg: cfg, epoch: now, known: make(map[ID]*peer), atlas: atlas{stale: true, drawn: never},
		pause: activePause, nextRound: activePause, nextPlan: forever,
	}
}

// maxLinks is how many links a node keeps, its own wishes and those of others
// together, so that one that is near to many is not overrun.
func maxLinks(cfg CoreConfig) int { return 2 * (cfg.Near + cfg.Far) }

const forever = time.Duration(1<<63 - 1)

func (c *Core) enter(now time.Time) { c.at = max(c.at, now.Sub(c.epoch)) }

func (c *Core) flush() []Packet {
	out := c.out
	c.out = nil
	return out
}

// Next returns when Tick is due.
func (c *Core) Next() time.Time {
	next := min(c.nextRound, c.nextPlan)
	for _, l := range c.links {
		next = min(next, l.due, l.end())
	}
	return c.epoch.Add(next)
}

// Tick does what is due.
func (c *Core) Tick(now time.Time) []Packet {
	c.enter(now)
	c.tend()
	if c.at >= c.nextRound {
		c.round()
	}
	if c.at >= c.nextPlan {
		c.plan()
	}
	return c.flush()
}

// Join learns of a new member, which is in the roster already. To the first
// members links are asked for at once, whatever their distance.
func (c *Core) Join(now time.Time, id ID) []Packet {
	c.enter(now)
	c.atlas.member(id)
	switch n := c.others(); {
	case id == c.cfg.Self || !c.cfg.Roster.Has(id):
	case n <= c.cfg.Near+c.cfg.Far:
		c.plan()
	default:
		c.repick(id, n)
		if len(c.candidates) < maxCandidates {
			c.candidates = append(c.candidates, candidate{id: id, est: maxRTT})
		}
	}
	return c.flush()
}

// Leave learns that a member is gone; it is no longer in the roster.
func (c *Core) Leave(now time.Time, id ID) []Packet {
	c.enter(now)
	c.atlas.member(id)
	p := c.known[id]
	switch {
	case p == nil:
	case p.link != nil:
		c.unlink(p.link)
		c.forget(p)
		c.plan()
	default:
		c.forget(p)
	}
	if c.others() <= c.cfg.Near+c.cfg.Far {
		c.planSoon()
	}
	return c.flush()
}

// Observe takes a round trip that something else measured.
func (c *Core) Observe(now time.Time, id ID, rtt time.Duration) []Packet {
	c.enter(now)
	if id == c.cfg.Self || !c.cfg.Roster.Has(id) {
		return c.flush()
	}
	if rtt < 0 || rtt > maxRTT {
		c.stats.Absurd++
		return c.flush()
	}
	c.measured(c.peer(id), rtt)
	return c.flush()
}

// others is the number of members beside the node itself.
func (c *Core) others() int {
	n := c.cfg.Roster.Len()
	if c.cfg.Roster.Has(c.cfg.Self) {
		n--
	}
	return n
}

func (c *Core) send(to ID, m message) {
	b := m.encode()
	c.stats.Sent++
	c.stats.SentBytes += int64(len(b))
	c.out = append(c.out, Packet{To: to, Payload: b})
}

// jitter returns d, up to a quarter more or less.
func (c *Core) jitter(d time.Duration) time.Duration {
	return d*3/4 + time.Duration(c.cfg.Rand.Int64N(int64(d)/2))
}

// changed notes that the links wanted are not what they were.
func (c *Core) changed() {
	c.lastChange = c.at
	if c.pause > activePause {
		c.pause = activePause
		c.nextRound = min(c.nextRound, c.at+c.jitter(activePause))
	}
}

// planSoon looks over the links after a moment in which more news may come.
func (c *Core) planSoon() {
	c.nextPlan = min(c.nextPlan, c.at+c.jitter(200*time.Millisecond))
}
