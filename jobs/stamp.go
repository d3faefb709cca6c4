package jobs

import "time"

// Stamp orders jobs the same way at every node: a hybrid logical clock value,
// given once at the origin (Kulkarni et al., "Logical Physical Clocks", 2014).
// The upper 48 bits are milliseconds since 1970, the lower 16 a counter.
type Stamp uint64

// Clock gives stamps that grow, whatever the wall clock does. It is owned by
// one goroutine.
type Clock struct{ last Stamp }

// maxAhead bounds how far a foreign stamp may drag this clock along.
const maxAhead = 5 * time.Minute

// Now returns a stamp after all that were given or seen before.
func (c *Clock) Now(t time.Time) Stamp {
	c.last = max(c.last+1, Stamp(t.UnixMilli())<<16)
	return c.last
}

// Saw tells the clock of another node's stamp. One that is absurdly far in the
// future is not followed.
func (c *Clock) Saw(s Stamp, t time.Time) {
	if s < Stamp(t.Add(maxAhead).UnixMilli())<<16 {
		c.last = max(c.last, s)
	}
}

// Order is a job's place among all jobs.
type Order struct {
	Priority int
	Stamp    Stamp
	ID       ID
}

// Before reports whether a goes first: higher priority, then older, then by ID.
func (a Order) Before(b Order) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	if a.Stamp != b.Stamp {
		return a.Stamp < b.Stamp
	}
	return a.ID < b.ID
}
