package jobs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/vicinity"
)

// CoreConfig describes a Core. Self, Rand, Flood, Member and Members are
// required. The functions are called by the Core's methods and must not call
// them.
type CoreConfig struct {
	Self     vicinity.Member
	Schedule flood.Schedule
	Rand     *rand.Rand // owned by the core
	// Flood starts the flood of an advertisement; see flood.Core.Start.
	Flood func(now time.Time, ad Advert) flood.Flood
	// Member tells what is known of a node, and the round trip to it, 0 while
	// it is not measured; see Overlay.
	Member func(id vicinity.ID) (m vicinity.Member, rtt time.Duration, ok bool)
	// Nearer lists whom the node has measured to be near; see Overlay. Nil =
	// nobody.
	Nearer  func(than time.Duration, limit int) []vicinity.Measured
	Members func() int // how many there are, this node included
	// Distance estimates the round trip between two other nodes; nil, or 0, =
	// not known.
	Distance func(a, b vicinity.ID) time.Duration
	// Busy is how many slots something uses for good that is not simulated.
	Busy int
	// Fate tells what becomes of a worker that was granted; nil = it is ready
	// at once and runs until it is released.
	Fate func(job ID, spec *Spec, ra RankAttempt) Fate
	// Disk is how long it takes until what is written down is durable; nil =
	// no time.
	Disk func() time.Duration
	// Unable tells why the node cannot start workers now; nil, or "" = it can.
	Unable func() string
	// Origin tells where a job was submitted; nil = jobs with dependencies are
	// refused.
	Origin func(job ID) (vicinity.ID, bool)
}

// Fate is what becomes of a worker.
type Fate struct {
	Prepare time.Duration // until it is ready
	Unfit   string        // why it will not be ready; "" = it will
	Run     time.Duration // until it ends by itself; 0 = never
	Code    int           // that it ends with then
	Stop    time.Duration // that it takes to end when it is told to
}

// Core is what one node does with jobs, for simulators and model checkers: the
// primaries of the jobs that were submitted here, the claims on the node's
// slots, and workers that only take time. The decisions are those of the very
// structs that a Service runs; around them Core has no disk, process, network,
// goroutine or clock. Its journal is in memory: [Core.Kill] returns it, with the
// workers, which outlive their node, and [Revive] goes on from there.
//
// Its methods must not be called at the same time. Those that take now return
// what is to be done outside; after each call the next Tick is due at Next. The
// same calls always have the same results.
type Core struct {
	cfg      CoreConfig
	claims   *claims
	clock    clock
	jobs     map[ID]*coreJob
	order    []ID // of submission
	works    []*coreWork
	asked    []asked
	measures []*coreMeasure
	number   uint64 // of the last request
	soon     []func()
	out      Actions
	away     bool // it is being stopped

	journal []coreEntry
	writing []*coreStep // whose events are on their way to the journal, in order
}

// Actions is what a Core wants done.
type Actions struct {
	Extends  []Extend
	Messages []Message
	Probes   []vicinity.ID // members whose round trip should be measured soon
}

// Advert is an advertisement to be flooded.
type Advert struct {
	Job     ID
	Round   int
	Radius  int
	Payload []byte
}

// Extend carries a flood of this node beyond its rim; see flood.Core.Extend.
type Extend struct {
	Job   ID
	Flood flood.Flood
	Rim   []flood.Reach
}

// NewCore returns the core of an idle node.
func NewCore(cfg CoreConfig) *Core {
	c := &Core{cfg: cfg, jobs: map[ID]*coreJob{}, claims: newClaims(cfg.Self, cfg.Rand)}
	c.claims.used.slots = cfg.Busy
	c.claims.member = func(id vicinity.ID) (vicinity.Member, bool) {
		m, _, ok := cfg.Member(id)
		return m, ok
	}
	return c
}

// Submit accepts a job. Errors wrap ErrInvalid.
func (c *Core) Submit(now time.Time, spec Spec) (ID, Actions, error) {
	if err := spec.Validate(); err != nil {
		return "", Actions{}, err
	}
	if spec.Array != nil { // its workers only take time
		return "", Actions{}, fmt.Errorf("%w: arrays cannot be simulated", ErrInvalid)
	}
	if len(spec.After) > 0 && c.cfg.Origin == nil {
		return "", Actions{}, fmt.Errorf("%w: nobody is told what becomes of the jobs that it waits for", ErrInvalid)
	}
	id := NewID(c.cfg.Rand, c.cfg.Self.ID)
	for c.jobs[id] != nil {
		id = NewID(c.cfg.Rand, c.cfg.Self.ID)
	}
	j := c.newJob(id)
	j.core.submit(now, spec, c.clock.now(now), c.cfg.Schedule)
	c.flush(now, j)
	j.follow(now)
	return id, c.leave(now), nil
}

// Limit tells what the owner allows from now on.
func (c *Core) Limit(now time.Time, l Limits) Actions {
	c.claims.limit(l)
	c.offerQueued(now)
	return c.leave(now)
}

// Leave begins to stop the node, as SIGTERM does: nothing is offered or started
// any more, and the origins of its workers are told that these go on. Kill
// ends it.
func (c *Core) Leave(now time.Time) Actions {
	c.claims.closed, c.away = reasonLeaving, true
	for _, w := range c.works {
		w.kick = true
	}
	return c.leave(now)
}

// Cancel ends a job of this node.
func (c *Core) Cancel(now time.Time, id ID) Actions {
	if j := c.jobs[id]; j != nil {
		j.core.cancel(now, "cancelled by a user")
		c.flush(now, j)
	}
	return c.leave(now)
}

// Advertised takes a flooded advertisement.
func (c *Core) Advertised(now time.Time, m flood.Message) Actions {
	ad, err := decodeAdvertisement(m.Payload, func(vicinity.ID, []byte, []byte) error { return nil })
	if err == nil && ad.Origin() != c.cfg.Self.ID {
		c.clock.saw(ad.Stamp, now)
		a := c.claims.advertised(now, ad)
		a.Hops, a.Rim, a.Onward = int(m.Hops), m.TTL == 1, min(m.Onward, maxOnward)
		c.packet(ad.Origin(), packet{Answer: &a})
		c.sendAnswers(now, c.claims.takenBack())
	}
	return c.leave(now)
}

// Receive takes a message of another core, or of this one.
func (c *Core) Receive(now time.Time, from vicinity.ID, m Message) Actions {
	switch b := m.body.(type) {
	case packet:
		if b.Answer != nil {
			c.answered(now, from, *b.Answer)
		} else {
			c.yielded(now, from, b.Yield, b.Forget)
		}
	case request:
		c.requested(now, from, b)
	case reply:
		i := slices.IndexFunc(c.asked, func(a asked) bool { return a.number == b.number })
		if i < 0 {
			break
		}
		a := c.asked[i]
		c.asked = slices.Delete(c.asked, i, i+1)
		if b.refused || b.failed {
			a.failed(now, b.refused)
		} else {
			a.done(now, b)
		}
	}
	return c.leave(now)
}

// MemberGone tells that the overlay has declared a node dead.
func (c *Core) MemberGone(now time.Time, id vicinity.ID) Actions {
	for _, job := range c.order {
		if j := c.jobs[job]; !j.core.rec.state.Final() {
			j.core.memberGone(now, id)
			c.flush(now, j)
		}
	}
	return c.leave(now)
}

// Tick does what is due.
func (c *Core) Tick(now time.Time) Actions { return c.leave(now) }

// Next returns when Tick is due; zero = only after an input.
func (c *Core) Next() time.Time {
	at := earlier(earlier(c.claims.wake(), c.claims.starts.next), c.measuring())
	for _, id := range c.order {
		at = earlier(at, c.jobs[id].next())
	}
	if len(c.writing) > 0 {
		at = earlier(at, c.writing[0].due)
	}
	for _, a := range c.asked {
		at = earlier(at, a.until)
	}
	for _, w := range c.works {
		at = earlier(at, w.wake(c.away))
	}
	return at
}

// leave ends a call: it does what is due and what was left for the end, and
// returns what is to be done outside.
func (c *Core) leave(now time.Time) Actions {
	c.written(now)
	for _, id := range c.order {
		j := c.jobs[id]
		if !j.wake.IsZero() && !now.Before(j.wake) {
			j.core.tick(now)
			c.flush(now, j)
		}
		c.pollFollowed(now, j)
	}
	for _, a := range slices.Clone(c.asked) {
		if !now.Before(a.until) {
			c.asked = slices.DeleteFunc(c.asked, func(b asked) bool { return b.number == a.number })
			a.failed(now, false)
		}
	}
	for _, w := range slices.Clone(c.works) {
		c.tend(now, w)
	}
	c.recover(now)
	c.tellMeasured(now)
	if at := c.claims.wake(); !at.IsZero() && !now.Before(at) {
		c.offerQueued(now)
	}
	for len(c.soon) > 0 {
		f := c.soon[0]
		c.soon = c.soon[1:]
		f()
	}
	out := c.out
	c.out = Actions{}
	return out
}
