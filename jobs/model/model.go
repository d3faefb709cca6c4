// Package model is a node without a machine, for simulators and model checkers.
package model

import (
	"fmt"
	"math/rand/v2"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Config describes a Model. Self, Rand, Flood, Member and Members are
// required. The functions are called by the Model's methods and must not call
// them.
type Config struct {
	Self vicinity.Member
	Rand *rand.Rand // owned by the model
	// Flood starts the flood of an advertisement; see flood.Core.Start.
	Flood func(now time.Time, ad Advert) flood.Flood
	// Member reports what is known of a node, and the round trip to it, 0 while
	// it is not measured; see Overlay.
	Member func(id vicinity.ID) (m vicinity.Member, rtt time.Duration, ok bool)
	// Fresh is the round trip to a node by what was measured in a time up to now; nil = as
	// by Member.
	Fresh func(id vicinity.ID, within time.Duration) time.Duration
	// Nearer lists whom the node has measured to be near; see Overlay. Nil =
	// nobody.
	Nearer  func(than time.Duration, limit int) []vicinity.Measured
	Members func() int // how many there are, this node included
	// Distance estimates the round trip between two other nodes; nil, or 0, =
	// not known.
	Distance func(a, b vicinity.ID) time.Duration
	// Speed is how fast files went to a node; nil, or a rate of 0, = not known. Input is how
	// many bytes the jobs submitted here have of them.
	Speed func(id vicinity.ID) vicinity.Speed
	Input int64
	// Busy is how many slots something uses for good that is not simulated.
	Busy int
	// Fate reports what becomes of a worker that was granted; nil = it is ready
	// at once and runs until it is released.
	Fate func(job jobs.ID, spec *jobs.Spec, ra jobs.RankAttempt) Fate
	// Disk is how long it takes until what is written down is durable; nil =
	// no time.
	Disk func() time.Duration
	// Unable reports why the node cannot start workers now; nil, or "" = it can.
	Unable func() string
	// Hangs reports whether the node's disk hangs: what is done for workers there is done when it
	// does not any more, and Tick is called. Nil = it never does.
	Hangs func() bool
}

// Fate is what becomes of a worker.
type Fate struct {
	Prepare time.Duration // until it is ready
	Unfit   string        // why it will not be ready; "" = it will
	Run     time.Duration // until it ends by itself; 0 = never
	Code    int           // that it ends with then
	Stop    time.Duration // that it takes to end when it is told to
	Output  int           // bytes that it writes, evenly while it runs; see OutputByte
	Saves   time.Duration // between its checkpoints; 0 = it makes none
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
	cfg       Config
	core      *core.Core
	disk      disk
	writing   []*write // events on their way to the journal, in order
	timers    timers.Queue[*timer]
	asked     []asked
	measures  []*measure
	follows   []*followed
	following map[participant.WorkerID]bool // processes whose end the core is to be told of
	number    uint64                        // of the last request
	savings   savings
	frozen    []participant.Effect // what waits for the disk
	out       Actions
}

// Actions is what a Model wants done.
type Actions struct {
	Extends  []Extend
	Messages []Message
	Probes   []vicinity.ID // members whose round trip should be measured soon
	Connects []vicinity.ID // nodes that requests will go to soon
}

// Advert is an advertisement to be flooded.
type Advert struct {
	Job     jobs.ID
	Radius  int // 0 = it is sent to nobody until it is extended
	Payload []byte
}

// Extend carries a flood of this node beyond its rim; see flood.Core.Extend.
type Extend struct {
	Job   jobs.ID
	Flood flood.Flood
	Rim   []flood.Reach
}

// timer is something that takes time, and is lost with the node.
type timer struct {
	timers.Entry
	f func(now time.Time)
}

// New returns an idle node.
func New(cfg Config) *Model {
	if cfg.Disk == nil {
		cfg.Disk = func() time.Duration { return 0 }
	}
	if cfg.Unable == nil {
		cfg.Unable = func() string { return "" }
	}
	if cfg.Hangs == nil {
		cfg.Hangs = func() bool { return false }
	}
	if cfg.Fresh == nil {
		cfg.Fresh = func(id vicinity.ID, _ time.Duration) time.Duration {
			_, rtt, _ := cfg.Member(id)
			return rtt
		}
	}
	if cfg.Nearer == nil {
		cfg.Nearer = func(time.Duration, int) []vicinity.Measured { return nil }
	}
	if cfg.Distance == nil {
		cfg.Distance = func(a, b vicinity.ID) time.Duration { return 0 }
	}
	if cfg.Speed == nil {
		cfg.Speed = func(vicinity.ID) (none vicinity.Speed) { return none }
	}
	m := &Model{cfg: cfg, disk: newModelDisk(), following: map[participant.WorkerID]bool{}}
	m.savings = savings{m: m, of: map[participant.WorkerID]*saver{}}
	m.core = core.New(cfg.Self, around{m}, cfg.Rand, participant.OrphanLimit)
	m.core.Claims.Used.Slots = cfg.Busy
	return m
}

// Submit accepts a job. Errors wrap ErrInvalid.
func (m *Model) Submit(now time.Time, spec jobs.Spec) (jobs.ID, Actions, error) {
	if err := spec.Validate(); err != nil {
		return "", Actions{}, err
	}
	if spec.Array != nil { // its workers only take time
		return "", Actions{}, fmt.Errorf("%w: arrays cannot be simulated", jobs.ErrInvalid)
	}
	id := jobs.NewID(m.cfg.Rand, m.cfg.Self.ID)
	for m.core.Jobs[id] != nil {
		id = jobs.NewID(m.cfg.Rand, m.cfg.Self.ID)
	}
	m.core.Submit(now, id, spec, m.cfg.Input)
	m.disk.jobs = append(m.disk.jobs, id)
	return id, m.Tick(now), nil
}

// Leave begins to stop the node, as SIGTERM does: nothing is offered or started
// any more, and the origins of its workers are told that these go on. Kill
// ends it.
func (m *Model) Leave(now time.Time) Actions {
	m.core.Leave(now, wire.AwayLease)
	return m.Tick(now)
}

// Advertised takes a flooded advertisement.
func (m *Model) Advertised(now time.Time, f flood.Message) Actions {
	ad, err := wire.DecodeAdvertisement(f.Payload, func(vicinity.ID, []byte, []byte) error { return nil })
	if err == nil && ad.Origin() != m.cfg.Self.ID {
		m.core.Advertised(now, ad, f)
	}
	return m.Tick(now)
}

// Membership tells that the overlay has a member, perhaps once more, or has declared a
// node dead.
func (m *Model) Membership(now time.Time, id vicinity.ID, member bool) Actions {
	m.core.Membership(now, id, member)
	return m.Tick(now)
}

// Tick does what is due.
func (m *Model) Tick(now time.Time) Actions {
	m.written(now)
	m.expire(now)
	m.poll(now)
	m.tellMeasured(now)
	m.thaw(now)
	for {
		for t, ok := m.timers.Due(now); ok; t, ok = m.timers.Due(now) {
			m.timers.Remove(t)
			t.f(now)
		}
		list, _ := m.core.Advance(now)
		for _, a := range list {
			m.perform(now, a)
		}
		if _, more := m.timers.Due(now); !more && len(list) == 0 {
			break
		}
	}
	out := m.out
	m.out = Actions{}
	return out
}

// Next returns when Tick is due; zero = only after an input.
func (m *Model) Next() time.Time {
	at := timers.Earlier(timers.Earlier(m.core.Wake(), m.timers.Next()), earliest(m.measures))
	if len(m.writing) > 0 {
		at = timers.Earlier(at, m.writing[0].due)
	}
	for _, a := range m.asked {
		at = timers.Earlier(at, a.until)
	}
	for _, f := range m.follows {
		if !f.asked {
			at = timers.Earlier(at, f.next)
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
	m.timers.Set(&timer{f: f}, now.Add(d))
}

// perform does what the core wants done.
func (m *Model) perform(now time.Time, a core.Action) {
	switch e := a.Effect.(type) {
	case primary.DoAccepted, core.DoSettle, participant.DoCancelWork, participant.DoForgetWork:
	case core.DoRecord:
		m.record(now, &write{DoRecord: e})
	case core.DoKeepBooking:
		m.record(now, &write{booking: &e})
	case core.DoForgetBooking:
		m.record(now, &write{forget: e.Name})
	case core.DoBooked:
		m.send(e.To, Reply, "", &e.Answer, reply{number: e.Number, booked: e.Answer})
	case core.DoFollow:
		m.follows = append(m.follows, &followed{job: e.Job, after: e.After, next: now})
		m.poll(now)
	case core.DoPacket:
		m.packet(e.To, e.Packet)
	case primary.DoAnswer:
		m.answer(a.Job, e)
	case primary.DoExtend:
		m.out.Extends = append(m.out.Extends, Extend{Job: e.Job, Flood: e.Flood, Rim: e.Rim})
	case core.DoConnect:
		m.out.Connects = append(m.out.Connects, e.To)
	case primary.DoProbe:
		m.out.Probes = append(m.out.Probes, e.ID)
	case primary.DoGrant:
		m.ask(now, e.To, e.Grant.Job, &e.Grant, a, e.Within)
	case primary.DoStart:
		start := e.Start.WithAddrs(around{m}.Member)
		m.send(e.To, Request, start.Job, &start, request{body: &start})
	case primary.DoKnock:
		m.ask(now, e.To, a.Job, knock{}, a, e.Within)
	case primary.DoRelease:
		m.send(e.To, Request, e.Release.Job, &e.Release, request{body: &e.Release})
	case primary.DoBook:
		m.ask(now, e.To, a.Job, &e.Book, a, e.Within)
	case primary.DoKeep:
		m.send(e.To, Request, a.Job, &e.Keep, request{body: &e.Keep})
	case primary.DoCollect:
		m.ask(now, e.From, a.Job, fetch{a.Job, jobs.RankAttempt{Rank: e.Output.Rank, Attempt: e.Output.Attempt}}, a, wire.ReportTimeout)
	case primary.DoMeasure:
		m.ask(now, e.From, a.Job, &wire.Measure{Job: a.Job, Nodes: e.Nodes}, a, wire.MeasureWait)
	case participant.DoReport:
		rep := m.disk.fill(now, &e)
		m.ask(now, e.To, rep.Job, rep, core.Action{Effect: participant.DoReport{Report: *rep}}, wire.ReportTimeout)
	case participant.Effect:
		m.execute(now, e)
	default:
		panic(fmt.Sprintf("model: nobody does %T", e))
	}
}

// around is a Model as its core sees the network.
type around struct{ m *Model }

func (a around) Member(id vicinity.ID) (vicinity.Member, bool) {
	m, _, ok := a.m.cfg.Member(id)
	return m, ok
}

func (a around) Measured(id vicinity.ID, within time.Duration) time.Duration {
	if within > 0 {
		return a.m.cfg.Fresh(id, within)
	}
	_, rtt, _ := a.m.cfg.Member(id)
	return rtt
}

func (a around) Nearer(than time.Duration, limit int) []vicinity.Measured {
	return a.m.cfg.Nearer(than, limit)
}

func (a around) Distance(x, y vicinity.ID) time.Duration { return a.m.cfg.Distance(x, y) }
func (a around) Speed(id vicinity.ID) vicinity.Speed     { return a.m.cfg.Speed(id) }
func (a around) Size() int                               { return a.m.cfg.Members() }

func (a around) Flood(now time.Time, radius int, ad wire.Advertisement) flood.Flood {
	payload := append(make([]byte, wire.SignatureLen), codec.MustMarshal(ad)...)
	return a.m.cfg.Flood(now, Advert{Job: ad.Job, Radius: radius, Payload: payload})
}

func (a around) Bearings() []byte { return nil }

func (a around) Placed(vicinity.ID, []byte) {}
