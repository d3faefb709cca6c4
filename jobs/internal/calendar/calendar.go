// Package calendar is the core that knows how much of a node is free at which time, by the claims of workers and by
// the bookings of jobs.
//
// A Calendar has no clock: its methods take the time.
package calendar

import (
	"cmp"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/timers"
)

// Overdue is for how long, from now, a claim counts whose end has passed: its process is about to end.
const Overdue = 10 * time.Second

// Calendar is what a node has, and what of it is used and booked when.
type Calendar struct {
	Has  Supply
	Used Supply  // by all claims
	ends []claim // those whose end is known, by end

	booked map[jobs.ID][]Booking // in the order in which they were made
	count  int                   // of bookings
	due    time.Time             // when the next of them begins, ends or expires; zero = never
	shared profile               // for jobs without bookings
}

// claim is a worker's.
type claim struct {
	job   jobs.ID
	needs jobs.Needs
	until time.Time
}

// Booking promises a job room from a time on. Those of one job are alternatives, of which it will use one: at each
// moment they take as much as the largest of them.
type Booking struct {
	Job       jobs.ID   `json:"job"`
	Key       uint64    `json:"key"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to,omitzero"` // zero = without end
	Room      Supply    `json:"room"`        // for all its workers together
	Workers   int       `json:"workers"`
	Lease     time.Time `json:"lease"` // until when it is kept
	Confirmed bool      `json:"confirmed,omitempty"`
}

// active reports whether it takes room at a time.
func (b *Booking) active(at time.Time) bool {
	return !at.Before(b.From) && (b.To.IsZero() || at.Before(b.To))
}

// Over reports whether nobody has the room any more.
func (b *Booking) Over(now time.Time) bool {
	return !now.Before(b.Lease) || !b.To.IsZero() && !now.Before(b.To)
}

// Claim counts a worker that ends at a time at the latest; zero = that is not known.
func (c *Calendar) Claim(job jobs.ID, needs jobs.Needs, until time.Time) {
	c.Used = c.Used.Minus(needs, -1)
	if until.IsZero() {
		return
	}
	i, _ := slices.BinarySearchFunc(c.ends, until, func(e claim, at time.Time) int {
		if e.until.After(at) {
			return 1
		}
		return -1
	})
	c.ends = slices.Insert(c.ends, i, claim{job, needs, until})
	c.changed()
}

// Free ends the claim of a worker. Of several that are alike it is the one that would have ended first, so that no more
// is promised than there will be.
func (c *Calendar) Free(job jobs.ID, needs jobs.Needs) {
	c.Used = c.Used.Minus(needs, 1)
	if i := slices.IndexFunc(c.ends, func(e claim) bool { return e.job == job && e.needs == needs }); i >= 0 {
		c.ends = slices.Delete(c.ends, i, i+1)
		c.changed()
	}
}

// Book makes a booking. It takes the place of the one that has its key.
func (c *Calendar) Book(b Booking) {
	if c.booked == nil {
		c.booked = map[jobs.ID][]Booking{}
	}
	list := c.booked[b.Job]
	if i := slices.IndexFunc(list, func(o Booking) bool { return o.Key == b.Key }); i >= 0 {
		list[i] = b
	} else {
		list, c.count = append(list, b), c.count+1
	}
	c.booked[b.Job] = list
	c.changed()
	c.due = timers.Earlier(c.due, timers.Earlier(timers.Earlier(b.From, b.To), b.Lease))
}

// changed notes that what was worked out is wrong.
func (c *Calendar) changed() {
	if c.shared.at != nil {
		c.shared = profile{}
	}
}

// Unbook ends bookings of a job, and returns them.
func (c *Calendar) Unbook(job jobs.ID, which func(*Booking) bool) (ended []Booking) {
	if c.count == 0 {
		return nil
	}
	var left []Booking
	for _, b := range c.booked[job] {
		if which(&b) {
			ended = append(ended, b)
		} else {
			left = append(left, b)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	if c.booked[job] = left; len(left) == 0 {
		delete(c.booked, job)
	}
	c.count -= len(ended)
	c.changed()
	return ended
}

// Expire ends what is over. It reports whether something has begun, or ended, since it was called last.
func (c *Calendar) Expire(now time.Time) (ended []Booking, news bool) {
	if c.due.IsZero() || now.Before(c.due) {
		return nil, false
	}
	for _, b := range c.Bookings() {
		if b.Over(now) {
			ended = append(ended, c.Unbook(b.Job, func(o *Booking) bool { return o.Key == b.Key })...)
		}
	}
	c.due = time.Time{}
	for _, list := range c.booked {
		for _, b := range list {
			for _, at := range []time.Time{b.From, b.To, b.Lease} {
				if at.After(now) {
					c.due = timers.Earlier(c.due, at)
				}
			}
		}
	}
	return ended, true
}

// Due is when Expire has something to do; zero = never.
func (c *Calendar) Due() time.Time { return c.due }

// Booked returns how many bookings there are.
func (c *Calendar) Booked() int { return c.count }

// BookedBy returns the bookings of a job, as they were made.
func (c *Calendar) BookedBy(job jobs.ID) []Booking { return c.booked[job] }

// Bookings lists all bookings, those that begin first before others.
func (c *Calendar) Bookings() (list []Booking) {
	for _, of := range c.booked {
		list = append(list, of...)
	}
	slices.SortFunc(list, func(a, b Booking) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Key, b.Key))
	})
	return list
}

// Within lists jobs that have bookings at some time in [from, to); to is zero for ever.
func (c *Calendar) Within(from, to time.Time) (list []jobs.ID) {
	for job, of := range c.booked {
		if slices.ContainsFunc(of, func(b Booking) bool {
			return (to.IsZero() || b.From.Before(to)) && (b.To.IsZero() || from.Before(b.To))
		}) {
			list = append(list, job)
		}
	}
	return list
}
