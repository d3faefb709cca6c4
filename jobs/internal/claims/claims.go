// Package claims is the core that has a node's slots: it answers advertisements with
// offers, which hold slots for a few seconds, or declines, keeps a queue of the jobs
// that it has no room for, and turns holds into claims when they are granted. Nobody
// else counts slots, memory, disk and GPUs.
//
// Claims has no goroutine, lock or clock; its methods take the time and return what
// is to be answered.
package claims

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/calendar"
	"zorilla/jobs/internal/where"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Claims is the core of a participant: who may use the node's slots. It holds
// slots for jobs (a leased hold with a key: an offer), turns holds into claims
// when the primary grants, and keeps a bounded queue of advertisements that
// found no room (paper, section 3.2, "pending job queue"). No hold outlives
// its lease.
type Claims struct {
	self   vicinity.ID
	about  where.Properties
	rnd    *rand.Rand
	Closed string // why nothing is offered: the node is leaving or draining
	Limits jobs.Limits
	shift  shift
	Starts Starts
	Disk   Reserve
	Member func(vicinity.ID) (vicinity.Member, bool) // what is known of an origin
	wheres map[string]where.Expr                     // expressions that were checked
	// cannot says why, by what workers are to reach.
	cannot map[string]string

	claimed
	// Ending are jobs that are offered nothing until their earlier workers are gone,
	// since a grant would be refused until then.
	Ending map[jobs.ID]bool
	Cores  Cores // for ranks of MPI programs
	Holds  map[jobs.ID]*Hold
	pending
	at    time.Time // of the last input
	Loose bool      // a hold ended that left room which the queue was not offered yet
	taken []Outgoing
	voids voids
}

// Hold is an offer that the primary has not answered.
type Hold struct {
	Ad      wire.Advertisement
	order   jobs.Order
	key     uint64
	Workers int // of a job with kinds at most so many
	Room    calendar.Supply
	fits    uint16 // kinds of which it may be granted workers
	Expires time.Time
	// recalled is when a job that goes before wanted it; zero = none did.
	recalled  time.Time
	announced bool            // a grant of it is on its way
	parts     map[jobs.ID]int // workers of jobs that have had their part of it, if it is for a batch
}

// RecallTime is how long a job has to decide on an offer that was recalled, since one that
// goes before it wants it. Those that have enough offers decide much sooner; a gang that is
// short of workers gives it back at once.
const RecallTime = 400 * time.Millisecond

// blocks reports whether a hold keeps another job from what it has.
func (c *Claims) blocks(h *Hold, o jobs.Order) bool {
	return h.Ad.Job != o.ID && (h.announced || h.order.Before(o) || h.recalled.IsZero() || c.at.Before(h.recalled.Add(RecallTime)))
}

// claimed is what workers and spares have.
type claimed struct {
	bookings
	gpus   map[int]int         // by number: workers that have it, of which one can be alive
	Jobs   map[jobs.ID]int     // workers of each job, spares among them
	Spares map[jobs.ID]*Spares // of jobs that have some
}

const maxHolds = 1024

// Outgoing is an answer and whom it goes to.
type Outgoing struct {
	To     vicinity.ID
	Answer wire.Answer
}

// New makes the core of a node that has nothing to do.
func New(self vicinity.Member, rnd *rand.Rand) *Claims {
	c := &Claims{
		self: self.ID, about: where.PropertiesOf(self), cannot: unable(self.Enforces), rnd: rnd,
		Member: func(vicinity.ID) (vicinity.Member, bool) { return vicinity.Member{}, false },
		wheres: map[string]where.Expr{}, claimed: claimed{Jobs: map[jobs.ID]int{}, Spares: map[jobs.ID]*Spares{}, gpus: map[int]int{}},
		Holds: map[jobs.ID]*Hold{}, Ending: map[jobs.ID]bool{}, voids: voids{},
	}
	// What is not known is as good as without limit.
	c.Has = calendar.Supply{Slots: self.Slots, Memory: self.Memory, Disk: math.MaxInt64, GPUs: self.GPUs}
	if self.Memory == 0 {
		c.Has.Memory = math.MaxInt64
	}
	return c
}

// capacity returns how many workers of a job the node could run if it were idle.
func (c *Claims) capacity(ad *wire.Advertisement) int {
	n := min(c.runnable(ad).in(c.Has), jobs.MaxRanks)
	return min(n, c.most(ad))
}

// most is how many workers of a job the owner, and the job itself, allow here.
func (c *Claims) most(ad *wire.Advertisement) int {
	if ad.Single {
		return 1
	}
	return cmp.Or(c.Limits.MaxWorkersPerJob, math.MaxInt)
}

// room returns how many workers of a job fit beside what is used and held, not
// counting the holds that it may take: its own, and those of jobs after it.
func (c *Claims) room(ad *wire.Advertisement) int {
	return min(c.runnable(ad).in(c.left(ad)), c.allowed(ad))
}

// allowed returns how many workers more of a job the owner, and the job itself, allow here beside other jobs.
func (c *Claims) allowed(ad *wire.Advertisement) int {
	if most := c.Limits.MaxJobs; most > 0 && c.Jobs[ad.Job] == 0 && c.others(ad) >= most {
		return 0
	}
	return max(0, c.most(ad)-c.Jobs[ad.Job])
}

// hoped returns how many workers more than it is offered a job could have here, if all
// that is held for others were given back.
func (c *Claims) hoped(ad *wire.Advertisement, offered int) int {
	o, wanted := ad.Order(), ad.Wanted
	if len(c.Holds) == 0 || offered >= wanted {
		return 0
	}
	left := c.unused(c.at, ad)
	for id, h := range c.Holds {
		if h.announced && id != o.ID {
			left = left.Beside(h.Room)
		}
	}
	n := min(c.runnable(ad).in(left), c.most(ad)-c.Jobs[o.ID])
	if most := c.Limits.MaxJobs; most > 0 && c.Jobs[o.ID] == 0 && len(c.Jobs) >= most {
		n = 0
	}
	return max(0, min(n, wanted)-offered)
}

// left returns what is there for a job: all but what is claimed or, for the time of a worker, booked by others, and held
// for jobs before it.
func (c *Claims) left(ad *wire.Advertisement) calendar.Supply {
	return c.unheld(c.unused(c.at, ad), ad.Order())
}

// unheld is what is left for a job of a supply beside what is held for jobs before it.
func (c *Claims) unheld(left calendar.Supply, o jobs.Order) calendar.Supply {
	for _, h := range c.Holds {
		if c.blocks(h, o) {
			left = left.Beside(h.Room)
		}
	}
	return left
}

// others returns how many jobs have workers here, have booked some for a time in which the job would run, or have a
// hold that goes before.
func (c *Claims) others(ad *wire.Advertisement) int {
	o, n := ad.Order(), len(c.Jobs)
	booked := map[jobs.ID]bool{}
	for _, id := range c.Within(c.at, c.until(c.at, ad)) {
		if c.Jobs[id] == 0 && id != o.ID {
			booked[id] = true
		}
	}
	for id, h := range c.Holds {
		if c.Jobs[id] == 0 && !booked[id] && c.blocks(h, o) {
			n++
		}
	}
	return n + len(booked)
}

// Advertised answers an advertisement and queues it where there is no room now.
func (c *Claims) Advertised(now time.Time, ad wire.Advertisement) wire.Answer {
	c.expire(now)
	a := wire.Answer{Job: ad.Job, Round: ad.Round}
	if a.Reason = c.never(&ad); a.Reason != "" {
		c.Dequeue(ad.Job)
		return a
	}
	a.Capacity, a.Fits = c.capacity(&ad), c.runnable(&ad).fits
	if why := c.idle(&ad); ad.Plan && (why == "" || why == wire.ReasonHours || why == wire.ReasonHoursSoon) {
		others := held(c.Holds, func(h *Hold) bool { return c.blocks(h, ad.Order()) })
		a.Steps = c.runnable(&ad).steps(now, &c.Calendar, &ad, c.allowed(&ad), others, spans(now, &c.Limits, length(&ad)))
	}
	if c.offer(now, ad, &a) {
		return a
	}
	a.Reason, a.Free = c.notNow(&ad), c.runnable(&ad).free(now, &c.Calendar, &ad)
	if !c.enqueue(now, ad) {
		a.Reason = wire.ReasonQueueing
		return a
	}
	q := c.Queue[c.position(ad.Job)]
	q.asleep = false // it asks again, and all room is news to it
	if c.idle(&ad) == "" && !c.Ending[ad.Job] {
		a.Held = c.hoped(&ad, 0)
	}
	q.hopes = a.Held
	return a
}

// answer begins an answer to the origin of a job; why is the reason of a decline, "" of an offer.
func (c *Claims) answer(ad *wire.Advertisement, why string) wire.Answer {
	return wire.Answer{Job: ad.Job, Capacity: c.capacity(ad), Fits: c.runnable(ad).fits, Reason: why}
}

// offer holds room for the job and fills in the answer, if there is any.
func (c *Claims) offer(now time.Time, ad wire.Advertisement, a *wire.Answer) bool {
	room := c.room(&ad)
	n := min(room, ad.Wanted)
	if c.Limits.MaxJobs > 0 || c.Limits.MaxWorkersPerJob > 0 {
		n = min(n, ad.Wanted-ad.Others) // whose they will be is not known
	}
	if h := c.Holds[ad.Job]; h != nil {
		n = max(n, min(room, h.Workers)) // its origin may just be granting them, and ask for the rest
	}
	if n == 0 || len(c.Holds) >= maxHolds || c.Ending[ad.Job] || c.idle(&ad) != "" {
		return false
	}
	h := c.Holds[ad.Job]
	if h == nil {
		h = &Hold{key: c.rnd.Uint64() | 1}
		c.Holds[ad.Job] = h
	}
	h.Ad, h.order, h.Workers, h.Expires = ad, ad.Order(), n, now.Add(wire.HoldLease)
	h.announced = false
	can := c.runnable(&ad)
	if h.Room = (calendar.Supply{}).Minus(ad.Needs, -n); can.mixed {
		h.Room, h.fits = can.mix(c.left(&ad), n), can.fits
	}
	h.report(a)
	c.yield(now, h)
	if n < ad.Wanted || can.mixed && !h.Room.Holds(can.mix(c.Has, n)) {
		// The node may have more room for this job later, or what is there now lacks for some kinds.
		if c.enqueue(now, ad) {
			a.Held = c.hoped(&ad, n)
			c.Queue[c.position(ad.Job)].hopes = a.Held
		}
	} else {
		c.Dequeue(ad.Job)
	}
	return true
}

// yield takes away the holds of jobs after h's that no longer fit beside it.
// These wait in the queue again, and their primaries are told, so that they do
// not count on what is gone.
func (c *Claims) yield(now time.Time, h *Hold) {
	for _, id := range lastFirst(c.Holds, func(other *Hold) bool { return h.order.Before(other.order) && !c.blocks(other, h.order) }) {
		left, jobs := c.promised()
		if c.runnable(&c.Holds[id].Ad).lack(left) || jobs && c.Jobs[id] == 0 {
			ad := c.Holds[id].Ad
			c.voids.end(now, c.Holds, id, wire.ReasonYielded)
			a := c.answer(&ad, wire.ReasonBusy)
			if c.enqueue(now, ad) {
				a.Held = c.hoped(&ad, 0)
				q := c.Queue[c.position(id)]
				q.asleep, q.hopes = false, a.Held
			}
			c.taken = append(c.taken, Outgoing{ad.Origin(), a})
		}
	}
}

// lastFirst lists the jobs of those holds, the last in order first.
func lastFirst(holds map[jobs.ID]*Hold, which func(*Hold) bool) (list []jobs.ID) {
	for id, h := range holds {
		if which(h) {
			list = append(list, id)
		}
	}
	slices.SortFunc(list, func(a, b jobs.ID) int {
		if holds[a].order.Before(holds[b].order) {
			return 1
		}
		return -1
	})
	return list
}

// TakenBack returns declines for those whose offers were taken back since the
// last call, or who wait here no more.
func (c *Claims) TakenBack() []Outgoing {
	list := c.taken
	for _, d := range c.out {
		list = append(list, Outgoing{d.ad.Origin(), c.answer(&d.ad, d.why)})
	}
	c.taken, c.out = nil, nil
	return list
}

// promised returns what is left beside all claims and holds, less than nothing
// where too much is held, and whether there are more jobs than the owner allows.
func (c *Claims) promised() (left calendar.Supply, jobs bool) {
	left, n := c.Has.Beside(c.Used), len(c.Jobs)
	for id, h := range c.Holds {
		left = left.Beside(h.Room)
		if c.Jobs[id] == 0 {
			n++
		}
	}
	return left, c.Limits.MaxJobs > 0 && n > c.Limits.MaxJobs
}

// Signed returns when the latest advertisement of a job that this node holds
// slots for, or queues, was signed; 0 = there is none.
func (c *Claims) Signed(job jobs.ID) (at int64) {
	if h := c.Holds[job]; h != nil {
		at = h.Ad.Signed
	}
	if i := c.position(job); i >= 0 {
		at = max(at, c.Queue[i].Ad.Signed)
	}
	return at
}

// Released ends the job's hold; with forget the node no longer queues it.
// A key, if it is not 0, says which hold is meant: the node may have made another one
// while the word was on its way, of which the origin hears, and which it may take.
func (c *Claims) Released(job jobs.ID, key uint64, forget bool) {
	if forget {
		c.Dequeue(job)
	}
	h := c.Holds[job]
	if h != nil && key != 0 && h.key != key {
		return
	}
	delete(c.Holds, job)
	if !forget && h != nil && !h.recalled.IsZero() && c.enqueue(c.at, h.Ad) { // room is news to it
		q := c.Queue[c.position(job)]
		q.asleep, q.hopes = false, h.Workers
	} else if i := c.position(job); i >= 0 {
		c.Queue[i].asleep, c.Queue[i].hopes = true, 0
	}
}

// Drain takes all offers back, ends all bookings and makes no new ones. Origins learn of it when
// their grants are refused.
func (c *Claims) Drain() {
	if c.Closed == "" {
		c.Closed = wire.ReasonDraining
	}
	c.voids.endAll(c.at, c.Holds, c.Closed)
	c.EndBookings()
}

// Undrain makes the node offer again, if that is all that keeps it from it.
func (c *Claims) Undrain() {
	if c.Closed == wire.ReasonDraining {
		c.Closed, c.Loose = "", true
	}
}
