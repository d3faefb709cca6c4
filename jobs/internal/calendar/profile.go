package calendar

import (
	"slices"
	"time"

	"zorilla/jobs"
)

// Use is room that is in use, as if claimed; Until is zero for ever.
type Use struct {
	Room  Supply
	Until time.Time
}

// profile is how much more, or less, is free from when on than what claims leave now.
type profile struct {
	at    []time.Time // the first is when it was made
	more  []Supply    // from each on, up to the next
	until time.Time   // from when on it is wrong; zero = never
}

// change is that of what is free at a time.
type change struct {
	at   time.Time
	more Supply
}

// profileFor is what a job finds: bookings of its own are not in its way, what is held is.
func (c *Calendar) profileFor(now time.Time, as jobs.ID, held []Use) profile {
	if len(held) > 0 || len(c.booked[as]) > 0 {
		return c.profile(now, as, held)
	}
	if p := &c.shared; len(p.at) == 0 || now.Before(p.at[0]) || !p.until.IsZero() && !now.Before(p.until) {
		c.shared = c.profile(now, as, nil)
	}
	return c.shared
}

func (c *Calendar) profile(now time.Time, as jobs.ID, held []Use) (p profile) {
	var list []change
	for _, e := range c.ends {
		at := e.until
		switch {
		case !at.After(now): // it was to be gone by now: what is known changes with each moment
			at, p.until = now.Add(Overdue), now.Add(1)
		case p.until.IsZero():
			p.until = at
		}
		list = append(list, change{at, Supply{}.Minus(e.needs, -1)})
	}
	first := Supply{}
	for _, u := range held {
		if first = first.Beside(u.Room); !u.Until.IsZero() {
			list = append(list, change{u.Until, u.Room})
		}
	}
	for job, bookings := range c.booked {
		if job != as {
			list = append(list, changes(bookings)...)
		}
	}
	slices.SortFunc(list, func(a, b change) int { return a.at.Compare(b.at) })
	p.at, p.more = []time.Time{now}, []Supply{first}
	for _, l := range list {
		last := len(p.at) - 1
		more := p.more[last].plus(l.more)
		if l.at.After(p.at[last]) {
			p.at, p.more = append(p.at, l.at), append(p.more, more)
		} else {
			p.more[last] = more
		}
	}
	return p
}

// changes are those of what is free by the bookings of one job.
func changes(bookings []Booking) (list []change) {
	var times []time.Time
	for i := range bookings {
		b := &bookings[i]
		if times = append(times, b.From); !b.To.IsZero() {
			times = append(times, b.To)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	taken := Supply{}
	for _, at := range times {
		now := Supply{}
		for i := range bookings {
			if bookings[i].active(at) {
				now = now.atLeast(bookings[i].Room)
			}
		}
		if now != taken {
			list = append(list, change{at, taken.Beside(now)})
			taken = now
		}
	}
	return list
}

// least returns how much more is free during all of [from, to).
func (p *profile) least(from, to time.Time) Supply {
	i, found := slices.BinarySearchFunc(p.at, from, time.Time.Compare)
	if !found && i > 0 {
		i--
	}
	least := p.more[i]
	for i++; i < len(p.at) && (to.IsZero() || p.at[i].Before(to)); i++ {
		least = least.Limited(p.more[i])
	}
	return least
}

// Least returns what is free for a job during all of [from, to), where to is zero for ever, and from not before now.
func (c *Calendar) Least(now, from, to time.Time, as jobs.ID) Supply {
	free := c.Has.Beside(c.Used)
	if c.count == 0 && !from.After(now) { // what is used becomes no more
		return free
	}
	p := c.profileFor(now, as, nil)
	return free.plus(p.least(from, to))
}

// Fits reports whether a booking can be kept beside all claims, what is held and the bookings of others.
func (c *Calendar) Fits(now time.Time, b *Booking, held []Use) bool {
	p := c.profileFor(now, b.Job, held)
	return c.Has.Beside(c.Used).plus(p.least(b.From, b.To)).Holds(b.Room)
}

// When returns the end of the first claim after which there are so many slots, if that suits; zero = none.
func (c *Calendar) When(slots int, suits func(at time.Time) bool) (at time.Time) {
	have := c.Has.Slots - c.Used.Slots
	for _, e := range c.ends {
		if have += e.needs.Slots; have >= slots && suits(e.until) {
			return e.until
		}
	}
	return at
}
