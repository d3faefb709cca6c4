package jobs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/vicinity"
)

// claims is the core of a participant: who may use the node's slots. It holds
// slots for jobs (a leased hold with a key: an offer), turns holds into claims
// when the primary grants, and keeps a bounded queue of advertisements that
// found no room (paper, section 3.2, "pending job queue"). No hold outlives
// its lease.
type claims struct {
	self   vicinity.ID
	about  properties
	has    supply // what is not known is as good as without limit
	rnd    *rand.Rand
	closed string // why nothing is offered: the node is leaving or draining
	limits Limits
	starts starts
	member func(vicinity.ID) (vicinity.Member, bool) // what is known of an origin
	wheres map[string]where                          // expressions that were checked

	used  supply      // by claims
	jobs  map[ID]int  // claimed workers
	gpus  map[int]int // by number: workers that have it, of which one can be alive
	ends  []end       // of claims with a walltime
	holds map[ID]*hold
	queue []*queued // in order
	stale time.Time // before then nothing of the queue has expired; zero = it is empty
	loose bool      // a hold ended that left room which the queue was not offered yet
	taken []outgoing
}

// hold is an offer that the primary has not answered.
type hold struct {
	ad      Advertisement
	order   order
	key     uint64
	workers int
	needs   needs // of each
	expires time.Time
}

// end is when a claim ends at the latest.
type end struct {
	job   ID
	slots int
	at    time.Time
}

// queued is an advertisement that waits for room.
type queued struct {
	ad      Advertisement
	since   time.Time
	expires time.Time
	// asleep is set when the origin gave this node's own offer back: only
	// room that others leave is news to it.
	asleep bool
}

const (
	holdLease = 5 * time.Second
	maxQueue  = 4096
	maxHolds  = 1024
)

// outgoing is an answer and whom it goes to.
type outgoing struct {
	to     vicinity.ID
	answer Answer
}

// newClaims makes the core of a node that has nothing to do.
func newClaims(self vicinity.Member, rnd *rand.Rand) *claims {
	c := &claims{
		self: self.ID, about: propertiesOf(self), rnd: rnd,
		has:    supply{slots: self.Slots, memory: self.Memory, disk: math.MaxInt64, gpus: self.GPUs},
		member: func(vicinity.ID) (vicinity.Member, bool) { return vicinity.Member{}, false },
		wheres: map[string]where{}, jobs: map[ID]int{}, gpus: map[int]int{}, holds: map[ID]*hold{},
	}
	if self.Memory == 0 {
		c.has.memory = math.MaxInt64
	}
	return c
}

// capacity returns how many such workers the node could run if it were idle.
func (c *claims) capacity(w needs) int {
	n := min(c.has.fits(w), MaxRanks)
	if most := c.limits.MaxWorkersPerJob; most > 0 {
		n = min(n, most)
	}
	return n
}

// room returns how many such workers fit beside what is used and held, not
// counting the holds that the job may take: its own, and those of jobs after it.
func (c *claims) room(o order, w needs) int {
	n := c.left(o).fits(w)
	if most := c.limits.MaxWorkersPerJob; most > 0 {
		n = min(n, max(0, most-c.jobs[o.id]))
	}
	if most := c.limits.MaxJobs; most > 0 && c.jobs[o.id] == 0 && c.others(o) >= most {
		n = 0
	}
	return n
}

// left returns what is there for a job: all but what is claimed, and held for
// jobs before it.
func (c *claims) left(o order) supply {
	left := c.has.beside(c.used)
	for id, h := range c.holds {
		if id != o.id && h.order.before(o) {
			left = left.minus(h.needs, h.workers)
		}
	}
	return left
}

// others returns how many jobs have workers here, or a hold that goes before.
func (c *claims) others(o order) int {
	n := len(c.jobs)
	for id, h := range c.holds {
		if id != o.id && c.jobs[id] == 0 && h.order.before(o) {
			n++
		}
	}
	return n
}

// advertised answers an advertisement and queues it where there is no room now.
func (c *claims) advertised(now time.Time, ad Advertisement) Answer {
	c.expire(now)
	a := Answer{Job: ad.Job, Round: ad.Round}
	if a.Reason = c.never(&ad); a.Reason != "" {
		c.dequeue(ad.Job)
		return a
	}
	a.Capacity = c.capacity(ad.needs())
	if c.offer(now, ad, &a) {
		return a
	}
	a.Reason, a.Free = c.notNow(&ad), c.free(now, ad.Slots)
	if !c.enqueue(now, ad) {
		a.Reason = reasonQueueing
	} else {
		c.queue[c.position(ad.Job)].asleep = false // it asks again, and all room is news to it
	}
	return a
}

// offer holds room for the job and fills in the answer, if there is any.
func (c *claims) offer(now time.Time, ad Advertisement, a *Answer) bool {
	n := min(c.room(ad.order(), ad.needs()), ad.Wanted)
	if n == 0 || len(c.holds) >= maxHolds || c.idle() != "" {
		return false
	}
	h := c.holds[ad.Job]
	if h == nil {
		h = &hold{key: c.rnd.Uint64() | 1}
		c.holds[ad.Job] = h
	}
	h.ad, h.order, h.needs, h.workers, h.expires = ad, ad.order(), ad.needs(), n, now.Add(holdLease)
	a.Key, a.Workers = h.key, n
	c.yield(now, h)
	if n < ad.Wanted {
		// The node may have more room for this job later.
		c.enqueue(now, ad)
	} else {
		c.dequeue(ad.Job)
	}
	return true
}

// yield takes away the holds of jobs after h's that no longer fit beside it.
// These wait in the queue again, and their primaries are told, so that they do
// not count on what is gone.
func (c *claims) yield(now time.Time, h *hold) {
	later := make([]ID, 0, len(c.holds))
	for id, other := range c.holds {
		if h.order.before(other.order) {
			later = append(later, id)
		}
	}
	slices.SortFunc(later, func(a, b ID) int { // the last in order go first
		if c.holds[a].order.before(c.holds[b].order) {
			return 1
		}
		return -1
	})
	for _, id := range later {
		left, jobs := c.promised()
		if left.lacks(c.holds[id].needs) || jobs && c.jobs[id] == 0 {
			ad := c.holds[id].ad
			delete(c.holds, id)
			c.taken = append(c.taken, outgoing{ad.Origin(), Answer{Job: id, Capacity: c.capacity(ad.needs()), Reason: reasonBusy}})
			c.enqueue(now, ad)
		}
	}
}

// takenBack returns declines for those whose offers were taken back since the
// last call.
func (c *claims) takenBack() []outgoing {
	list := c.taken
	c.taken = nil
	return list
}

// promised returns what is left beside all claims and holds, less than nothing
// where too much is held, and whether there are more jobs than the owner allows.
func (c *claims) promised() (left supply, jobs bool) {
	left, n := c.has.beside(c.used), len(c.jobs)
	for id, h := range c.holds {
		left = left.minus(h.needs, h.workers)
		if c.jobs[id] == 0 {
			n++
		}
	}
	return left, c.limits.MaxJobs > 0 && n > c.limits.MaxJobs
}

// enqueue keeps the advertisement for later, in order, and reports whether
// there was place.
func (c *claims) enqueue(now time.Time, ad Advertisement) bool {
	q := &queued{ad: ad, since: now, expires: now.Add(time.Duration(ad.Life) * time.Millisecond)}
	if i := c.position(ad.Job); i >= 0 {
		q.since, q.asleep = c.queue[i].since, c.queue[i].asleep
		c.queue = slices.Delete(c.queue, i, i+1)
	}
	c.stale = earlier(c.stale, q.expires)
	i, _ := slices.BinarySearchFunc(c.queue, q, func(a, b *queued) int {
		if a.ad.order().before(b.ad.order()) {
			return -1
		}
		return 1
	})
	c.queue = slices.Insert(c.queue, i, q)
	if len(c.queue) > maxQueue {
		c.queue = c.queue[:maxQueue]
		return i < maxQueue
	}
	return true
}

func (c *claims) position(job ID) int {
	return slices.IndexFunc(c.queue, func(q *queued) bool { return q.ad.Job == job })
}

func (c *claims) dequeue(job ID) {
	if i := c.position(job); i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
	}
}

// granted turns held workers into claims, one for each rank of the grant. What the hold has beyond them is
// free again. An error says why the grant is refused.
func (c *claims) granted(now time.Time, origin vicinity.ID, g *Grant) error {
	c.expire(now)
	job, n := g.Job, len(g.Ranks)
	h := c.holds[job]
	switch {
	case h == nil || h.key != g.Key:
		return fmt.Errorf("%w: nothing is held for job %s under this key", ErrRefused, job.Short())
	case h.ad.Origin() != origin:
		return fmt.Errorf("%w: job %s belongs to another origin", ErrRefused, job.Short())
	case g.Spec.needs() != h.needs:
		return fmt.Errorf("%w: job %s was advertised with other needs", ErrRefused, job.Short())
	case n > h.workers:
		return fmt.Errorf("%w: %d workers granted, %d offered", ErrRefused, n, h.workers)
	}
	delete(c.holds, job)
	c.claim(now, job, n, &g.Spec)
	return nil
}

// claim counts n workers that begin now.
func (c *claims) claim(now time.Time, job ID, n int, spec *Spec) {
	c.used = c.used.minus(spec.needs(), -n)
	c.jobs[job] += n
	if spec.Walltime > 0 && spec.Array == nil {
		for range n {
			c.ends = append(c.ends, end{job, spec.Slots, now.Add(time.Duration(spec.Walltime))})
		}
	}
}

// free returns in how many milliseconds so many slots will be free, as far as
// walltimes tell; 0 = not known.
func (c *claims) free(now time.Time, slots int) int64 {
	slices.SortFunc(c.ends, func(a, b end) int { return a.at.Compare(b.at) })
	have := c.has.slots - c.used.slots
	for _, e := range c.ends {
		if have += e.slots; have >= slots {
			return max(1, e.at.Sub(now).Milliseconds())
		}
	}
	return 0
}

// signed returns when the latest advertisement of a job that this node holds
// slots for, or queues, was signed; 0 = there is none.
func (c *claims) signed(job ID) (at int64) {
	if h := c.holds[job]; h != nil {
		at = h.ad.Signed
	}
	if i := c.position(job); i >= 0 {
		at = max(at, c.queue[i].ad.Signed)
	}
	return at
}

// released ends the job's hold; with forget the node no longer queues it.
func (c *claims) released(job ID, forget bool) {
	delete(c.holds, job)
	if forget {
		c.dequeue(job)
	} else if i := c.position(job); i >= 0 {
		c.queue[i].asleep = true
	}
}

// freed gives the room of n ended workers of a job back and wakes the queue.
func (c *claims) freed(job ID, n int, w needs) {
	for range n {
		if i := slices.IndexFunc(c.ends, func(e end) bool { return e.job == job }); i >= 0 {
			c.ends = slices.Delete(c.ends, i, i+1)
		}
	}
	c.used = c.used.minus(w, n)
	if c.jobs[job] -= n; c.jobs[job] <= 0 {
		delete(c.jobs, job)
	}
	c.wakeQueue()
}

// wakeQueue tells the queue that there is room of which its origins know
// nothing.
func (c *claims) wakeQueue() {
	for _, q := range c.queue {
		q.asleep = false
	}
}

// offers goes through the queue in order and offers what room there is.
func (c *claims) offers(now time.Time) []outgoing {
	c.expire(now)
	c.loose = false
	if c.closed != "" || c.idle() != "" {
		return nil
	}
	var out []outgoing
	for _, q := range slices.Clone(c.queue) {
		if c.left(q.ad.order()).slots <= 0 { // nor is there any for those after it
			break
		}
		h := c.holds[q.ad.Job]
		if q.asleep || h != nil && c.room(q.ad.order(), q.ad.needs()) <= h.workers {
			continue
		}
		a := Answer{Job: q.ad.Job, Capacity: c.capacity(q.ad.needs())}
		if c.offer(now, q.ad, &a) {
			if i := c.position(q.ad.Job); i >= 0 {
				c.queue[i].asleep = true // until more room comes
			}
			out = append(out, outgoing{to: q.ad.Origin(), answer: a})
		}
	}
	return append(out, c.takenBack()...)
}
