package primary

import (
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/pace"
	"zorilla/internal/units"
	"zorilla/jobs"
)

// Collecting is the output files that are being fetched: of which workers, and how many
// bytes of them are here. It may be told of them at any time.
type Collecting struct {
	under map[jobs.RankAttempt]*fetching
	whole int64 // bytes of all that were fetched since nothing was
	pace  pace.Pace
}

// fetching is the files of one worker.
type fetching struct{ total, done int64 }

func newCollecting() Collecting { return Collecting{under: map[jobs.RankAttempt]*fetching{}} }

func (c *Collecting) has(ra jobs.RankAttempt) bool { return c.under[ra] != nil }

// begin notes that files are asked for.
func (c *Collecting) begin(ra jobs.RankAttempt, bytes int64) {
	if len(c.under) == 0 {
		c.whole, c.pace = 0, pace.Pace{}
	}
	c.under[ra] = &fetching{total: bytes}
}

// end notes that they are here, or will not be.
func (c *Collecting) end(now time.Time, ra jobs.RankAttempt) {
	if f := c.under[ra]; f != nil {
		c.whole += f.total
		delete(c.under, ra)
		c.pace.Note(now, c.sum().Done)
	}
}

// sum counts what is fetched, and was since nothing was.
func (c *Collecting) sum() jobs.Moving {
	m := jobs.Moving{What: jobs.MovingOutputs, Nodes: len(c.under), Done: c.whole, Total: c.whole}
	for _, f := range c.under {
		m.Done += f.done
		m.Total += f.total
	}
	return m
}

// moving is sum while something is missing, else nil.
func (c *Collecting) moving() *jobs.Moving {
	m := c.sum()
	if m.Done >= m.Total {
		return nil
	}
	m.Rate = c.pace.Rate()
	m.Left = codec.Duration(pace.Left(m.Total-m.Done, m.Rate))
	return &m
}

func (c *Collecting) text() string {
	if m := c.moving(); m != nil {
		return m.String()
	}
	return fmt.Sprintf("fetching the outputs of %s", units.Count(len(c.under), "worker", "workers"))
}

// Arriving takes how many bytes of a worker's output files are here, and reports whether
// that is news.
func (c *Collecting) Arriving(now time.Time, ra jobs.RankAttempt, bytes int64) bool {
	f := c.under[ra]
	if f == nil || bytes <= f.done {
		return false
	}
	f.done = min(bytes, f.total)
	c.pace.Note(now, c.sum().Done)
	return true
}
