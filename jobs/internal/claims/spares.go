package claims

import (
	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
)

// Spares are claims of a job without workers: room that a rank gets at once which was lost elsewhere.
type Spares struct {
	Key     uint64 // of the hold that they were
	Workers int
	needs   jobs.Needs // of each
}

// keep claims the spares of a grant. Its origin knows of no others: those that the job had before are free.
func (c *claimed) keep(g *wire.Grant) {
	if g.Spares == 0 {
		return
	}
	c.release(g.Job, jobs.MaxRanks)
	needs := g.Spec.Needs(0)
	c.Spares[g.Job] = &Spares{Key: g.Key, Workers: g.Spares, needs: needs}
	c.Used = c.Used.Minus(needs, -g.Spares)
	c.Jobs[g.Job] += g.Spares
}

// holds reports whether ranks are granted under the key of spares, of which there are as many.
func (s *Spares) holds(g *wire.Grant) bool {
	return s != nil && s.Key == g.Key && len(g.Ranks) > 0 && len(g.Ranks) <= s.Workers
}

// release gives n spares of a job back, all if it has fewer.
func (c *claimed) release(job jobs.ID, n int) {
	s := c.Spares[job]
	if s == nil {
		return
	}
	n = min(n, s.Workers)
	if s.Workers -= n; s.Workers == 0 {
		delete(c.Spares, job)
	}
	c.Used = c.Used.Minus(s.needs, n)
	if c.Jobs[job] -= n; c.Jobs[job] <= 0 {
		delete(c.Jobs, job)
	}
}

// FreeSpares gives the room of n spares of a job back, of all if it has fewer, and wakes the queue.
func (c *Claims) FreeSpares(job jobs.ID, n int) {
	c.release(job, n)
	c.wakeQueue()
}
