package claims

import (
	"fmt"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
)

// shift is what the owner's hours say now.
type shift struct {
	shut bool      // nothing is offered
	ends time.Time // when that changes; zero = never
	look time.Time // when the clock is to be looked at again; zero = now, if there are hours
}

const (
	// lookAgain is how soon is noticed that somebody has set the clock.
	lookAgain = time.Minute
	// HoursNotice is the most that a program hears before its owner's hours end, if it is ended then.
	HoursNotice = 5 * time.Minute
	// lastOffers is how long before that nothing is offered to jobs that do not say how long their workers run: one
	// that wants notice would hear of its end at once.
	lastOffers = HoursNotice + 10*time.Second
)

// turn looks whether the owner's hours have begun or ended.
func (c *Claims) turn(now time.Time) {
	week, was := c.Limits.Hours, c.shift.shut
	if now.Before(c.shift.look) || week.IsZero() && !was {
		return
	}
	c.shift = shift{shut: !week.Open(now), look: now.Add(lookAgain)}
	if next := week.Next(now); !next.IsZero() {
		c.shift.ends = now.Add(next.Sub(now))
		c.shift.look = timers.Earlier(c.shift.look, c.shift.ends)
	}
	switch {
	case c.shift.shut && !was:
		c.voids.endAll(now, c.Holds, wire.ReasonHours)
	case was && !c.shift.shut:
		c.wakeQueue()
		c.Loose = true
	}
}

// lookAt is when turn has something to do; zero = never.
func (c *Claims) lookAt() time.Time {
	if c.Limits.Hours.IsZero() && !c.shift.shut {
		return time.Time{}
	}
	if c.shift.look.IsZero() {
		return time.Unix(0, 0)
	}
	return c.shift.look
}

// Shut reports whether it is outside of the owner's hours, and when that changes; zero = never.
func (c *Claims) Shut(now time.Time) (shut bool, until time.Time) {
	c.expire(now)
	return c.shift.shut, c.shift.ends
}

// idleFor says why nothing is offered to a job now, whatever room there is, or "".
func (c *Claims) idleFor(ad *wire.Advertisement) string {
	if why := c.idle(); why != "" || c.Limits.AfterHours != jobs.HoursEnd || c.shift.ends.IsZero() {
		return why
	}
	need := lastOffers
	if ad.Length > 0 {
		need = time.Duration(ad.Length) * time.Millisecond
	}
	if c.at.Add(need).After(c.shift.ends) {
		return wire.ReasonHoursSoon
	}
	return ""
}

// tooLong says that the owner does not let workers, or tasks, run as long as a job wants, or "".
func tooLong(l *jobs.Limits, ad *wire.Advertisement) string {
	if most := l.MaxWalltime.Std(); most > 0 && max(ad.Length, ad.Each) > most.Milliseconds() {
		return fmt.Sprintf("%s %v", wire.ReasonWalltime, most)
	}
	return ""
}
