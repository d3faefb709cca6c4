package claims

import (
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/agenda"
	"zorilla/jobs/internal/wire"
)

// Queued is an advertisement that waits for room.
type Queued struct {
	Ad      wire.Advertisement
	since   time.Time
	expires time.Time
	// asleep is set when the origin gave this node's own offer back: only
	// room that others leave is news to it.
	asleep bool
}

const maxQueue = 4096

// enqueue keeps the advertisement for later, in order, and reports whether
// there was place.
func (c *Claims) enqueue(now time.Time, ad wire.Advertisement) bool {
	q := &Queued{Ad: ad, since: now, expires: now.Add(time.Duration(ad.Life) * time.Millisecond)}
	if i := c.position(ad.Job); i >= 0 {
		q.since, q.asleep = c.Queue[i].since, c.Queue[i].asleep
		c.Queue = slices.Delete(c.Queue, i, i+1)
	}
	c.stale = agenda.Earlier(c.stale, q.expires)
	i, _ := slices.BinarySearchFunc(c.Queue, q, func(a, b *Queued) int {
		if a.Ad.Order().Before(b.Ad.Order()) {
			return -1
		}
		return 1
	})
	c.Queue = slices.Insert(c.Queue, i, q)
	if len(c.Queue) > maxQueue {
		c.Queue = c.Queue[:maxQueue]
		return i < maxQueue
	}
	return true
}

func (c *Claims) position(job jobs.ID) int {
	return slices.IndexFunc(c.Queue, func(q *Queued) bool { return q.Ad.Job == job })
}

// Dequeue takes a job out of the queue, if it is there.
func (c *Claims) Dequeue(job jobs.ID) {
	if i := c.position(job); i >= 0 {
		c.Queue = slices.Delete(c.Queue, i, i+1)
	}
}

// wakeQueue tells the queue that there is room of which its origins know
// nothing.
func (c *Claims) wakeQueue() {
	for _, q := range c.Queue {
		q.asleep = false
	}
}

// Offers goes through the queue in order and offers what room there is.
func (c *Claims) Offers(now time.Time) []Outgoing {
	c.expire(now)
	c.Loose = false
	if c.Closed != "" || c.idle() != "" {
		return nil
	}
	var out []Outgoing
	for _, q := range slices.Clone(c.Queue) {
		if c.left(q.Ad.Order()).Slots <= 0 { // nor is there any for those after it
			break
		}
		h := c.Holds[q.Ad.Job]
		if q.asleep || h != nil && c.room(q.Ad.Order(), q.Ad.Needs()) <= h.Workers {
			continue
		}
		a := wire.Answer{Job: q.Ad.Job, Capacity: c.capacity(q.Ad.Needs())}
		if c.offer(now, q.Ad, &a) {
			if i := c.position(q.Ad.Job); i >= 0 {
				c.Queue[i].asleep = true // until more room comes
			}
			out = append(out, Outgoing{To: q.Ad.Origin(), Answer: a})
		}
	}
	return append(out, c.TakenBack()...)
}
