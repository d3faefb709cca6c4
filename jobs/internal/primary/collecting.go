package primary

import (
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/rate"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
)

// collecting is the output files that are being fetched: of which workers, and how many
// bytes of them are here, with those that were fetched since nothing was.
type collecting struct {
	under map[jobs.RankAttempt]*fetching
	since map[jobs.RankAttempt]time.Time // when something came of them last, or they were asked for first
	jobs.Moving
	pace rate.Meter
}

// fetching is the files of one worker.
type fetching struct{ total, done int64 }

func newCollecting() collecting {
	return collecting{under: map[jobs.RankAttempt]*fetching{}, since: map[jobs.RankAttempt]time.Time{}}
}

// fetchFor is how long nothing may come of a worker's files from a node that lives, while they
// are asked for again and again: then it has lost them.
const fetchFor = 5 * time.Minute

func (c *collecting) has(ra jobs.RankAttempt) bool { return c.under[ra] != nil }

// begin notes that files are asked for.
func (c *collecting) begin(now time.Time, ra jobs.RankAttempt, bytes int64) {
	if c.since[ra].IsZero() {
		c.since[ra] = now
	}
	if len(c.under) == 0 {
		c.Moving, c.pace = jobs.Moving{What: jobs.MovingOutputs}, rate.Meter{}
	}
	c.under[ra] = &fetching{total: bytes}
	c.Total += bytes
	c.Nodes = len(c.under)
}

// end notes that they are here, or that fetching them failed.
func (c *collecting) end(now time.Time, ra jobs.RankAttempt, ok bool) {
	f := c.under[ra]
	if f == nil {
		return
	}
	delete(c.under, ra)
	if ok {
		delete(c.since, ra)
	}
	if c.Nodes = len(c.under); ok {
		c.Done += f.total - f.done
	} else {
		c.Done -= f.done
		c.Total -= f.total
	}
	c.pace.Note(now, c.Done)
}

// arrived notes how many bytes of a worker's files are here, and reports whether that is news.
func (c *collecting) arrived(now time.Time, ra jobs.RankAttempt, bytes int64) bool {
	f := c.under[ra]
	if f == nil || bytes <= f.done {
		return false
	}
	before := f.done
	f.done, c.since[ra] = min(bytes, f.total), now
	c.Done += f.done - before
	c.pace.Note(now, c.Done)
	return true
}

// needless reports whether the files of another copy of a worker's rank are
// being fetched, or it counts already.
func (c *collecting) needless(r *record.Record, worker int) (yes bool) {
	if !r.Replicated() {
		return false
	}
	rank, _ := r.Spec.RankOf(worker)
	r.CopiesOf(rank, func(w int, k *record.Rank) {
		yes = yes || w != worker && k.State == jobs.WorkerEnded && c.has(jobs.RankAttempt{Rank: w, Attempt: k.Attempt})
	})
	return yes || r.Surplus(worker)
}

// moving reports how far they are, nil if nothing is missing.
func (c *collecting) moving() *jobs.Moving { return paced(c.Moving, &c.pace) }

// paced reports how far something is at a pace, nil if all is there.
func paced(m jobs.Moving, p *rate.Meter) *jobs.Moving {
	if m.Done >= m.Total {
		return nil
	}
	m.Rate = p.Rate()
	m.Left = codec.Duration(rate.Left(m.Total-m.Done, m.Rate))
	return &m
}

func (c *collecting) text() string {
	if m := c.moving(); m != nil {
		return m.String()
	}
	return fmt.Sprintf("fetching the outputs of %s", units.Count(len(c.under), "worker", "workers"))
}
