package claims

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Granted turns held workers, or spares, into claims, one for each rank of the grant. What a hold has beyond
// them is free again. An error says why the grant is refused.
func (c *Claims) Granted(now time.Time, origin vicinity.ID, g *wire.Grant) error {
	c.expire(now)
	job, n := g.Job, len(g.Ranks)+g.Spares
	if s := c.Spares[job]; s.holds(g) {
		c.release(job, n)
		for _, ra := range g.Ranks {
			c.claim(now, job, &g.Spec, ra.Rank)
		}
		return nil
	}
	h := c.part(job, g.Held, g.Key, n)
	if h == nil || h.key != g.Key {
		return wire.Refusal(c.voids.why(cmp.Or(g.Held, job), g.Key))
	}
	ranks := g.Ranks
	if g.Spares > 0 { // each may become any rank, and all want the same
		ranks = make([]jobs.RankAttempt, g.Spares)
	}
	kinds, asked := h.Ad.KindsOf(&g.Spec, ranks)
	switch {
	case h.Ad.Origin() != origin:
		return fmt.Errorf("%w: job %s belongs to another origin", jobs.ErrRefused, job.Short())
	case !asked || !slices.Equal(g.Spec.Mounts, h.Ad.Mounts) || g.Spec.Net != h.Ad.Network():
		return fmt.Errorf("%w: job %s was advertised with other needs", jobs.ErrRefused, job.Short())
	case kinds&^(h.fits|c.runnable(&h.Ad).fits) != 0: // nor was it when it offered
		return wire.Refusal(wire.ReasonWhere)
	case n > h.Workers || !h.Room.holds(supplyOf(&g.Spec, ranks)):
		return wire.Refusal(wire.ReasonFewer)
	}
	delete(c.Holds, job)
	c.keep(g)
	for _, ra := range g.Ranks {
		c.claim(now, job, &g.Spec, ra.Rank)
	}
	return nil
}

// report puts the hold into an answer.
func (h *Hold) report(a *wire.Answer) {
	a.Key, a.Workers, a.Lent = h.key, h.Workers, h.granted()
	if len(h.Ad.Kinds) > 0 {
		a.Room = h.Room.room()
	}
}

// claim counts a worker that begins now.
func (c *claimed) claim(now time.Time, job jobs.ID, spec *jobs.Spec, rank int) {
	needs := spec.Needs(rank)
	c.Used = c.Used.minus(needs, -1)
	c.Jobs[job]++
	if spec.Walltime > 0 && spec.Array == nil {
		c.ends = append(c.ends, end{job, needs.Slots, now.Add(time.Duration(spec.Walltime))})
	}
}

// Freed gives the room of n ended workers of a job back and wakes the queue.
func (c *Claims) Freed(job jobs.ID, n int, w jobs.Needs) {
	for range n {
		if i := slices.IndexFunc(c.ends, func(e end) bool { return e.job == job && e.slots == w.Slots }); i >= 0 {
			c.ends = slices.Delete(c.ends, i, i+1)
		}
	}
	c.Used = c.Used.minus(w, n)
	if c.Jobs[job] -= n; c.Jobs[job] <= 0 {
		delete(c.Jobs, job)
	}
	c.wakeQueue()
}
