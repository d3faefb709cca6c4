// Package core is all that a node decides about jobs, as one plain struct. Package
// agent has one and does what it wants with processes, files and the network; package
// model has one in a simulation. What is proven of the one holds for the other.
//
// Events before effects: what a primary wants done is released in order, when the
// events before it are durable.
package core

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/claims"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Core is all that one node decides about jobs: the primaries of those that were
// submitted here, the claims on the node's slots, and its part in jobs as a
// participant. It has no disk, process, network, goroutine or clock: it is told what
// happens, and says what is to be done.
//
// Its methods must not be called at the same time. After each of them, Advance has to
// be called; the same calls always have the same results.
type Core struct {
	Self    vicinity.Member
	network Network
	rnd     *rand.Rand

	Claims  *claims.Claims
	Clock   jobs.Clock
	Jobs    map[jobs.ID]*Job   // that were submitted here, and are in memory
	Live    timers.Queue[*Job] // those of them that have not ended, or are not known to have
	Signs   primary.Signs      // of the nodes that work for them
	turns   primary.Turns      // to have a start promised
	batches batches
	// Bookings are those of jobs of whatever origin.
	Bookings Bookings
	Part     participant.Participant
	Busy     int    // live jobs that nodes work for
	answers  uint64 // the number of the last answer
	// soon are packets of this node to itself: to be done once it has done what it is at.
	soon  []wire.Packet
	again repeats
	out   []Action
	news  bool // watchers are to be told
}

// Network is what a core may ask of its network. Its methods must not block, nor
// call the core.
type Network interface {
	Around
	// Flood sends an advertisement to all nodes within the radius.
	Flood(now time.Time, radius int, ad wire.Advertisement) flood.Flood
	// Speed is how fast files went to a node, as far as it is known.
	Speed(id vicinity.ID) vicinity.Speed
}

// Around is who the others are, and how far.
type Around interface {
	// Member returns what is known of a node. It reports false for a node that
	// is not a member.
	Member(id vicinity.ID) (m vicinity.Member, ok bool)
	// Measured returns the RTT to a member if it was measured well enough to
	// compare it with others, in a time up to now; 0 = ever. Else it returns 0.
	Measured(id vicinity.ID, within time.Duration) time.Duration
	// Nearer returns the members that were measured to be nearer than a
	// distance, nearest first, at most limit.
	Nearer(than time.Duration, limit int) []vicinity.Measured
	// Distance estimates the round trip between two other nodes; 0 = not known.
	Distance(a, b vicinity.ID) time.Duration
	// Size returns how many members there are, this node included.
	Size() int
	// Bearings says where this node is, for Placed at another one.
	Bearings() []byte
	// Placed takes the bearings of a member.
	Placed(id vicinity.ID, bearings []byte)
}

// DoPacket sends a packet.
type DoPacket struct {
	To     vicinity.ID
	Packet wire.Packet
}

// DoConnect connects to a node that will, or may, have to be told something soon, unless that
// was done not long ago. Addrs are where it says it is; nil = as the overlay knows.
type DoConnect struct {
	To    vicinity.ID
	Addrs []string
}

// New makes the core of an idle node. Rnd is the core's own from then on.
func New(self vicinity.Member, net Network, rnd *rand.Rand, orphan time.Duration) *Core {
	c := &Core{Self: self, network: net, rnd: rnd, Claims: claims.New(self, rnd), Jobs: map[jobs.ID]*Job{}}
	c.batches, c.Bookings = newBatches(c), Bookings{claims: c.Claims}
	c.Claims.Member = net.Member
	c.Part = participant.Participant{Claims: c.Claims, Addrs: self.Addrs, Orphan: orphan, Works: map[jobs.ID]*participant.Work{}}
	return c
}

// Advance does what is due, and returns what is to be done outside; news reports that
// watchers want to know of it.
func (c *Core) Advance(now time.Time) (out []Action, news bool) {
	var due []*Job
	for j, ok := c.Live.Due(now); ok; j, ok = c.Live.Due(now) {
		due = append(due, j)
		c.Live.Set(j, time.Time{}) // each once
	}
	for _, j := range due {
		for from := range j.Serving {
			j.Primary.WaitedFor(now, from)
		}
		if rec := &j.Primary.Rec; record.Early(rec) && !now.Before(rec.Spec.Search.Begin) {
			c.batches.join(now, j, &rec.Spec)
		}
		j.Primary.Tick(now)
		c.Flush(now, j)
	}
	c.batches.tick(now)
	for _, p := range c.again.due(now) {
		c.do(p)
	}
	for again := true; again; {
		c.Part.Tick(now)
		c.tryAgain(now)
		if at := c.Claims.Wake(); !at.IsZero() && !now.Before(at) {
			c.offerQueued(now)
		}
		again = len(c.soon) > 0
		if again {
			next := c.soon[0]
			c.soon = c.soon[1:]
			c.Received(now, c.Self.ID, next)
			if next.Answer != nil {
				c.send(now, c.Claims.TakenBack())
			}
		}
	}
	c.Bookings.forget()
	out, news = c.out, c.news || c.Part.News
	for _, e := range c.Bookings.out {
		out = append(out, Action{Effect: e})
	}
	for _, e := range c.Part.Out {
		out = append(out, Action{Effect: e})
	}
	c.out, c.Bookings.out, c.Part.Out, c.news, c.Part.News = nil, nil, nil, false, false
	return out, news
}

// Wake returns when Advance is to be called next; zero = only after an input.
func (c *Core) Wake() time.Time {
	at := timers.Earlier(c.Claims.Wake(), timers.Earlier(c.Live.Next(), c.Part.Wake()))
	at = timers.Earlier(timers.Earlier(at, c.again.next()), c.batches.due.Next())
	if s := &c.Claims.Starts; !s.Trying && c.Part.Leaving == 0 {
		at = timers.Earlier(at, s.Next)
	}
	return at
}

// tryAgain finds out by and by whether a node that could not start workers can
// again.
func (c *Core) tryAgain(now time.Time) {
	if s := &c.Claims.Starts; !s.Trying && !s.Next.IsZero() && !now.Before(s.Next) && c.Part.Leaving == 0 {
		s.Trying = true
		c.Part.Do(participant.DoTry{Since: now})
	}
}

func (c *Core) do(e Effect) { c.out = append(c.out, Action{Effect: e}) }

// Submit makes the primary of a new job, whose inputs have so many bytes.
func (c *Core) Submit(now time.Time, id jobs.ID, spec jobs.Spec, inputs int64) *Job {
	j := c.NewJob(id)
	c.Add(j)
	j.SetInputs(inputs)
	j.Primary.Do(primary.DoAccepted{})
	c.batches.join(now, j, &spec)
	j.Primary.Submit(now, spec, c.Clock.Now(now))
	c.Flush(now, j)
	c.follow(j)
	return j
}

// SetInputs notes how many bytes of inputs a node has to have.
func (j *Job) SetInputs(bytes int64) { j.Primary.Staged.Total, j.Primary.Input = bytes, bytes }

// NewJob makes a job of this node, of which nothing is known yet. It may be called
// from any goroutine.
func (c *Core) NewJob(id jobs.ID) *Job {
	p := primary.New(id, c.Self, c.rnd)
	c.surround(p.Surroundings)
	p.Signs = &c.Signs
	p.Bookings.Turns = &c.turns
	return &Job{Primary: p, Serving: map[vicinity.ID]int{}}
}

// surround has a search know the nodes around this one.
func (c *Core) surround(s *search.Surroundings) {
	s.Near, s.Members, s.Member, s.Distance, s.Speed = c.network.Nearer, c.network.Size, c.network.Member, c.network.Distance, c.network.Speed
	s.Measured = func(id vicinity.ID) time.Duration { return c.network.Measured(id, 0) }
	s.Fresh = func(id vicinity.ID) time.Duration { return c.network.Measured(id, search.FreshFor) }
}

// newSearch makes one that several jobs share, which want what a spec does.
func (c *Core) newSearch(spec *jobs.Spec) *search.Search {
	s := search.New(c.Self.ID, c.rnd)
	s.Shared = true
	c.surround(s.Surroundings)
	s.Begin(spec)
	return s
}

// Add takes a job into memory; if it has ended, that must be durable.
func (c *Core) Add(j *Job) {
	c.Jobs[j.Primary.Rec.ID] = j
	j.Settled = j.Primary.Rec.State.Final()
}

// Resume goes on with a job that had not ended when this node's life before did.
func (c *Core) Resume(now time.Time, j *Job) {
	j.Primary.Resume(now)
	for id := range j.Primary.Parts {
		if _, here := c.network.Member(id); here {
			j.Primary.MemberBack(now, id)
		}
	}
	c.Flush(now, j)
	c.follow(j)
}

// Drop takes a job out of memory. Nothing is written down of it any more.
func (c *Core) Drop(id jobs.ID) {
	if j := c.Jobs[id]; j != nil {
		j.gone = true
		c.batches.forget(j)
		c.settled(j)
		delete(c.Jobs, id)
	}
}

// settled takes a job out of those that may have something to do. It may be called
// again.
func (c *Core) settled(j *Job) {
	if j.Settled = true; j.Number > 0 {
		c.Live.Remove(j)
		c.count(j, false)
	}
}

// Refuse forgets a job whose submission could not be written down, and returns the
// answers that were to come after that.
func (c *Core) Refuse(id jobs.ID) (answers []primary.DoAnswer) {
	for _, st := range c.Jobs[id].Steps[1:] {
		for _, e := range st.effects {
			if a, ok := e.(primary.DoAnswer); ok {
				answers = append(answers, a)
			}
		}
	}
	c.Drop(id)
	return answers
}

// count notes whether nodes work for a job.
func (c *Core) count(j *Job, busy bool) {
	if busy != j.busy {
		j.busy = busy
		if busy {
			c.Busy++
		} else {
			c.Busy--
		}
	}
}

// Membership notes that the overlay has a member, perhaps once more, or has declared a
// node dead.
func (c *Core) Membership(now time.Time, id vicinity.ID, member bool) {
	live := slices.Clone(c.Live.List)
	if member && c.network.Size() > 1 {
		c.resumeSearches(now, live)
	}
	for _, j := range live {
		switch p := j.Primary; {
		case p.Rec.State.Final():
			continue
		case !member:
			p.MemberGone(now, id)
		case !p.MemberBack(now, id):
			continue
		}
		c.Flush(now, j)
	}
	if !member {
		c.batches.gone(now, id)
	}
}

// resumePause is between the floods of jobs that did not ask others, as there were none: as many
// come from an origin as others take from it.
const resumePause = 20 * time.Millisecond

// resumeSearches has jobs ask others, the first of them first.
func (c *Core) resumeSearches(now time.Time, live []*Job) {
	paused := slices.DeleteFunc(slices.Clone(live), func(j *Job) bool { return j.Primary.Rec.State.Final() || !j.Primary.Search.Paused() })
	slices.SortFunc(paused, func(a, b *Job) int {
		return cmp.Or(cmp.Compare(b.Primary.Rec.Spec.Priority, a.Primary.Rec.Spec.Priority), cmp.Compare(a.Number, b.Number))
	})
	for i, j := range paused {
		j.Primary.ResumeSearch(now, now.Add(time.Duration(i)*resumePause))
		c.Flush(now, j)
	}
}

// Stalled gives the nodes that work for the jobs their time to report anew.
func (c *Core) Stalled(now time.Time) {
	c.Signs.Stalled(now)
	for _, j := range c.Live.List {
		j.Primary.Stalled(now)
	}
}

// Limit notes what the owner allows from now on.
func (c *Core) Limit(l jobs.Limits) {
	c.Claims.Limit(l)
	c.Claims.Loose = true
}

// Leave begins to stop the node; see participant.Participant.Leave. One that may be back keeps its promises.
func (c *Core) Leave(now time.Time, away time.Duration) {
	c.Claims.Closed = wire.ReasonLeaving
	if away == 0 {
		c.Claims.EndBookings()
	}
	c.Part.Leave(now, away)
}

// Released ends what an origin does not want of this node.
func (c *Core) Released(now time.Time, from vicinity.ID, m *wire.Release) {
	if m.Spares {
		if w := c.Part.WorkFor(from, m.Job); w != nil {
			w.LetSparesGo(now)
		}
		return
	}
	if len(m.Ranks) == 0 {
		c.Yielded(now, from, primary.DoYield{Job: m.Job, Forget: true})
		if m.Job.Origin() == from {
			c.Claims.EndBookingsOf(m.Job)
		}
	}
	if w := c.Part.WorkFor(from, m.Job); w != nil {
		what := participant.WantDrop
		if m.Stop {
			what = participant.WantStop
		}
		if m.Stop && !m.Notice {
			what |= participant.WantNow
		}
		w.Want(now, what, m.Ranks)
	}
}

// Started lets workers run, and reports whether there is any of that job here.
func (c *Core) Started(now time.Time, from vicinity.ID, m *wire.Start) bool {
	if c.Part.WorkFor(from, m.Job) == nil {
		return false
	}
	c.Part.Started(now, m)
	return true
}

// Adopt goes on with a worker of an earlier life of this node.
func (c *Core) Adopt(now time.Time, r participant.ClaimRecord) {
	c.Clock.Saw(r.Stamp, now)
	c.Part.Adopt(now, r)
}

// Granted takes a grant.
func (c *Core) Granted(now time.Time, from vicinity.ID, g *wire.Grant) error {
	err := c.Part.Granted(now, from, g)
	if err == nil {
		c.Clock.Saw(g.Stamp, now)
	}
	c.offerQueued(now)
	return err
}
