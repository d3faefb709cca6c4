package claims

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/hours"
	"zorilla/jobs/internal/calendar"
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
func (s *shift) turn(now time.Time, week hours.Week) (begun, ended bool) {
	was := s.shut
	if now.Before(s.look) || week.IsZero() && !was {
		return false, false
	}
	*s = shift{shut: !week.Open(now), look: now.Add(lookAgain)}
	if next := week.Next(now); !next.IsZero() {
		s.ends = now.Add(next.Sub(now))
		s.look = timers.Earlier(s.look, s.ends)
	}
	return was && !s.shut, s.shut && !was
}

// lookAt is when turn has something to do; zero = never.
func (s *shift) lookAt(week hours.Week) time.Time {
	switch {
	case week.IsZero() && !s.shut:
		return time.Time{}
	case s.look.IsZero():
		return time.Unix(0, 0)
	}
	return s.look
}

// tooShort reports whether the machine is to be free before workers of a job may have ended.
func (s *shift) tooShort(now time.Time, l *jobs.Limits, ad *wire.Advertisement) bool {
	need := lastOffers
	if ad.Length > 0 {
		need = time.Duration(ad.Length) * time.Millisecond
	}
	return l.AfterHours == jobs.HoursEnd && !s.ends.IsZero() && now.Add(need).After(s.ends)
}

// maxShut bounds for how many times outside of the owner's hours is looked ahead: two weeks of nights and lunches.
const maxShut = 32

// spans lists when workers may not begin that run for so long, 0 = nobody knows: outside of the owner's hours and, if
// they would be ended then, so long before.
func spans(now time.Time, l *jobs.Limits, length time.Duration) (list []calendar.Span) {
	need := time.Duration(0)
	if l.AfterHours == jobs.HoursEnd {
		need = cmp.Or(length, lastOffers)
	}
	at := now
	for range maxShut {
		end := at
		if l.Hours.Open(at) {
			if end = l.Hours.Next(at); end.IsZero() {
				return list
			}
		}
		open := l.Hours.Next(end)
		if open.IsZero() {
			open = end.AddDate(10, 0, 0)
		}
		list = append(list, calendar.Span{From: now.Add(end.Sub(now) - need), To: now.Add(open.Sub(now))})
		at = open
	}
	return list
}

// outside reports whether a booking begins outside of the owner's hours, or would be ended with them.
func outside(now time.Time, l *jobs.Limits, b *calendar.Booking) bool {
	length := time.Duration(0)
	if !b.To.IsZero() {
		length = b.To.Sub(b.From) - margin
	}
	return slices.ContainsFunc(spans(now, l, length), func(s calendar.Span) bool { return !b.From.Before(s.From) && b.From.Before(s.To) })
}

// Shut reports whether it is outside of the owner's hours, and when that changes; zero = never.
func (c *Claims) Shut(now time.Time) (shut bool, until time.Time) {
	c.expire(now)
	return c.shift.shut, c.shift.ends
}

// tooLong says that the owner does not let workers, or tasks, run as long as a job wants, or "".
func tooLong(l *jobs.Limits, ad *wire.Advertisement) string {
	if most := l.MaxWalltime.Std(); most > 0 && max(ad.Length, ad.Each) > most.Milliseconds() {
		return fmt.Sprintf("%s %v", wire.ReasonWalltime, most)
	}
	return ""
}
