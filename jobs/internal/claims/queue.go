package claims

import (
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/calendar"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
)

// Queued is an advertisement that waits for room.
type Queued struct {
	Ad      wire.Advertisement
	since   time.Time
	expires time.Time
	// asleep is set when the origin gave this node's own offer back: only room that others
	// leave at the end of their workers is news to it, or that it hopes for.
	asleep bool
	hopes  int // what its origin was told last of room that others may give back
}

const maxQueue = 4096

// dropped is an advertisement that waits here no more, and why. Its origin may count on it.
type dropped struct {
	ad  wire.Advertisement
	why string
}

// drop takes what does not wait here any more out of the queue; why returns "" for what does.
func (p *pending) drop(why func(*Queued) string) {
	p.Queue = slices.DeleteFunc(p.Queue, func(q *Queued) bool {
		text := why(q)
		if text != "" {
			p.out = append(p.out, dropped{q.Ad, text})
		}
		return text != ""
	})
}

// pending is the queue of a node.
type pending struct {
	Queue []*Queued // in order
	out   []dropped // whose origins are not told yet
	stale time.Time // before then nothing of it has expired; zero = it is empty
}

// enqueue keeps the advertisement for later, in order, and reports whether
// there was place.
func (p *pending) enqueue(now time.Time, ad wire.Advertisement) bool {
	q := &Queued{Ad: ad, since: now, expires: now.Add(time.Duration(ad.Life) * time.Millisecond)}
	if i := p.position(ad.Job); i >= 0 {
		q.since, q.asleep, q.hopes = p.Queue[i].since, p.Queue[i].asleep, p.Queue[i].hopes
		p.Queue = slices.Delete(p.Queue, i, i+1)
	}
	p.stale = timers.Earlier(p.stale, q.expires)
	i, _ := slices.BinarySearchFunc(p.Queue, q, func(a, b *Queued) int {
		if a.Ad.Order().Before(b.Ad.Order()) {
			return -1
		}
		return 1
	})
	p.Queue = slices.Insert(p.Queue, i, q)
	if len(p.Queue) > maxQueue {
		if last := p.Queue[maxQueue]; i < maxQueue {
			p.out = append(p.out, dropped{last.Ad, wire.ReasonQueueing})
		}
		p.Queue = p.Queue[:maxQueue]
		return i < maxQueue
	}
	return true
}

func (p *pending) position(job jobs.ID) int {
	return slices.IndexFunc(p.Queue, func(q *Queued) bool { return q.Ad.Job == job })
}

// Dequeue takes a job out of the queue, if it is there.
func (p *pending) Dequeue(job jobs.ID) {
	if i := p.position(job); i >= 0 {
		p.Queue = slices.Delete(p.Queue, i, i+1)
	}
}

// wakeQueue tells the queue that there is room of which its origins know
// nothing.
func (p *pending) wakeQueue() {
	for _, q := range p.Queue {
		q.asleep = false
	}
}

// Offers goes through the queue in order and offers what room there is.
func (c *Claims) Offers(now time.Time) []Outgoing {
	c.expire(now)
	if c.Loose = false; c.moved {
		c.moved = false
		c.wakeQueue()
	}
	if c.Closed != "" || c.idle(nil) != "" {
		return nil
	}
	var out []Outgoing
	for _, q := range slices.Clone(c.Queue) {
		if c.unheld(c.Has.Beside(c.Used), q.Ad.Order()).Slots <= 0 { // nor is there any for those after it
			break
		}
		if q.asleep && q.hopes == 0 {
			continue
		}
		if h := c.Holds[q.Ad.Job]; h != nil { // of what is granted no more can be offered
			n := c.room(&q.Ad)
			if h.announced || !h.grows(n, c.runnable(&q.Ad).mix(c.left(&q.Ad), min(n, q.Ad.Wanted))) {
				continue
			}
		}
		a := c.answer(&q.Ad, "")
		if c.offer(now, q.Ad, &a) {
			if i := c.position(q.Ad.Job); i >= 0 {
				c.Queue[i].asleep = true // until more room comes
			}
			out = append(out, Outgoing{To: q.Ad.Origin(), Answer: a})
		}
	}
	return append(append(out, c.dashed(now)...), c.TakenBack()...)
}

// grows reports whether the job could be offered more than is held for it, where there is room for so many
// workers, and of what they may need that much.
func (h *Hold) grows(workers int, room calendar.Supply) bool {
	if len(h.Ad.Kinds) == 0 {
		return workers > h.Workers
	}
	workers = min(workers, h.Ad.Wanted)
	return workers > h.Workers || workers == h.Workers && !h.Room.Holds(room)
}

// dashed tells those who wait for room that others may leave when there will be less of
// it than they were told.
func (c *Claims) dashed(now time.Time) (out []Outgoing) {
	for _, q := range c.Queue {
		if q.hopes == 0 {
			continue
		}
		a := c.answer(&q.Ad, wire.ReasonBusy)
		h := c.Holds[q.Ad.Job]
		if h != nil {
			a.Reason = ""
			h.report(&a)
		}
		if a.Held = c.hoped(&q.Ad, a.Workers); a.Held >= q.hopes {
			continue
		}
		if q.hopes = a.Held; h != nil {
			h.Expires = now.Add(wire.HoldLease)
		}
		out = append(out, Outgoing{To: q.Ad.Origin(), Answer: a})
	}
	return out
}
