package jobs

import (
	"fmt"
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
	slots  int
	memory int64 // bytes; 0 = unknown, not limited
	rnd    *rand.Rand
	closed bool // the node is leaving: offer nothing

	usedSlots  int // by claims
	usedMemory int64
	ends       []end // of claims with a walltime
	holds      map[ID]*hold
	queue      []*queued // in order
	loose      bool      // a hold ended that left room which the queue was not offered yet
}

// hold is an offer that the primary has not answered.
type hold struct {
	order   order
	origin  vicinity.ID
	key     uint64
	workers int
	slots   int // per worker
	memory  int64
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

// Reasons of declines; explain counts nodes by them.
const (
	reasonBusy     = "busy"
	reasonSlots    = "too few slots"
	reasonMemory   = "too little memory"
	reasonLeaving  = "leaving"
	reasonQueueing = "too many jobs waiting"
)

// outgoing is an answer and whom it goes to.
type outgoing struct {
	to     vicinity.ID
	answer Answer
}

func newClaims(self vicinity.ID, slots int, memory int64, rnd *rand.Rand) *claims {
	return &claims{self: self, slots: slots, memory: memory, rnd: rnd, holds: map[ID]*hold{}}
}

// capacity returns how many such workers the node could run if it were idle.
func (c *claims) capacity(slots int, memory int64) int {
	n := c.slots / slots
	if memory > 0 && c.memory > 0 {
		n = min(n, int(min(c.memory/memory, MaxRanks)))
	}
	return n
}

// room returns how many such workers fit beside what is used and held, not
// counting the holds that the job may take: its own, and those of jobs after it.
func (c *claims) room(o order, slots int, memory int64) int {
	freeSlots, freeMemory := c.slots-c.usedSlots, c.memory-c.usedMemory
	for id, h := range c.holds {
		if id != o.id && h.order.before(o) {
			freeSlots -= h.slots * h.workers
			freeMemory -= h.memory * int64(h.workers)
		}
	}
	n := max(freeSlots, 0) / slots
	if memory > 0 && c.memory > 0 {
		n = min(n, int(min(max(freeMemory, 0)/memory, MaxRanks)))
	}
	return n
}

// advertised answers an advertisement and queues it where there is no room now.
func (c *claims) advertised(now time.Time, ad Advertisement) Answer {
	c.expire(now)
	a := Answer{Job: ad.Job, Round: ad.Round, Capacity: c.capacity(ad.Slots, ad.Memory)}
	switch {
	case c.closed:
		a.Reason = reasonLeaving
		return a
	case c.slots < ad.Slots:
		a.Reason = reasonSlots
		return a
	case a.Capacity == 0:
		a.Reason = reasonMemory
		return a
	}
	if c.offer(now, ad, &a) {
		return a
	}
	a.Reason, a.Free = reasonBusy, c.free(now, ad.Slots)
	if !c.enqueue(now, ad) {
		a.Reason = reasonQueueing
	}
	return a
}

// offer holds room for the job and fills in the answer, if there is any.
func (c *claims) offer(now time.Time, ad Advertisement, a *Answer) bool {
	n := min(c.room(ad.order(), ad.Slots, ad.Memory), ad.Wanted)
	if n == 0 || len(c.holds) >= maxHolds {
		return false
	}
	h := c.holds[ad.Job]
	if h != nil && h.origin != ad.Origin {
		return false // two origins that share a short ID, or a lie
	}
	if h == nil {
		h = &hold{origin: ad.Origin, key: c.rnd.Uint64() | 1}
		c.holds[ad.Job] = h
	}
	h.order, h.slots, h.memory = ad.order(), ad.Slots, ad.Memory
	h.workers, h.expires = n, now.Add(holdLease)
	a.Key, a.Workers = h.key, n
	c.yield(h)
	if n < ad.Wanted {
		// The node may have more room for this job later.
		c.enqueue(now, ad)
	} else {
		c.dequeue(ad.Job)
	}
	return true
}

// yield takes away the holds of jobs after h's that no longer fit beside it.
// Their primaries learn of it when a grant is refused.
func (c *claims) yield(h *hold) {
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
		if c.heldSlots() <= c.slots && (c.memory == 0 || c.heldMemory() <= c.memory) {
			return
		}
		delete(c.holds, id)
	}
}

func (c *claims) heldSlots() int {
	n := c.usedSlots
	for _, h := range c.holds {
		n += h.slots * h.workers
	}
	return n
}

func (c *claims) heldMemory() int64 {
	n := c.usedMemory
	for _, h := range c.holds {
		n += h.memory * int64(h.workers)
	}
	return n
}

// enqueue keeps the advertisement for later, in order, and reports whether
// there was place.
func (c *claims) enqueue(now time.Time, ad Advertisement) bool {
	asleep := false
	if i := c.position(ad.Job); i >= 0 {
		asleep = c.queue[i].asleep
		c.queue = slices.Delete(c.queue, i, i+1)
	}
	q := &queued{ad: ad, expires: now.Add(time.Duration(ad.Life) * time.Millisecond), asleep: asleep}
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
		return fmt.Errorf("%w: nothing is held for job %s under this key", ErrRefused, job)
	case h.origin != origin:
		return fmt.Errorf("%w: job %s belongs to another origin", ErrRefused, job)
	case g.Spec.Slots != h.slots || g.Spec.Memory != h.memory:
		return fmt.Errorf("%w: job %s was advertised with other needs", ErrRefused, job)
	case n > h.workers:
		return fmt.Errorf("%w: %d workers granted, %d offered", ErrRefused, n, h.workers)
	}
	delete(c.holds, job)
	c.usedSlots += n * h.slots
	c.usedMemory += int64(n) * h.memory
	if g.Spec.Walltime > 0 {
		for range n {
			c.ends = append(c.ends, end{job, h.slots, now.Add(time.Duration(g.Spec.Walltime))})
		}
	}
	return nil
}

// free returns in how many milliseconds so many slots will be free, as far as
// walltimes tell; 0 = not known.
func (c *claims) free(now time.Time, slots int) int64 {
	slices.SortFunc(c.ends, func(a, b end) int { return a.at.Compare(b.at) })
	have := c.slots - c.usedSlots
	for _, e := range c.ends {
		if have += e.slots; have >= slots {
			return max(1, e.at.Sub(now).Milliseconds())
		}
	}
	return 0
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
func (c *claims) freed(job ID, n, slots int, memory int64) {
	for range n {
		if i := slices.IndexFunc(c.ends, func(e end) bool { return e.job == job }); i >= 0 {
			c.ends = slices.Delete(c.ends, i, i+1)
		}
	}
	c.usedSlots -= n * slots
	c.usedMemory -= int64(n) * memory
	for _, q := range c.queue {
		q.asleep = false
	}
}

// offers goes through the queue in order and offers what room there is.
func (c *claims) offers(now time.Time) []outgoing {
	c.expire(now)
	c.loose = false
	if c.closed {
		return nil
	}
	var out []outgoing
	for _, q := range slices.Clone(c.queue) {
		h := c.holds[q.ad.Job]
		if q.asleep || h != nil && c.room(q.ad.order(), q.ad.Slots, q.ad.Memory) <= h.workers {
			continue
		}
		a := Answer{Job: q.ad.Job, Capacity: c.capacity(q.ad.Slots, q.ad.Memory)}
		if c.offer(now, q.ad, &a) {
			if i := c.position(q.ad.Job); i >= 0 {
				c.queue[i].asleep = true // until more room comes
			}
			out = append(out, outgoing{to: q.ad.Origin, answer: a})
		}
	}
	return out
}

// expire forgets holds and queued advertisements whose time has passed.
func (c *claims) expire(now time.Time) {
	for id, h := range c.holds {
		if !now.Before(h.expires) {
			c.released(id, false)
			c.loose = true
		}
	}
	c.queue = slices.DeleteFunc(c.queue, func(q *queued) bool { return !now.Before(q.expires) })
}

// wake returns when offers has something to do next; zero = never.
func (c *claims) wake() time.Time {
	if c.loose {
		return time.Unix(0, 0)
	}
	var at time.Time
	for _, h := range c.holds {
		at = earlier(at, h.expires)
	}
	for _, q := range c.queue {
		at = earlier(at, q.expires)
	}
	return at
}

// busy returns the slots that are used or held.
func (c *claims) busy() int { return min(c.heldSlots(), c.slots) }

// earlier returns the earlier of two times, where zero means "never".
func earlier(a, b time.Time) time.Time {
	switch {
	case a.IsZero():
		return b
	case b.IsZero():
		return a
	}
	if b.Before(a) { // not by the wall clock, which may jump
		return b
	}
	return a
}
