package jobs

import (
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/vicinity"
)

// core is all that one node decides about jobs: the primaries of those that were
// submitted here, the claims on the node's slots, and its part in jobs as a
// participant. It has no disk, process, network, goroutine or clock. A Service and a
// Model each contain one: they tell it what happens, and do what it wants done.
//
// Its methods must not be called at the same time. After each of them, advance has to
// be called; the same calls always have the same results.
type core struct {
	self     vicinity.Member
	network  network
	rnd      *rand.Rand
	schedule flood.Schedule

	claims *claims
	clock  clock
	jobs   map[ID]*originJob  // that were submitted here, and are in memory
	live   agenda[*originJob] // those of them that have not ended, or are not known to have
	part   participant
	busy   int     // live jobs that nodes work for
	soon   []inner // what this node has for itself to do next
	out    []action
	news   bool // watchers are to be told
}

// action is an effect that is to be done outside, and the job that was submitted here
// whose it is, if it is one's.
type action struct {
	job ID
	effect
}

// network is what a core may ask of its network. Its methods must not block, nor
// call the core.
type network interface {
	// Member returns what is known of a node. It reports false for a node that
	// is not a member.
	Member(id vicinity.ID) (m vicinity.Member, ok bool)
	// Measured returns the RTT to a member if it was measured well enough to
	// compare it with others, else 0.
	Measured(id vicinity.ID) time.Duration
	// Nearer returns the members that were measured to be nearer than a
	// distance, nearest first, at most limit.
	Nearer(than time.Duration, limit int) []vicinity.Measured
	// Distance estimates the round trip between two other nodes; 0 = not known.
	Distance(a, b vicinity.ID) time.Duration
	// Size returns how many members there are, this node included.
	Size() int
	// Flood sends an advertisement to all nodes within the radius.
	Flood(now time.Time, radius int, ad Advertisement) flood.Flood
	// Bearings says where this node is, for Placed at another one.
	Bearings() []byte
	// Placed takes the bearings of a member.
	Placed(id vicinity.ID, bearings []byte)
}

// inner is what this node tells itself, once it has done what it is at: an answer
// to its own advertisement, or that its own offer is not needed.
type inner struct {
	answer *Answer
	yield  ID
	forget bool
}

// doPacket sends a packet.
type doPacket struct {
	to     vicinity.ID
	packet packet
}

func (doPacket) isEffect() {}

// newCore makes the core of an idle node. Rnd is the core's own from then on.
func newCore(self vicinity.Member, net network, rnd *rand.Rand, schedule flood.Schedule, orphan time.Duration) *core {
	c := &core{self: self, network: net, rnd: rnd, schedule: schedule, claims: newClaims(self, rnd), jobs: map[ID]*originJob{}}
	c.claims.member = net.Member
	c.part = participant{claims: c.claims, addrs: self.Addrs, orphan: orphan, works: map[ID]*work{}}
	return c
}

// advance does what is due, and returns what is to be done outside; news tells that
// watchers want to know of it.
func (c *core) advance(now time.Time) (out []action, news bool) {
	var due []*originJob
	for j, ok := c.live.due(now); ok; j, ok = c.live.due(now) {
		due = append(due, j)
		c.live.set(j, time.Time{}) // each once
	}
	for _, j := range due {
		for from := range j.serving {
			j.core.waitedFor(now, from)
		}
		j.core.tick(now)
		c.flush(now, j)
	}
	for again := true; again; {
		c.part.tick(now)
		c.tryAgain(now)
		if at := c.claims.wake(); !at.IsZero() && !now.Before(at) {
			c.offerQueued(now)
		}
		again = len(c.soon) > 0
		if again {
			next := c.soon[0]
			c.soon = c.soon[1:]
			if next.answer != nil {
				c.answered(now, c.self.ID, *next.answer)
				c.send(now, c.claims.takenBack())
			} else {
				c.yielded(now, c.self.ID, next.yield, next.forget)
			}
		}
	}
	out, news = c.out, c.news || c.part.news
	for _, e := range c.part.out {
		out = append(out, action{effect: e})
	}
	c.out, c.part.out, c.news, c.part.news = nil, nil, false, false
	return out, news
}

// wake returns when advance is to be called next; zero = only after an input.
func (c *core) wake() time.Time {
	at := earlier(c.claims.wake(), earlier(c.live.next(), c.part.agenda.next()))
	if s := &c.claims.starts; !s.trying && c.part.away == 0 {
		at = earlier(at, s.next)
	}
	return at
}

// tryAgain finds out by and by whether a node that could not start workers can
// again.
func (c *core) tryAgain(now time.Time) {
	if s := &c.claims.starts; !s.trying && !s.next.IsZero() && !now.Before(s.next) && c.part.away == 0 {
		s.trying = true
		c.part.do(doTry{since: now})
	}
}

func (c *core) do(e effect) { c.out = append(c.out, action{effect: e}) }

// submit makes the primary of a new job, whose inputs have so many bytes.
func (c *core) submit(now time.Time, id ID, spec Spec, inputs int64) *originJob {
	j := c.newJob(id)
	c.add(j)
	j.core.staged.Total = inputs
	j.core.do(doAccepted{})
	j.core.submit(now, spec, c.clock.now(now), c.schedule)
	c.flush(now, j)
	c.follow(j)
	return j
}

// newJob makes a job of this node, of which nothing is known yet. It may be called
// from any goroutine.
func (c *core) newJob(id ID) *originJob {
	p := newPrimary(id, c.self, c.rnd, c.schedule)
	p.measured, p.near, p.members, p.distance = c.network.Measured, c.network.Nearer, c.network.Size, c.network.Distance
	return &originJob{core: p, serving: map[vicinity.ID]int{}}
}

// add takes a job into memory; if it has ended, that must be durable.
func (c *core) add(j *originJob) {
	c.jobs[j.core.rec.id] = j
	j.settled = j.core.rec.state.Final()
}

// resume goes on with a job that had not ended when this node's life before did.
func (c *core) resume(now time.Time, j *originJob) {
	j.core.resume(now, c.schedule)
	c.flush(now, j)
	c.follow(j)
}

// drop takes a job out of memory. Nothing is written down of it any more.
func (c *core) drop(id ID) {
	if j := c.jobs[id]; j != nil {
		j.gone = true
		c.settled(j)
		delete(c.jobs, id)
	}
}

// settled takes a job out of those that may have something to do. It may be called
// again.
func (c *core) settled(j *originJob) {
	if j.settled = true; j.number > 0 {
		c.live.remove(j)
		c.count(j, false)
	}
}

// refuse forgets a job whose submission could not be written down, and returns the
// answers that were to come after that.
func (c *core) refuse(id ID) (answers []doAnswer) {
	for _, st := range c.jobs[id].steps[1:] {
		for _, e := range st.effects {
			if a, ok := e.(doAnswer); ok {
				answers = append(answers, a)
			}
		}
	}
	c.drop(id)
	return answers
}

// count notes whether nodes work for a job.
func (c *core) count(j *originJob, busy bool) {
	if busy != j.busy {
		j.busy = busy
		if busy {
			c.busy++
		} else {
			c.busy--
		}
	}
}

// memberGone tells that the overlay has declared a node dead.
func (c *core) memberGone(now time.Time, id vicinity.ID) {
	for _, j := range slices.Clone(c.live.list) {
		if !j.core.rec.state.Final() {
			j.core.memberGone(now, id)
			c.flush(now, j)
		}
	}
}

// overslept gives the nodes that work for the jobs their time to report anew.
func (c *core) overslept(now time.Time) {
	for _, j := range c.live.list {
		j.core.overslept(now)
	}
}

// limit tells what the owner allows from now on.
func (c *core) limit(l Limits) {
	c.claims.limit(l)
	c.claims.loose = true
}

// leave begins to stop the node; see participant.leave.
func (c *core) leave(now time.Time, away time.Duration) {
	c.claims.closed = reasonLeaving
	c.part.leave(now, away)
}

// advertised takes an advertisement that came over so many hops; rim tells that
// it was not to be passed on, else to how many nodes it is.
func (c *core) advertised(now time.Time, ad Advertisement, m flood.Message) {
	c.clock.saw(ad.Stamp, now)
	a := c.claims.advertised(now, ad)
	a.Hops, a.Rim, a.Onward = int(m.Hops), m.TTL == 1, min(m.Onward, maxOnward)
	if ad.Near {
		a.At = c.network.Bearings()
	}
	c.do(doPacket{ad.Origin(), packet{Answer: &a}})
	c.send(now, c.claims.takenBack())
}

// received takes a packet of another node.
func (c *core) received(now time.Time, from vicinity.ID, p packet) {
	switch {
	case p.Answer != nil:
		c.answered(now, from, *p.Answer)
	case p.Signed >= c.claims.signed(p.Yield): // else it was recorded before the advertisement that it would undo
		c.yielded(now, from, p.Yield, p.Forget)
	}
}

// answered hands an answer to the job's primary.
func (c *core) answered(now time.Time, from vicinity.ID, a Answer) {
	j := c.jobs[a.Job]
	if j == nil {
		if a.Job.Origin() == c.self.ID && a.Workers > 0 {
			c.yield(from, a.Job, true, now)
		}
		return
	}
	m, ok := c.network.Member(from)
	if !ok {
		m = vicinity.Member{ID: from}
	}
	rtt := c.network.Measured(from)
	if from == c.self.ID {
		m, rtt = c.self, 1 // nearer than all others; 0 would mean "not known"
	}
	if len(a.At) > 0 {
		c.network.Placed(from, a.At)
	}
	j.core.answered(now, m, rtt, a)
	c.flush(now, j)
}

// yield tells a node that its offer is not needed.
func (c *core) yield(to vicinity.ID, id ID, forget bool, now time.Time) {
	if to == c.self.ID {
		c.soon = append(c.soon, inner{yield: id, forget: forget})
		return
	}
	c.do(doPacket{to, packet{Yield: id, Forget: forget, Signed: now.UnixMilli()}})
}

// yielded ends a hold that the origin does not need.
func (c *core) yielded(now time.Time, from vicinity.ID, id ID, forget bool) {
	if id.Origin() == from {
		c.claims.released(id, forget)
		c.offerQueued(now)
	}
}

// released ends what an origin does not want of this node.
func (c *core) released(now time.Time, from vicinity.ID, m *Release) {
	if len(m.Ranks) == 0 {
		c.yielded(now, from, m.Job, true)
	}
	if w := c.part.workFor(from, m.Job); w != nil {
		what := wantDrop
		if m.Stop {
			what = wantStop
		}
		c.part.want(now, w, what, m.Ranks)
	}
}

// started lets workers run, and reports whether there is any of that job here.
func (c *core) started(now time.Time, from vicinity.ID, m *Start) bool {
	if c.part.workFor(from, m.Job) == nil {
		return false
	}
	c.part.started(now, m)
	return true
}

// undrain makes the node take workers again.
func (c *core) undrain() {
	if c.claims.closed == reasonDraining {
		c.claims.closed, c.claims.loose = "", true
	}
}

// adopt goes on with a worker of an earlier life of this node.
func (c *core) adopt(now time.Time, r claimRecord) {
	c.clock.saw(r.Stamp, now)
	c.part.adopt(now, r)
}

// granted takes a grant.
func (c *core) granted(now time.Time, from vicinity.ID, g *Grant) error {
	err := c.part.granted(now, from, g)
	if err == nil {
		c.clock.saw(g.Stamp, now)
	}
	c.offerQueued(now)
	return err
}

// offerQueued offers free room to queued jobs.
func (c *core) offerQueued(now time.Time) { c.send(now, c.claims.offers(now)) }

func (c *core) send(now time.Time, list []outgoing) {
	for _, out := range list {
		if out.to == c.self.ID {
			c.answered(now, out.to, out.answer)
		} else {
			c.do(doPacket{out.to, packet{Answer: &out.answer}})
		}
	}
}

// workFor finds what this node does for a job of that origin.
func (p *participant) workFor(from vicinity.ID, id ID) *work {
	if w := p.works[id]; w != nil && w.origin == from {
		return w
	}
	return nil
}
