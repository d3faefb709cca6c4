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

// ModelConfig describes a Model. Self, Rand, Flood, Member and Members are
// required. The functions are called by the Model's methods and must not call
// them.
type ModelConfig struct {
	Self     vicinity.Member
	Schedule flood.Schedule
	Rand     *rand.Rand // owned by the model
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
	Output  int           // bytes that it writes, evenly while it runs; see OutputByte
}

// Model is a node for simulators and model checkers: the very core that a Service
// contains, with workers that only take time, and a disk in memory. [Model.Kill]
// returns what is on it, with the workers, which outlive their node, and [Revive]
// goes on from there.
//
// Its methods must not be called at the same time. Those that take now return
// what is to be done outside; after each call the next Tick is due at Next. The
// same calls always have the same results.
type Model struct {
	cfg       ModelConfig
	core      *core
	disk      modelDisk
	writing   []*modelWrite // events on their way to the journal, in order
	timers    agenda[*modelTimer]
	asked     []asked
	measures  []*modelMeasure
	follows   []*followed
	following map[workerID]bool // processes whose end the core is to be told of
	number    uint64            // of the last request
	out       Actions
}

// Actions is what a Model wants done.
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

// modelTimer is something that takes time, and is lost with the node.
type modelTimer struct {
	entry
	f func(now time.Time)
}

// NewModel returns an idle node.
func NewModel(cfg ModelConfig) *Model {
	m := &Model{cfg: cfg, disk: newModelDisk(), following: map[workerID]bool{}}
	m.core = newCore(cfg.Self, modelAround{m}, cfg.Rand, cfg.Schedule, orphanLimit)
	m.core.claims.used.slots = cfg.Busy
	return m
}

// Submit accepts a job. Errors wrap ErrInvalid.
func (m *Model) Submit(now time.Time, spec Spec) (ID, Actions, error) {
	if err := spec.Validate(); err != nil {
		return "", Actions{}, err
	}
	if spec.Array != nil { // its workers only take time
		return "", Actions{}, fmt.Errorf("%w: arrays cannot be simulated", ErrInvalid)
	}
	if len(spec.After) > 0 && m.cfg.Origin == nil {
		return "", Actions{}, fmt.Errorf("%w: nobody is told what becomes of the jobs that it waits for", ErrInvalid)
	}
	id := NewID(m.cfg.Rand, m.cfg.Self.ID)
	for m.core.jobs[id] != nil {
		id = NewID(m.cfg.Rand, m.cfg.Self.ID)
	}
	m.core.submit(now, id, spec, 0)
	m.disk.jobs = append(m.disk.jobs, id)
	return id, m.Tick(now), nil
}

// Limit tells what the owner allows from now on.
func (m *Model) Limit(now time.Time, l Limits) Actions {
	m.core.limit(l)
	return m.Tick(now)
}

// Leave begins to stop the node, as SIGTERM does: nothing is offered or started
// any more, and the origins of its workers are told that these go on. Kill
// ends it.
func (m *Model) Leave(now time.Time) Actions {
	m.core.leave(now, awayLease)
	return m.Tick(now)
}

// Drain makes the node take no new workers. With evict those that it has are ended, and
// are lost there.
func (m *Model) Drain(now time.Time, evict bool) Actions {
	m.core.claims.drain()
	if evict {
		m.core.part.evictAll(now, reasonDraining)
	}
	return m.Tick(now)
}

// Undrain makes the node take workers again.
func (m *Model) Undrain(now time.Time) Actions {
	m.core.undrain()
	return m.Tick(now)
}

// Cancel ends a job of this node.
func (m *Model) Cancel(now time.Time, id ID) Actions {
	m.core.tell(now, id, func(p *primary) { p.cancel(now, "cancelled by a user") })
	return m.Tick(now)
}

// Advertised takes a flooded advertisement.
func (m *Model) Advertised(now time.Time, f flood.Message) Actions {
	ad, err := decodeAdvertisement(f.Payload, func(vicinity.ID, []byte, []byte) error { return nil })
	if err == nil && ad.Origin() != m.cfg.Self.ID {
		m.core.advertised(now, ad, f)
	}
	return m.Tick(now)
}

// MemberGone tells that the overlay has declared a node dead.
func (m *Model) MemberGone(now time.Time, id vicinity.ID) Actions {
	m.core.memberGone(now, id)
	return m.Tick(now)
}

// Tick does what is due.
func (m *Model) Tick(now time.Time) Actions {
	m.written(now)
	m.expire(now)
	m.poll(now)
	m.tellMeasured(now)
	for {
		for t, ok := m.timers.due(now); ok; t, ok = m.timers.due(now) {
			m.timers.remove(t)
			t.f(now)
		}
		list, _ := m.core.advance(now)
		for _, a := range list {
			m.perform(now, a)
		}
		if _, more := m.timers.due(now); !more && len(list) == 0 {
			break
		}
	}
	out := m.out
	m.out = Actions{}
	return out
}

// Next returns when Tick is due; zero = only after an input.
func (m *Model) Next() time.Time {
	at := earlier(earlier(m.core.wake(), m.timers.next()), m.measuring())
	if len(m.writing) > 0 {
		at = earlier(at, m.writing[0].due)
	}
	for _, a := range m.asked {
		at = earlier(at, a.until)
	}
	for _, f := range m.follows {
		if !f.asked {
			at = earlier(at, f.next)
		}
	}
	return at
}

// after has something done after a time; at once if that is none.
func (m *Model) after(now time.Time, d time.Duration, f func(now time.Time)) {
	if d <= 0 {
		f(now)
		return
	}
	m.timers.set(&modelTimer{f: f}, now.Add(d))
}

// sync is how long it takes until what is written down is durable.
func (m *Model) sync() time.Duration {
	if m.cfg.Disk == nil {
		return 0
	}
	return m.cfg.Disk()
}

// unable tells why workers cannot be started now, or "".
func (m *Model) unable() string {
	if m.cfg.Unable == nil {
		return ""
	}
	return m.cfg.Unable()
}

// perform does what the core wants done.
func (m *Model) perform(now time.Time, a action) {
	switch e := a.effect.(type) {
	case doAccepted, doSettle, doCancelWork, doForgetWork:
	case doRecord:
		m.record(now, e)
	case doFollow:
		m.follows = append(m.follows, &followed{job: e.job, after: e.after, next: now})
		m.poll(now)
	case doPacket:
		m.packet(e.to, e.packet)
	case doAnswer:
		m.answer(a.job, e)
	case doExtend:
		m.out.Extends = append(m.out.Extends, Extend{Job: a.job, Flood: e.flood, Rim: e.rim})
	case doProbe:
		m.out.Probes = append(m.out.Probes, e.id)
	case doGrant:
		m.ask(now, e.to, e.grant.Job, &e.grant, a, grantTimeout)
	case doStart:
		start := e.start
		start.Hosts = slices.Clone(start.Hosts)
		for i := range start.Hosts {
			if m, _, ok := m.cfg.Member(start.Hosts[i].Node); ok {
				start.Hosts[i].Addr = hostOf(m.Addrs)
			}
		}
		m.send(e.to, Request, start.Job, &start, request{body: &start})
	case doRelease:
		m.send(e.to, Request, e.release.Job, &e.release, request{body: &e.release})
	case doCollect:
		m.ask(now, e.from, a.job, fetch{a.job, RankAttempt{e.output.Rank, e.output.Attempt}}, a, reportTimeout)
	case doMeasure:
		m.ask(now, e.from, a.job, &Measure{Job: a.job, Nodes: e.nodes}, a, measureWait)
	case doReport:
		rep := m.disk.fill(now, &e)
		m.ask(now, e.to, rep.Job, rep, action{effect: doReport{report: *rep}}, reportTimeout)
	default:
		m.execute(now, e)
	}
}

// modelAround is a Model as its core sees the network.
type modelAround struct{ m *Model }

func (a modelAround) Member(id vicinity.ID) (vicinity.Member, bool) {
	m, _, ok := a.m.cfg.Member(id)
	return m, ok
}

func (a modelAround) Measured(id vicinity.ID) time.Duration {
	_, rtt, _ := a.m.cfg.Member(id)
	return rtt
}

func (a modelAround) Nearer(than time.Duration, limit int) []vicinity.Measured {
	if a.m.cfg.Nearer == nil {
		return nil
	}
	return a.m.cfg.Nearer(than, limit)
}

func (a modelAround) Distance(x, y vicinity.ID) time.Duration {
	if a.m.cfg.Distance == nil {
		return 0
	}
	return a.m.cfg.Distance(x, y)
}

func (a modelAround) Size() int { return a.m.cfg.Members() }

func (a modelAround) Flood(now time.Time, radius int, ad Advertisement) flood.Flood {
	payload := append(make([]byte, signatureLen), codec.MustMarshal(ad)...)
	return a.m.cfg.Flood(now, Advert{Job: ad.Job, Round: ad.Round, Radius: radius, Payload: payload})
}

func (a modelAround) Bearings() []byte { return nil }

func (a modelAround) Placed(vicinity.ID, []byte) {}
