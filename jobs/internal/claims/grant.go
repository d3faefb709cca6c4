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
	if c.shift.shut {
		return wire.Refusal(wire.ReasonHours)
	}
	job, n := g.Job, len(g.Ranks)+g.Spares
	if s := c.Spares[job]; s.holds(g) {
		c.EndBookingsOf(job)
		c.release(job, n)
		for _, ra := range g.Ranks {
			c.claim(now, job, &g.Spec, ra.Rank, c.Limits.MaxWalltime.Std())
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
	case !h.lasts(&g.Spec):
		return fmt.Errorf("%w: job %s was advertised with other needs: it may run for longer", jobs.ErrRefused, job.Short())
	case kinds&^(h.fits|c.runnable(&h.Ad).fits) != 0: // nor was it when it offered
		return wire.Refusal(wire.ReasonWhere)
	case n > h.Workers || !h.Room.Holds(supplyOf(&g.Spec, ranks)) || !c.keeps(now, g, ranks):
		return wire.Refusal(wire.ReasonFewer)
	}
	delete(c.Holds, job)
	c.EndBookingsOf(job)
	c.keep(g)
	for _, ra := range g.Ranks {
		c.claim(now, job, &g.Spec, ra.Rank, c.Limits.MaxWalltime.Std())
	}
	return nil
}

// report puts the hold into an answer.
func (h *Hold) report(a *wire.Answer) {
	a.Key, a.Workers, a.Lent = h.key, h.Workers, h.granted()
	if len(h.Ad.Kinds) > 0 {
		a.Room = roomOf(h.Room)
	}
}

// claim counts a worker that begins now; without a walltime it has what the owner allows.
func (c *claimed) claim(now time.Time, job jobs.ID, spec *jobs.Spec, rank int, allowed time.Duration) {
	c.Jobs[job]++
	c.Claim(job, spec.Needs(rank), ends(now, spec, allowed))
}

// ends is when a worker ends at the latest that begins now, without a walltime by what the owner allows; zero = that is
// not known.
func ends(now time.Time, spec *jobs.Spec, allowed time.Duration) (at time.Time) {
	if wall := cmp.Or(spec.Walltime.Std(), allowed); wall > 0 && spec.Array == nil {
		at = now.Add(wall)
	}
	return at
}

// Adopted counts a worker of an earlier life of this node, which began then; without a walltime it has what the owner
// allowed.
func (c *claimed) Adopted(job jobs.ID, spec *jobs.Spec, rank int, gpus []int, at time.Time, allowed time.Duration) {
	c.claim(at, job, spec, rank, allowed)
	for _, i := range gpus {
		c.gpus[i]++
	}
}

// Freed gives the room of n ended workers of a job back and wakes the queue.
func (c *Claims) Freed(job jobs.ID, n int, w jobs.Needs) {
	for range n {
		c.Free(job, w)
	}
	if c.Jobs[job] -= n; c.Jobs[job] <= 0 {
		delete(c.Jobs, job)
	}
	c.wakeQueue()
}
