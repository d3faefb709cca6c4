package primary

import (
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/pace"
	"zorilla/internal/units"
	"zorilla/jobs"
)

// collecting is the output files that are being fetched: of which workers, and how many
// bytes of them are here, with those that were fetched since nothing was.
type collecting struct {
	under map[jobs.RankAttempt]*fetching
	jobs.Moving
	pace pace.Pace
}

// fetching is the files of one worker.
type fetching struct{ total, done int64 }

func newCollecting() collecting { return collecting{under: map[jobs.RankAttempt]*fetching{}} }

func (c *collecting) has(ra jobs.RankAttempt) bool { return c.under[ra] != nil }

// begin notes that files are asked for.
func (c *collecting) begin(ra jobs.RankAttempt, bytes int64) {
	if len(c.under) == 0 {
		c.Moving, c.pace = jobs.Moving{What: jobs.MovingOutputs}, pace.Pace{}
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
	if c.Nodes = len(c.under); ok {
		c.Done += f.total - f.done
	} else {
		c.Done -= f.done
		c.Total -= f.total
	}
	c.pace.Note(now, c.Done)
}

// moving tells how far they are, nil if nothing is missing.
func (c *collecting) moving() *jobs.Moving { return paced(c.Moving, &c.pace) }

// paced tells how far something is at a pace, nil if all is there.
func paced(m jobs.Moving, p *pace.Pace) *jobs.Moving {
	if m.Done >= m.Total {
		return nil
	}
	m.Rate = p.Rate()
	m.Left = codec.Duration(pace.Left(m.Total-m.Done, m.Rate))
	return &m
}

func (c *collecting) text() string {
	if m := c.moving(); m != nil {
		return m.String()
	}
	return fmt.Sprintf("fetching the outputs of %s", units.Count(len(c.under), "worker", "workers"))
}

// Arriving tells a job's primary how many bytes of a worker's output files are here.
func Arriving(p *Primary, now time.Time, ra jobs.RankAttempt, bytes int64) {
	c := &p.collecting
	f := c.under[ra]
	if f == nil || bytes <= f.done {
		return
	}
	before := f.done
	f.done = min(bytes, f.total)
	c.Done += f.done - before
	c.pace.Note(now, c.Done)
	p.Version++
}
