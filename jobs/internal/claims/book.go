package claims

import (
	"math"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/calendar"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
)

// The rule of bookings: a job is offered what nobody else has booked for the time in which its workers would run, for
// ever if that is not known. So short jobs run before a booking begins, and none can push it away.

const (
	// margin is how much later than it is asked for a worker may end: its offer is granted as late as that, and its
	// process ended when its time has passed.
	margin = 2*wire.HoldLease + calendar.Overdue

	maxBookings = 1024
	maxPerJob   = 2 // alternatives: the booking that is kept, and a better one
)

// bookings are those of jobs, beside what is used.
type bookings struct {
	calendar.Calendar
	ended []calendar.Booking // which the disk is to forget
	moved bool               // one has begun or ended, of whose room the queue has not heard
}

// Why nothing is booked.
const (
	notBooked    = "does not know the booking any more"
	manyBookings = "too many bookings"
)

// until is when a worker ends at the latest that a job is offered at a time; zero = that is not known.
func until(at time.Time, ad *wire.Advertisement) (end time.Time) {
	if ad.Length > 0 {
		end = at.Add(length(ad) + margin)
	}
	return end
}

// length is how long a worker runs at most; 0 = that is not known.
func length(ad *wire.Advertisement) time.Duration { return time.Duration(ad.Length) * time.Millisecond }

// until is when workers of a job end that it is offered at a time, as far as bookings of others count. In what it has booked
// they may begin late.
func (c *bookings) until(at time.Time, ad *wire.Advertisement) time.Time {
	end := until(at, ad)
	for _, b := range c.BookedBy(ad.Job) {
		if ad.Length > 0 && !at.Before(b.From) && !at.Add(length(ad)).After(b.To) {
			end = timers.Earlier(end, b.To)
		}
	}
	return end
}

// unused is what is free for workers of a job beside claims and bookings, if it is offered them now.
func (c *bookings) unused(now time.Time, ad *wire.Advertisement) calendar.Supply {
	return c.Least(now, now, c.until(now, ad), ad.Job)
}

// lasts reports whether a hold was asked for, for as long as workers of a job may run.
func (h *Hold) lasts(spec *jobs.Spec) bool {
	end := ends(time.Time{}, spec, 0)
	return h.Ad.Length == 0 || !end.IsZero() && end.Sub(time.Time{}) <= length(&h.Ad)
}

// keeps reports whether all bookings of others can be kept beside workers that are granted now. A hold may have stood
// for longer than it was counted for.
func (c *bookings) keeps(now time.Time, g *wire.Grant, ranks []jobs.RankAttempt) bool {
	if c.Booked() == 0 {
		return true
	}
	end := ends(now, &g.Spec, 0)
	if g.Spares > 0 { // they stay
		end = time.Time{}
	}
	return c.Least(now, now, end, g.Job).Holds(supplyOf(&g.Spec, ranks))
}

// Book makes a booking, keeps one on or ends it, as the origin of its job asks. It returns the booking that is to be
// written down before the answer is given; nil = there is none.
func (c *Claims) Book(now time.Time, m *wire.Book) (kept *calendar.Booking, answer wire.Booked) {
	c.expire(now)
	if m.Lease == 0 {
		c.unbook(m.Job, func(b *calendar.Booking) bool { return b.Key == m.Key })
		return nil, wire.Booked{OK: true}
	}
	b := calendar.Booking{Job: m.Job, Key: m.Key}
	list := c.BookedBy(m.Job)
	at := slices.IndexFunc(list, func(o calendar.Booking) bool { return o.Key == m.Key })
	if at >= 0 {
		b = list[at]
	}
	lease := time.Duration(m.Lease) * time.Millisecond
	b.Lease, b.Confirmed = now.Add(lease), b.Confirmed || lease > wire.TentativeLease
	switch {
	case m.New != nil:
		n := m.New
		b.Workers, b.Room = n.Workers, calendar.Supply(n.Room)
		b.From, b.To = now.Add(time.Duration(n.In)*time.Millisecond), time.Time{}
		if n.Length > 0 {
			b.To = b.From.Add(time.Duration(n.Length)*time.Millisecond + margin) // its workers may begin late
		}
		if why := c.unbookable(now, &b, at >= 0); why != "" {
			return nil, wire.Booked{Reason: why}
		}
	case at < 0:
		return nil, wire.Booked{Reason: notBooked}
	}
	c.Calendar.Book(b)
	return &b, wire.Booked{OK: true}
}

// unbookable says why a booking cannot be made, or "". A job that has as many as it may loses one that it has not
// confirmed.
func (c *Claims) unbookable(now time.Time, b *calendar.Booking, known bool) string {
	list := c.BookedBy(b.Job)
	switch {
	case c.Closed != "":
		return c.Closed
	case c.Limits.Paused:
		return wire.ReasonPaused
	case !c.admitted(b.Job.Origin(), nil):
		return wire.ReasonDenied
	case outside(now, &c.Limits, b):
		return wire.ReasonHours
	case c.Limits.MaxWorkersPerJob > 0 && b.Workers > c.Limits.MaxWorkersPerJob:
		return ownerAllows(c.Limits.MaxWorkersPerJob, "worker") + " per job"
	case !c.Fits(now, b, held(c.Holds, func(h *Hold) bool { return h.Ad.Job != b.Job })):
		if why := tooSmall(c.Has, jobs.Needs(b.Room)); why != "" {
			return why
		}
		return wire.ReasonBusy
	case known:
		return ""
	case len(list) >= maxPerJob:
		for _, o := range list {
			if !o.Confirmed {
				c.unbook(b.Job, func(x *calendar.Booking) bool { return x.Key == o.Key })
				return ""
			}
		}
		return manyBookings
	case c.Booked() >= maxBookings:
		return manyBookings
	}
	return ""
}

// held is what is held, for as long as workers may have it.
func held(holds map[jobs.ID]*Hold, which func(*Hold) bool) (list []calendar.Use) {
	for _, h := range holds {
		if !which(h) {
			continue
		}
		u := calendar.Use{Room: h.Room}
		if h.Ad.Length > 0 { // the grant may be announced, and come after that
			u.Until = h.Expires.Add(length(&h.Ad) + margin - wire.HoldLease)
		}
		list = append(list, u)
	}
	return list
}

// steps says from when on how many workers of a job could begin, of which so many are allowed.
func (r runnable) steps(now time.Time, c *calendar.Calendar, ad *wire.Advertisement, allowed int, held []calendar.Use,
	shut []calendar.Span) (list []wire.Step) {
	most := min(allowed, jobs.MaxRanks)
	long := length(ad)
	if long > 0 {
		long += margin
	}
	plan := calendar.Plan{As: ad.Job, Length: long, Held: held, Shut: shut, Ahead: wire.MaxAhead, Steps: wire.MaxSteps,
		Workers: func(free calendar.Supply) (n int, room calendar.Supply) {
			if n = min(r.in(free), most); r.mixed && n > 0 {
				room = r.mix(free, n)
			}
			return n, room
		}}
	for _, s := range c.Steps(now, &plan) {
		step := wire.Step{In: s.In, Workers: s.Workers}
		if r.mixed && s.Workers > 0 {
			step.Room = roomOf(s.Room)
		}
		list = append(list, step)
	}
	return list
}

// free returns in how many milliseconds there will be slots for a worker, the smallest of a job with kinds, as
// far as walltimes tell; 0 = not known.
func (r runnable) free(now time.Time, c *calendar.Calendar, ad *wire.Advertisement) int64 {
	slots := math.MaxInt
	for _, w := range r.needs {
		slots = min(slots, w.Slots)
	}
	at := c.When(slots, func(at time.Time) bool {
		at = timers.Later(at, now)
		return c.Booked() == 0 || r.in(c.Least(now, at, until(at, ad), ad.Job)) > 0
	})
	if at.IsZero() {
		return 0
	}
	return max(1, at.Sub(now).Milliseconds())
}

// expire ends the bookings whose time has passed.
func (c *bookings) expire(now time.Time) {
	if list, news := c.Expire(now); news {
		c.ended, c.moved = append(c.ended, list...), true
	}
}

// unbook ends bookings of a job.
func (c *bookings) unbook(job jobs.ID, which func(*calendar.Booking) bool) {
	if list := c.Unbook(job, which); len(list) > 0 {
		c.ended, c.moved = append(c.ended, list...), true
	}
}

// EndBookingsOf ends all bookings of a job: it has workers here, or has ended.
func (c *bookings) EndBookingsOf(job jobs.ID) {
	c.unbook(job, func(*calendar.Booking) bool { return true })
}

// EndBookings ends all bookings. Their origins learn of it when they confirm them.
func (c *bookings) EndBookings() {
	for _, b := range c.Calendar.Bookings() {
		c.EndBookingsOf(b.Job)
	}
}

// bound ends the bookings that an owner does not keep any more.
func (c *bookings) bound(now time.Time, l *jobs.Limits) {
	for _, b := range c.Calendar.Bookings() {
		if outside(now, l, &b) {
			c.unbook(b.Job, func(o *calendar.Booking) bool { return o.Key == b.Key })
		}
	}
}

// Unwritten ends a booking that could not be written down.
func (c *bookings) Unwritten(b *calendar.Booking) {
	c.unbook(b.Job, func(o *calendar.Booking) bool { return o.Key == b.Key })
}

// Still answers that a booking was made, unless it has ended meanwhile.
func (c *bookings) Still(b *calendar.Booking) wire.Booked {
	if slices.ContainsFunc(c.BookedBy(b.Job), func(o calendar.Booking) bool { return o.Key == b.Key }) {
		return wire.Booked{OK: true}
	}
	return wire.Booked{Reason: notBooked}
}

// Rebook takes a booking of an earlier life of this node.
func (c *bookings) Rebook(now time.Time, b *calendar.Booking) {
	b.Lease = timers.Earlier(b.Lease, now.Add(wire.BookLease)) // the clock may have been wrong
	c.Calendar.Book(*b)
}

// Ended returns the bookings that have ended since the last call.
func (c *bookings) Ended() (list []calendar.Booking) {
	list, c.ended = c.ended, nil
	return list
}

// shown adds what is booked to the jobs that wait, and lists those behind them that have not called for workers of late.
func (c *bookings) shown(now time.Time, list []jobs.Waiting) []jobs.Waiting {
	for _, b := range c.Calendar.Bookings() {
		if b.Over(now) {
			continue
		}
		if !b.To.IsZero() {
			b.To = b.To.Add(-margin)
		}
		booked := &jobs.Booking{From: b.From, To: b.To, Workers: b.Workers, Slots: b.Room.Slots, Confirmed: b.Confirmed}
		i := slices.IndexFunc(list, func(w jobs.Waiting) bool { return w.Job == b.Job })
		if i < 0 {
			i, list = len(list), append(list, jobs.Waiting{Job: b.Job, Origin: b.Job.Origin(), Wanted: b.Workers, Slots: b.Room.Slots / b.Workers})
		}
		if w := &list[i]; w.Booked == nil || b.Confirmed {
			w.Booked = booked
		}
	}
	return list
}
