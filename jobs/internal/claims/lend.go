package claims

import "zorilla/jobs"

// lend makes so many of the workers that are held for a call a hold of one of its jobs, under
// the same key. Nothing is done if there is no such hold, or the job would be one too many: its
// grant is refused then. A job borrows once: where nodes are connected already its grant may
// overtake the packet that announces it, which must not take as many again.
func lend(c *Claims, job, call jobs.ID, key uint64, workers int) {
	h := c.Holds[call]
	if h == nil || call == job || call.Origin() != job.Origin() || h.key != key ||
		workers < 1 || workers > h.Workers || c.Holds[job] != nil || h.lent[job] > 0 {
		return
	}
	if most := c.Limits.MaxWorkersPerJob; most > 0 && c.Jobs[job]+workers > most {
		return
	}
	part, whole := *h, *h
	part.Workers, part.Ad.Job, part.order.ID, part.lent = workers, job, job, nil
	if h.Workers -= workers; h.Workers == 0 {
		delete(c.Holds, call)
	}
	c.Holds[job] = &part
	if _, jobs := c.promised(); jobs {
		delete(c.Holds, job)
		c.Holds[call] = &whole
		return
	}
	if h.Workers == 0 {
		c.Dequeue(call)
		return
	}
	if h.lent == nil {
		h.lent = map[jobs.ID]int{}
	}
	h.lent[job] = workers
}

// lends returns how many workers jobs of the call have had of its hold.
func (h *Hold) lends() (n int) {
	for _, workers := range h.lent {
		n += workers
	}
	return n
}
