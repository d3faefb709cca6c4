package jobs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
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
	// Busy is how many slots something uses for good that is not simulated.
	Busy int
	// Prepare is how long a granted worker takes to get ready.
	Prepare time.Duration
	// Runtime is how long a worker of the job runs, before it ends with 0;
	// nil, or 0, = until it is released.
	Runtime func(spec *Spec) time.Duration
}

// Core is what one node does with jobs, for simulators and model checkers: the
// primaries of the jobs that were submitted here, the claims on the node's
// slots, and workers that only take time. The decisions are those of the very
// structs that a Service runs; around them Core has no journal, disk, process,
// network, goroutine or clock. What a Service writes to its journal takes
// effect at once.
//
// Its methods must not be called at the same time. Those that take now return
// what is to be done outside; after each call the next Tick is due at Next. The
// same calls always have the same results.
type Core struct {
	cfg    CoreConfig
	claims *claims
	clock  clock
	jobs   map[ID]*coreJob
	order  []ID // of submission
	works  []*coreWork
	asked  []asked
	number uint64 // of the last request
	soon   []func()
	out    Actions
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

// Message is on its way from one Core to another.
type Message struct {
	To   vicinity.ID
	Kind MessageKind
	Job  ID
	Size int // bytes, encoded, without what carries it
	body any
}

// MessageKind says how a Message travels.
type MessageKind int

// A packet may be lost. Requests go over a connection from the node that asks,
// replies back over the same one.
const (
	Packet MessageKind = iota
	Request
	Reply
)

// What travels in a Message beside a packet.
type (
	request struct {
		number uint64 // of the sender; 0 = no answer is wanted
		body   any    // *Grant, *Start, *Release or *Report
	}
	reply struct {
		number  uint64
		refused bool
		ack     Ack // to a Report
	}
)

// asked is a request whose answer is awaited.
type asked struct {
	number uint64
	until  time.Time
	failed func(now time.Time, refused bool)
	done   func(now time.Time, ack Ack)
}

// coreJob is a job that was submitted here.
type coreJob struct {
	core *primary
	wake time.Time
}

// reportTimeout bounds one report.
const reportTimeout = 30 * time.Second

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
	id := NewID(c.cfg.Rand, c.cfg.Self.ID)
	for c.jobs[id] != nil {
		id = NewID(c.cfg.Rand, c.cfg.Self.ID)
	}
	j := &coreJob{core: newPrimary(id, c.cfg.Self, c.cfg.Rand, c.cfg.Schedule)}
	j.core.measured = func(id vicinity.ID) time.Duration {
		_, rtt, _ := c.cfg.Member(id)
		return rtt
	}
	j.core.members = c.cfg.Members
	if c.cfg.Nearer != nil {
		j.core.near = c.cfg.Nearer
	}
	c.jobs[id] = j
	c.order = append(c.order, id)
	j.core.submit(now, spec, c.clock.now(now), c.cfg.Schedule)
	c.flush(now, j)
	return id, c.leave(now), nil
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
	if err == nil && ad.Origin != c.cfg.Self.ID {
		c.clock.saw(ad.Stamp, now)
		a := c.claims.advertised(now, ad)
		a.Hops, a.Rim, a.Onward = int(m.Hops), m.TTL == 1, min(m.Onward, maxOnward)
		c.packet(ad.Origin, packet{Answer: &a})
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
			c.yielded(now, from, b.Yield, b.Ended)
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
		if b.refused {
			a.failed(now, true)
		} else {
			a.done(now, b.ack)
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
	at := c.claims.wake()
	for _, id := range c.order {
		at = earlier(at, c.jobs[id].wake)
	}
	for _, a := range c.asked {
		at = earlier(at, a.until)
	}
	for _, w := range c.works {
		at = earlier(at, w.wake())
	}
	return at
}

// leave ends a call: it does what is due and what was left for the end, and
// returns what is to be done outside.
func (c *Core) leave(now time.Time) Actions {
	for _, id := range c.order {
		if j := c.jobs[id]; !j.wake.IsZero() && !now.Before(j.wake) {
			j.core.tick(now)
			c.flush(now, j)
		}
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

// flush does what a primary has left.
func (c *Core) flush(now time.Time, j *coreJob) {
	st := j.core.take()
	j.wake = j.core.wake()
	for _, e := range st.effects {
		c.perform(now, j, e)
	}
}

func (c *Core) perform(now time.Time, j *coreJob, e effect) {
	switch e := e.(type) {
	case doTell:
		e.f()
	case doFlood:
		payload := append(make([]byte, signatureLen), codec.MustMarshal(e.ad)...)
		sent := c.cfg.Flood(now, Advert{Job: e.ad.Job, Round: e.ad.Round, Radius: e.radius, Payload: payload})
		j.core.sent(now, e.ad.Round, sent)
		a := c.claims.advertised(now, e.ad)
		c.soon = append(c.soon, func() { c.answered(now, c.cfg.Self.ID, a) })
	case doExtend:
		c.out.Extends = append(c.out.Extends, Extend{Job: j.core.rec.id, Flood: e.flood, Rim: e.rim})
	case doYield:
		c.yield(now, e.to, e.job, j.core.rec.state.Final())
	case doGrant:
		c.ask(now, e.to, e.grant.Job, &e.grant, grantTimeout, func(now time.Time, refused bool) {
			j.core.grantFailed(now, e.to, e.grant.Ranks, refused)
			c.flush(now, j)
		}, func(time.Time, Ack) {})
	case doStart:
		start := e.start
		start.Hosts = slices.Clone(start.Hosts)
		for i := range start.Hosts {
			if m, _, ok := c.cfg.Member(start.Hosts[i].Node); ok {
				start.Hosts[i].Addr = hostOf(m.Addrs)
			}
		}
		c.send(e.to, Request, start.Job, &start, request{body: &start})
	case doRelease:
		c.send(e.to, Request, e.release.Job, &e.release, request{body: &e.release})
	case doProbe:
		c.out.Probes = append(c.out.Probes, e.id)
	default: // a simulation must not pass over what a node does
		panic(fmt.Sprintf("jobs.Core does not know %T", e))
	}
}

// answered mirrors Service.answered.
func (c *Core) answered(now time.Time, from vicinity.ID, a Answer) {
	j := c.jobs[a.Job]
	if j == nil {
		if a.Job.OriginShort() == c.cfg.Self.ID.Short() && a.Workers > 0 {
			c.yield(now, from, a.Job, true)
		}
		return
	}
	m, rtt, ok := c.cfg.Member(from)
	if !ok {
		m = vicinity.Member{ID: from}
	}
	if from == c.cfg.Self.ID {
		m, rtt = c.cfg.Self, 1 // nearer than all others
	}
	j.core.answered(now, m, rtt, a)
	c.flush(now, j)
}

func (c *Core) yield(now time.Time, to vicinity.ID, id ID, ended bool) {
	if to == c.cfg.Self.ID {
		c.soon = append(c.soon, func() { c.yielded(now, to, id, ended) })
		return
	}
	c.packet(to, packet{Yield: id, Ended: ended})
}

// yielded mirrors Service.yielded.
func (c *Core) yielded(now time.Time, from vicinity.ID, id ID, ended bool) {
	if id.OriginShort() == from.Short() {
		c.claims.released(id, ended)
		c.offerQueued(now)
	}
}

func (c *Core) offerQueued(now time.Time) {
	for _, out := range c.claims.offers(now) {
		if out.to == c.cfg.Self.ID {
			c.answered(now, out.to, out.answer)
		} else {
			c.packet(out.to, packet{Answer: &out.answer})
		}
	}
}

func (c *Core) packet(to vicinity.ID, p packet) {
	p.To = to
	job := p.Yield
	if p.Answer != nil {
		job = p.Answer.Job
	}
	c.send(to, Packet, job, p, p)
	c.out.Messages[len(c.out.Messages)-1].Size += signatureLen
}

// send sends a message; encoded is the part of its body that travels.
func (c *Core) send(to vicinity.ID, kind MessageKind, job ID, encoded, body any) {
	c.out.Messages = append(c.out.Messages, Message{To: to, Kind: kind, Job: job, Size: len(codec.MustMarshal(encoded)), body: body})
}

// ask sends a request whose reply matters.
func (c *Core) ask(now time.Time, to vicinity.ID, job ID, msg any, timeout time.Duration, failed func(time.Time, bool), done func(time.Time, Ack)) {
	c.number++
	c.asked = append(c.asked, asked{number: c.number, until: now.Add(timeout), failed: failed, done: done})
	c.send(to, Request, job, msg, request{number: c.number, body: msg})
}
