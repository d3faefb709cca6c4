// Package hours knows when in a week the owner of a machine lends it.
package hours

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Week is when in a week a machine is lent. The zero value is always open.
//
// It is read off a clock on the wall, that of the location of a time: 19:00 is 19:00 on days of 23 hours, too. What a
// clock never shows that is put forward is left out, and what it shows twice counts twice.
type Week struct{ rules []rule }

// rule is a time of some days that follow each other.
type rule struct {
	first, last int // of the days, from Monday = 0; they may pass the end of the week
	from, to    int // minutes of a day; if to comes before from, it is one of the next day
}

const (
	dayLong  = 24 * 60 // minutes
	weekLong = 7 * dayLong

	maxText  = 512 // bytes
	maxRules = 32
)

var days = [7]string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// IsZero reports whether nobody has said anything.
func (w Week) IsZero() bool { return len(w.rules) == 0 }

// Open reports whether the machine is lent at a time.
func (w Week) Open(t time.Time) bool {
	second, _ := place(t)
	return w.IsZero() || w.has(second/60)
}

// Next returns when that changes next after a time; zero = never.
func (w Week) Next(t time.Time) time.Time {
	bounds := w.bounds()
	if !slices.ContainsFunc(bounds, func(minute int) bool { return !w.has(minute) }) {
		return time.Time{}
	}
	open, most := w.Open(t), t.AddDate(0, 1, 0) // a bound that the clock leaves out is there a week later
	for at := t; at.Before(most); {
		next := after(at, bounds)
		if _, end := at.ZoneBounds(); !end.IsZero() && !end.After(next) {
			next = end // where the clock is set
		}
		if at = next; w.Open(at) != open {
			return at
		}
	}
	return time.Time{}
}

// after returns when a clock that nobody sets shows the next of some minutes of the week, which are in order.
func after(t time.Time, bounds []int) time.Time {
	second, nanos := place(t)
	next := bounds[0]*60 + weekLong*60
	for _, minute := range bounds {
		if minute*60 > second {
			next = minute * 60
			break
		}
	}
	return t.Add(time.Duration(next-second)*time.Second - time.Duration(nanos))
}

// place returns the second of the week that a clock shows.
func place(t time.Time) (second, nanos int) {
	h, m, s := t.Clock()
	return (int(t.Weekday())+6)%7*dayLong*60 + h*3600 + m*60 + s, t.Nanosecond()
}

// has reports whether a minute of the week is lent.
func (w Week) has(minute int) bool {
	day, minute := minute/dayLong, minute%dayLong
	return slices.ContainsFunc(w.rules, func(r rule) bool {
		if r.to > r.from {
			return r.days(day) && r.from <= minute && minute < r.to
		}
		return r.days(day) && r.from <= minute || r.days((day+6)%7) && minute < r.to
	})
}

func (r rule) days(day int) bool {
	if r.first <= r.last {
		return r.first <= day && day <= r.last
	}
	return r.first <= day || day <= r.last
}

// bounds lists the minutes of the week at which anything may change.
func (w Week) bounds() (list []int) {
	for _, r := range w.rules {
		for day := range days {
			if r.days(day) {
				to := day*dayLong + r.to
				if r.to < r.from {
					to += dayLong
				}
				list = append(list, day*dayLong+r.from, to%weekLong)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// String is what Parse reads as the same; "" of the zero value.
func (w Week) String() string {
	var texts []string
	for _, r := range w.rules {
		text := days[r.first][:3]
		switch {
		case r.first == 0 && r.last == 6:
			text = "daily"
		case r.first != r.last:
			text += "-" + days[r.last][:3]
		}
		if r.from != 0 || r.to != dayLong {
			text += fmt.Sprintf(" %s-%s", clock(r.from), clock(r.to))
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

func clock(minute int) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }

// MarshalText implements encoding.TextMarshaler.
func (w Week) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (w *Week) UnmarshalText(text []byte) (err error) {
	if *w = (Week{}); len(text) > 0 {
		*w, err = Parse(string(text))
	}
	return err
}
