package claims

import (
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/calendar"
	"zorilla/jobs/internal/wire"
)

// Recalled asks for offers back that keep a job from workers which its origin would take. The
// job waits in the queue; what is held for jobs before it is not asked for.
func (c *Claims) Recalled(now time.Time, job jobs.ID) {
	c.expire(now)
	i := c.position(job)
	if i < 0 || c.idle(nil) != "" || c.Ending[job] {
		return
	}
	ad, offered := c.Queue[i].Ad, 0
	if h := c.Holds[job]; h != nil {
		offered = h.Workers
	}
	workers := c.hoped(&ad, offered)
	for _, id := range lastFirst(c.Holds, func(h *Hold) bool { return !h.announced && ad.Order().Before(h.order) }) {
		if workers <= 0 {
			return
		}
		h := c.Holds[id]
		if workers -= h.Workers; h.recalled.IsZero() {
			h.recalled = now
			a := c.answer(&h.Ad, "")
			a.Recall = true
			h.report(&a)
			c.taken = append(c.taken, Outgoing{h.Ad.Origin(), a})
		}
	}
}

// Announced tells that a grant of so many of the workers that are held under a key is on its
// way: no job that goes before gets them any more. What is held beyond them is free; or is held
// on for the batch of which they are taken, if it is not "". It returns the hold, nil if nothing
// is held so.
func (c *Claims) Announced(now time.Time, job, batch jobs.ID, key uint64, workers int) *Hold {
	c.expire(now)
	h := c.part(job, batch, key, workers)
	if h == nil || h.key != key || workers > h.Workers {
		return nil
	}
	if len(h.Ad.Kinds) == 0 { // of others it is not said which they are: the grant takes what it needs
		h.Room = (calendar.Supply{}).Minus(h.Ad.Needs, -workers)
	}
	if h.Workers = workers; !h.announced { // its origin may have to connect, for two round trips
		h.announced, h.Expires = true, now.Add(wire.HoldLease)
	}
	return h
}
