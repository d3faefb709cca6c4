package jobs

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"zorilla/flood"
	"zorilla/vicinity"
)

// primary is the core of one job at its origin: the record answerable for the
// job, and the search for its workers. It has no goroutine, lock or clock; each
// method takes the time and an input and leaves events and effects in out,
// which the shell takes: effects are released once the events before them are
// on disk.
type primary struct {
	rec  record
	self vicinity.Member
	rnd  *rand.Rand
	out  step

	// The search. answers holds the latest answer of every node, offers
	// those that stand.
	search   flood.Search
	frontier flood.Frontier
	current  flood.Flood                        // what frontier is about
	measured func(id vicinity.ID) time.Duration // round trip; 0 = not measured
	near     func(than time.Duration, limit int) []vicinity.Measured
	members  func() int                           // how many, this node included
	distance func(a, b vicinity.ID) time.Duration // between two others, estimated; 0 = not known
	group    group
	waited   bool // for nodes that are busy; grow all the same
	answers  map[vicinity.ID]NodeAnswer
	room     map[vicinity.ID]capacity
	offers   map[vicinity.ID]offer
	avoid    map[vicinity.ID]time.Time // nodes that could not prepare, until when
	rounds   []Round
	reached  map[vicinity.ID]bool // in the last round
	keep     time.Time            // standing offers are given back then
	poke     time.Time            // an extra flood, because room was offered from a queue
	flooded  time.Time
	settle   time.Time     // enough is offered, but nearer nodes may still answer
	horizon  time.Duration // more workers are welcome if they are nearer; 0 = no more
	vain     int           // nodes below the horizon that were reached since one of them offered
	asked    time.Time     // when nodes were last measured for this choice
	grow     time.Time     // the flood can be extended then

	parts      map[vicinity.ID]*part
	received   map[RankAttempt]received
	collecting map[RankAttempt]bool
	staged     Staged
	moved      map[RankAttempt]Staged // as its node told last; Total is not used
	table      tableState
	version    uint64
}

// offer is a node's leased hold.
type offer struct {
	key     uint64
	workers int
	rtt     time.Duration
	exact   bool // rtt is measured, else an upper bound
	probed  bool // rtt is being measured
	expires time.Time
}

// capacity is what a node could do for the job beyond what it offers.
type capacity struct {
	workers int       // that it could ever run
	free    time.Time // when there will be room for one; zero = not known
}

// part is what the primary knows of a participant.
type part struct {
	heard time.Time // last sign of life
	spare bool      // this node was away itself: until a report comes, what the overlay says of it may be old
	back  time.Time // its node is being started again, until then at the latest; zero = no
	key   uint64    // of the offer that was granted last

	counted time.Time                 // when its report was last compared with what it has
	unnamed map[RankAttempt]time.Time // since when its reports do not name a rank that it has
}

// received counts output bytes that the origin has.
type received struct{ stdout, stderr int64 }

// step is what a method of primary leaves for the shell.
type step struct {
	events  []event
	effects []effect
}

// effect is something to be done outside of the core.
type effect interface{ isEffect() }

type (
	doFlood struct {
		ad     Advertisement
		radius int
	}
	doExtend struct {
		flood flood.Flood
		rim   []flood.Reach
	}
	doProbe struct{ id vicinity.ID } // have the RTT measured
	doGrant struct {
		to    vicinity.ID
		grant Grant
	}
	doStart struct {
		to    vicinity.ID
		start Start
	}
	doRelease struct {
		to      vicinity.ID
		release Release
	}
	doYield struct { // a hold is not needed (now)
		to     vicinity.ID
		job    ID
		forget bool // nor is another one
	}
	doCollect struct {
		from   vicinity.ID
		output RankOutput
	}
	// doAccepted tells who has submitted the job that it is durable.
	doAccepted struct{}
	// doAnswer answers a request: what came before it is durable.
	doAnswer struct {
		to     vicinity.ID
		number uint64 // of the request
		ack    Ack
	}
)

func (doFlood) isEffect()    {}
func (doExtend) isEffect()   {}
func (doProbe) isEffect()    {}
func (doGrant) isEffect()    {}
func (doStart) isEffect()    {}
func (doRelease) isEffect()  {}
func (doYield) isEffect()    {}
func (doCollect) isEffect()  {}
func (doAccepted) isEffect() {}
func (doAnswer) isEffect()   {}

const (
	// partLease is how long a participant may be silent before its ranks
	// count as lost; it reports every reportEvery.
	partLease   = 10 * time.Second
	reportEvery = 2 * time.Second
	// maxAway bounds how long a node that was stopped is waited for.
	maxAway = 10 * time.Minute
	// goneGrace is what is left of it once the overlay has declared the node
	// dead.
	goneGrace = 3 * time.Second
	// avoidFor keeps a job away from a node that could not prepare it.
	avoidFor = 30 * time.Second
	// keepOffers is how long a job that is short of workers lets others'
	// slots be held after a flood.
	keepOffers = time.Second
	// maxSettle bounds the wait for nearer offers.
	maxSettle = 250 * time.Millisecond
	// maxExtend bounds how long a job that has enough offers looks for nearer
	// ones; it is well below their lease.
	maxExtend = time.Second
	// maxVain bounds how many nodes that are near enough such a job reaches
	// without an offer: near nodes that are all busy must not cost a flood of
	// them all.
	maxVain   = 1024
	maxProbes = 64
	// maxMeet bounds the near members to which a flood is carried that did not
	// reach them, at a time.
	maxMeet   = 64
	maxRounds = 64
)

// newPrimary makes the core of a job from its events: one for a new job, all
// of the journal after a restart.
func newPrimary(id ID, self vicinity.Member, rnd *rand.Rand, schedule flood.Schedule) *primary {
	return &primary{
		rec:  record{id: id, origin: self.ID},
		self: self, rnd: rnd,
		search:     flood.NewSearch(schedule, 1),
		answers:    map[vicinity.ID]NodeAnswer{},
		room:       map[vicinity.ID]capacity{},
		measured:   func(vicinity.ID) time.Duration { return 0 },
		near:       func(time.Duration, int) []vicinity.Measured { return nil },
		members:    func() int { return math.MaxInt },
		distance:   func(a, b vicinity.ID) time.Duration { return 0 },
		offers:     map[vicinity.ID]offer{},
		avoid:      map[vicinity.ID]time.Time{},
		reached:    map[vicinity.ID]bool{},
		parts:      map[vicinity.ID]*part{},
		received:   map[RankAttempt]received{},
		collecting: map[RankAttempt]bool{},
		moved:      map[RankAttempt]Staged{},
		version:    1, // 0 is what a client says that knows nothing
	}
}

// emit applies an event and hands it to the journal.
func (p *primary) emit(ev event) {
	p.rec.apply(ev)
	p.out.events = append(p.out.events, ev)
	p.version++
}

// warn tells the user something that matters even if the job ends well, once.
func (p *primary) warn(now time.Time, text string) {
	if !slices.Contains(p.rec.warnings, text) {
		p.emit(event{Kind: evWarned, At: now, Warn: []string{text}})
	}
}

func (p *primary) do(e effect) { p.out.effects = append(p.out.effects, e) }

// take returns and clears what has been left to do.
func (p *primary) take() step {
	s := p.out
	p.out = step{}
	return s
}

// submit begins a new job.
func (p *primary) submit(now time.Time, spec Spec, stamp Stamp, schedule flood.Schedule) {
	p.emit(event{Kind: evSubmitted, At: now, Spec: &spec, Stamp: stamp})
	p.search = flood.NewSearch(spec.Search.schedule(schedule), spec.least())
	p.tick(now)
}

// resume goes on after the origin was restarted: participants of before are
// expected to report within a lease, ranks that had not started are searched
// for again.
func (p *primary) resume(now time.Time, schedule flood.Schedule) {
	p.search = flood.NewSearch(p.rec.spec.Search.schedule(schedule), p.rec.spec.least())
	var back []RankAttempt
	for i := range p.rec.ranks {
		k := &p.rec.ranks[i]
		switch k.state {
		case WorkerPreparing, WorkerReady:
			back = append(back, RankAttempt{i, k.attempt})
		case WorkerRunning, WorkerEnded:
			p.parts[k.node] = &part{heard: now, spare: true, back: p.expected(now, k.node)}
		}
	}
	if len(back) > 0 {
		p.emit(event{Kind: evReleased, At: now, Ranks: back, Reason: "given back before its start: this node was started again"})
	}
	p.tick(now)
}

// tick does what is due and must be called at wake, or at any other time.
func (p *primary) tick(now time.Time) {
	if p.rec.state.Final() {
		return
	}
	p.checkParts(now)
	p.giveUp(now)
	p.advance(now)
	p.pursue(now)
}

// wake returns when tick is due next; zero = only after an input.
func (p *primary) wake() time.Time {
	if p.rec.state.Final() {
		return time.Time{}
	}
	var at time.Time
	switch {
	case p.wanted() == 0:
	case !p.settle.IsZero():
		at = earlier(p.settle, p.grow)
	default:
		next := p.search.Wake()
		at = earlier(earlier(next, p.grow), earlier(p.poke, p.keep))
	}
	if d := p.rec.spec.GiveUp; d > 0 && p.rec.started.IsZero() && len(p.unmet()) == 0 {
		at = earlier(at, p.rec.eligible.Add(time.Duration(d)))
	}
	for _, part := range p.parts {
		at = earlier(at, part.lease())
	}
	return at
}

// cancel ends the job because a user wants it.
func (p *primary) cancel(now time.Time, why string) {
	if p.rec.state.Final() {
		return
	}
	p.end(now, Cancelled, why, CodeCancelled)
}

// end makes the job final and lets everybody go.
func (p *primary) end(now time.Time, state State, reason string, code int) {
	t := p.tally()
	p.emit(event{Kind: evEnded, At: now, State: state, Reason: reason, Code: code, Tally: &t})
	for _, id := range slices.Sorted(maps.Keys(p.parts)) {
		p.do(doRelease{to: id, release: Release{Job: p.rec.id}})
	}
	for _, id := range slices.Sorted(maps.Keys(p.answers)) {
		if p.parts[id] == nil {
			p.do(doYield{to: id, job: p.rec.id, forget: true})
		}
	}
	p.offers = map[vicinity.ID]offer{}
	p.parts = map[vicinity.ID]*part{}
}

// giveUp ends a job that has not started within its --give-up time.
func (p *primary) giveUp(now time.Time) {
	d := time.Duration(p.rec.spec.GiveUp)
	if d <= 0 || !p.rec.started.IsZero() || len(p.unmet()) > 0 || now.Before(p.rec.eligible.Add(d)) || p.rec.state.Final() {
		return
	}
	p.end(now, Failed, fmt.Sprintf("gave up after %v: %s", d, p.reason()), CodeZorilla)
}

// wanted returns how many workers are still looked for.
func (p *primary) wanted() int {
	if p.rec.state.Final() || p.closing() || len(p.unmet()) > 0 || p.rec.replicated() && !p.rec.started.IsZero() {
		return 0
	}
	return len(p.wantedRanks(p.rec.spec.Workers()))
}

// wantedRanks lists at most limit ranks that need a node: lost ones first,
// then new ones, unless the job has stopped growing.
func (p *primary) wantedRanks(limit int) []int {
	var lost, fresh []int
	if t := p.rec.tasks; t != nil { // those that come will take one each
		limit = min(limit, max(0, t.waits-p.count(WorkerPreparing, WorkerReady)))
	}
	grow := p.growing()
	for i := range p.rec.ranks {
		switch p.rec.ranks[i].state {
		case WorkerLost:
			lost = append(lost, i)
		case WorkerWanted:
			if len(fresh) < limit && (grow || p.rec.ranks[i].attempt > 0) {
				fresh = append(fresh, i)
			}
		}
	}
	all := append(lost, fresh...)
	return all[:min(limit, len(all))]
}

// growing reports whether ranks that never had a node are still wanted: not
// any more once a first rank has ended.
func (p *primary) growing() bool {
	return p.rec.tasks != nil || !slices.ContainsFunc(p.rec.ranks, func(k rankRecord) bool { return k.state == WorkerEnded })
}

// count returns how many ranks are in one of the states.
func (p *primary) count(states ...WorkerState) int {
	n := 0
	for i := range p.rec.ranks {
		if slices.Contains(states, p.rec.ranks[i].state) {
			n++
		}
	}
	return n
}

// label names a node for people: its name, and its short ID.
func label(name string, id vicinity.ID) string {
	return strings.TrimSpace(name + " (" + id.Short() + ")")
}
