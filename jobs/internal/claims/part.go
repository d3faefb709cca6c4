package claims

import (
	"zorilla/jobs"
	"zorilla/jobs/internal/calendar"
)

// part returns the hold of which a job is granted so many workers, under the key of the offer: its
// own, or a part of what is held for a batch of jobs, which is the job's own from then on. It returns nil
// if nothing is held so; what is held for the job under another key stays its hold.
//
// A job gets a part of a batch's hold once: where nodes are connected already its grant may overtake
// the packet that announces it, which must not take as many again. It gets none if it would be one job too
// many for the owner.
func (c *Claims) part(job, batch jobs.ID, key uint64, workers int) *Hold {
	own, h := c.Holds[job], c.Holds[batch]
	if batch == "" || batch == job || own != nil {
		return own
	}
	if h == nil || batch.Origin() != job.Origin() || h.key != key || workers < 1 || workers > h.Workers || h.parts[job] > 0 {
		return nil
	}
	if most := c.Limits.MaxWorkersPerJob; most > 0 && c.Jobs[job]+workers > most {
		return nil
	}
	own = &Hold{Ad: h.Ad, order: h.order, key: key, Workers: workers, Room: (calendar.Supply{}).Minus(h.Ad.Needs, -workers),
		Expires: h.Expires, recalled: h.recalled, announced: h.announced}
	own.Ad.Job, own.order.ID = job, job
	whole := *h
	h.Room = h.Room.Beside(own.Room)
	if h.Workers -= workers; h.Workers == 0 {
		delete(c.Holds, batch)
	}
	c.Holds[job] = own
	if _, jobs := c.promised(); jobs {
		delete(c.Holds, job)
		c.Holds[batch] = &whole
		return nil
	}
	if h.Workers == 0 {
		c.Dequeue(batch)
		return own
	}
	if h.parts == nil {
		h.parts = map[jobs.ID]int{}
	}
	h.parts[job] = workers
	return own
}

// granted returns how many workers jobs of a batch have had of its hold.
func (h *Hold) granted() (n int) {
	for _, workers := range h.parts {
		n += workers
	}
	return n
}
