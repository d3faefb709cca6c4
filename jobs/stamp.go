package jobs

import "time"

// Stamp orders jobs the same way at every node: a hybrid logical clock value,
// given once at the origin (Kulkarni et al., "Logical Physical Clocks", 2014).
// The upper 48 bits are milliseconds since 1970, the lower 16 a counter.
type Stamp uint64

// clock gives stamps that grow, whatever the wall clock does. It is owned by
// one goroutine.
type clock struct{ last Stamp }

// maxAhead bounds how far a foreign stamp may drag this clock along.
const maxAhead = 5 * time.Minute

// now returns a stamp after all that were given or seen before.
func (c *clock) now(t time.Time) Stamp {
	c.last = max(c.last+1, Stamp(t.UnixMilli())<<16)
	return c.last
}

// saw tells the clock of another node's stamp. One that is absurdly far in the
// future is not followed.
func (c *clock) saw(s Stamp, t time.Time) {
	if s < Stamp(t.Add(maxAhead).UnixMilli())<<16 {
		c.last = max(c.last, s)
	}
}

// order is a job's place among all jobs.
type order struct {
	priority int
	stamp    Stamp
	id       ID
}

// before reports whether a goes first: higher priority, then older, then by ID.
func (a order) before(b order) bool {
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	if a.stamp != b.stamp {
		return a.stamp < b.stamp
	}
	return a.id < b.id
}

// earlier returns the earlier of two times, where zero means "never".
func earlier(a, b time.Time) time.Time {
	switch {
	case a.IsZero():
		return b
	case b.IsZero():
		return a
	}
	if b.Before(a) { // not by the wall clock, which may jump
		return b
	}
	return a
}
