package flood

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// What a node remembers at most, and how fast others may use it.
const (
	MaxSeen      = 65536 // messages
	maxBuckets   = 4096  // nodes
	defaultRate  = 50    // floods per second and origin
	defaultBurst = 500
	refusalRate  = 1 // refused messages per second and neighbour
	refusalBurst = 20
)

// Errors of Start, and the reasons for which a copy goes no further.
var (
	ErrTooFast  = errors.New("too many floods in a short time: try again in a second")
	ErrStopped  = errors.New("flooder has stopped")
	ErrRefused  = errors.New("message refused")
	ErrLate     = errors.New("message comes too late")
	ErrArgument = errors.New("cannot flood")
)

// Stats counts what happened since the start. Received is the sum of
// Duplicates, Delivered, Malformed, Refused, Limited and Expired.
type Stats struct {
	Originated uint64 `json:"originated"` // floods started here
	Sent       uint64 `json:"sent"`       // copies of them sent from here
	Extended   uint64 `json:"extended"`   // of these, sent straight to the rim
	Received   uint64 `json:"received"`   // copies
	Duplicates uint64 `json:"duplicates"` // copies of what was seen before, own messages included
	Delivered  uint64 `json:"delivered"`
	Forwarded  uint64 `json:"forwarded"` // copies sent on for others
	Malformed  uint64 `json:"malformed"`
	Refused    uint64 `json:"refused"` // failed Check
	Limited    uint64 `json:"limited"` // over the rate limit
	Expired    uint64 `json:"expired"`
	Cut        uint64 `json:"cut"`     // of the copies received, those whose TTL was beyond any radius and was cut
	Dropped    uint64 `json:"dropped"` // copies that found the inbox full; not in Received
}

// Out is what to do after a step.
type Out struct {
	To      []vicinity.ID // send Packet to these
	Packet  []byte
	Deliver *Message // nil: nothing to deliver
	// Err says why a copy that came in went no further, if it should not have
	// been sent at all. It wraps codec.ErrMalformed, ErrRefused or ErrTooFast.
	Err error
}

// Core decides what a node does with floods. It is owned by one goroutine.
type Core struct {
	cfg      Config
	seen     *seenSet
	origins  *limiter // genuine messages, by origin
	refusals *limiter // refused messages, by last hop
	stats    Stats
}

// NewCore returns a core. It uses Self, Neighbours, Check, Rand, Rate and Burst
// of the configuration.
func NewCore(cfg Config) *Core {
	cfg = cfg.withDefaults()
	return &Core{
		cfg:      cfg,
		seen:     newSeenSet(MaxSeen),
		origins:  newLimiter(cfg.Rate, cfg.Burst, maxBuckets),
		refusals: newLimiter(refusalRate, refusalBurst, maxBuckets),
	}
}

// Stats returns the counts so far.
func (c *Core) Stats() Stats { return c.stats }

// Start originates a flood; see Flooder.Start.
func (c *Core) Start(now time.Time, radius int, life time.Duration, payload []byte) (Flood, Out, error) {
	switch {
	case radius < 0 || radius > MaxRadius:
		return Flood{}, Out{}, fmt.Errorf("%w: radius %d, want 0 to %d", ErrArgument, radius, MaxRadius)
	case life < time.Millisecond || life > MaxLife:
		return Flood{}, Out{}, fmt.Errorf("%w: life %v, want 1ms to %v", ErrArgument, life, MaxLife)
	case len(payload) > MaxPayload:
		return Flood{}, Out{}, fmt.Errorf("%w: payload of %d bytes, at most %d", ErrArgument, len(payload), MaxPayload)
	case !c.origins.take(now, c.cfg.Self):
		return Flood{}, Out{}, ErrTooFast
	}
	m := Message{Origin: c.cfg.Self, TTL: uint8(radius), Hops: 1, LastHop: c.cfg.Self, Life: life, Payload: payload}
	binary.BigEndian.PutUint64(m.ID[:], c.cfg.Rand.Uint64())
	packet := encode(m)
	var to []vicinity.ID
	if radius > 0 {
		to = c.around(m, "")
	}
	c.stats.Originated++
	c.stats.Sent += uint64(len(to))
	return Flood{message: m, to: to, until: now.Add(life), Copies: len(to), Size: len(packet)}, Out{To: to, Packet: packet}, nil
}

// Extend carries a flood one hop beyond nodes on its rim, or to nodes that it
// did not reach and the hop beyond them; see Flooder.Extend.
// It returns one Out for each kind of copy.
func (c *Core) Extend(now time.Time, f Flood, rim []Reach) []Out {
	m := f.message
	m.Life = f.until.Sub(now).Truncate(time.Millisecond)
	if m.Origin != c.cfg.Self || m.Life <= 0 {
		return nil
	}
	type kind struct {
		hops  uint8
		again bool
		last  bool
	}
	groups := map[kind][]vicinity.ID{}
	for _, r := range rim {
		// As if it had come over the links that it came over the first time.
		k := kind{uint8(min(max(r.Hops, 1), MaxRadius-1)), r.Again, r.Last}
		groups[k] = append(groups[k], r.Node)
	}
	var list []Out
	number := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	order := func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.hops, b.hops), number(a.again)-number(b.again), number(a.last)-number(b.last))
	}
	for _, k := range slices.SortedFunc(maps.Keys(groups), order) {
		m.TTL, m.Hops, m.Again = uint8(2-number(k.last)), k.hops, k.again
		list = append(list, Out{To: groups[k], Packet: encode(m)})
		c.stats.Sent += uint64(len(groups[k]))
		c.stats.Extended += uint64(len(groups[k]))
	}
	return list
}

// Receive handles a copy that came from a neighbour and waited in an inbox for
// some time. An empty from means that the carrier does not know the sender.
func (c *Core) Receive(now time.Time, waited time.Duration, from vicinity.ID, packet []byte) Out {
	c.stats.Received++
	m, err := decode(packet)
	if err == nil && from != "" && m.LastHop != from {
		err = fmt.Errorf("flood packet from %s says it is from %s: %w", from.Short(), m.LastHop.Short(), codec.ErrMalformed)
	}
	if err != nil {
		c.stats.Malformed++
		return Out{Err: err}
	}
	if m.cut {
		c.stats.Cut++
	}
	m.Life = (m.Life - max(0, waited)).Truncate(time.Millisecond)
	if m.Life <= 0 {
		c.stats.Expired++
		return Out{}
	}
	if m.Origin == c.cfg.Self {
		c.stats.Duplicates++
		return Out{}
	}
	key := m.key()
	e := c.seen.get(key)
	if e == nil {
		return c.first(now, key, m)
	}
	c.stats.Duplicates++
	if e.dead {
		return Out{}
	}
	e.hear(m.LastHop, m.TTL)
	var out Out
	onward := c.around(m, m.LastHop)
	if m.TTL > e.best {
		e.best = m.TTL
		out = c.forward(m, slices.DeleteFunc(slices.Clone(onward), func(id vicinity.ID) bool { return e.knows(id, m.TTL-1) }))
	}
	if m.Again && from == m.Origin && e.again < maxAgain && c.cfg.Check(m.Origin, m.Payload) == nil {
		e.again++
		m.Onward = len(onward)
		out.Deliver = &m
	}
	return out
}

// maxAgain bounds how often a message is delivered again.
const maxAgain = 3

// first handles the first copy of a message.
func (c *Core) first(now time.Time, key seenKey, m Message) Out {
	if c.refusals.empty(now, m.LastHop) {
		// Not remembered: it may be genuine and come by another way.
		c.stats.Limited++
		return Out{Err: fmt.Errorf("flood from %s: neighbour %s sends what is refused: %w", m.Origin.Short(), m.LastHop.Short(), ErrTooFast)}
	}
	err := c.cfg.Check(m.Origin, m.Payload)
	if errors.Is(err, ErrLate) {
		// Nobody's fault, and not remembered: it may be judged otherwise later.
		c.stats.Expired++
		return Out{}
	}
	if err != nil {
		c.refusals.take(now, m.LastHop)
		c.seen.add(now, key, m.Life, seenEntry{dead: true})
		c.stats.Refused++
		return Out{Err: fmt.Errorf("flood from %s by way of %s: %w: %w", m.Origin.Short(), m.LastHop.Short(), ErrRefused, err)}
	}
	if !c.origins.take(now, m.Origin) {
		c.seen.add(now, key, m.Life, seenEntry{dead: true})
		c.stats.Limited++
		return Out{Err: fmt.Errorf("flood from %s: %w", m.Origin.Short(), ErrTooFast)}
	}
	c.seen.add(now, key, m.Life, seenEntry{best: m.TTL, heard: []copyFrom{{m.LastHop, m.TTL}}})
	c.stats.Delivered++
	to := c.around(m, m.LastHop)
	out := c.forward(m, to)
	m.Onward, m.Again = len(to), false
	out.Deliver = &m
	return out
}

// forward sends a copy on while it has hops left.
func (c *Core) forward(m Message, to []vicinity.ID) Out {
	if m.TTL <= 1 || len(to) == 0 {
		return Out{}
	}
	m.Again = false
	m.TTL--
	m.Hops++
	m.LastHop = c.cfg.Self
	c.stats.Forwarded += uint64(len(to))
	return Out{To: to, Packet: encode(m)}
}

// around lists the neighbours that a copy can go on to: all but the one it came
// from and the origin.
func (c *Core) around(m Message, from vicinity.ID) []vicinity.ID {
	var to []vicinity.ID
	for _, id := range c.cfg.Neighbours() {
		if id != from && id != m.Origin && id != c.cfg.Self {
			to = append(to, id)
		}
	}
	return to
}
