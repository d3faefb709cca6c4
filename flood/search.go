package flood

import "time"

// Schedule says how a search grows. Zero fields mean the default.
type Schedule struct {
	First     time.Duration // wait after the first flood; 1s
	Factor    float64       // each wait is so much longer than the one before; 2
	Max       time.Duration // longest wait; 1min
	MaxRadius int           // MaxRadius
	Radius    int           // of the first flood; the logarithm
}

// patience is how many floods a search makes at a radius that reached nobody
// new before it tries one hop more all the same: answers may have been lost,
// and nodes that left may hide that others were reached.
const patience = 4

// Search decides when to flood for workers and how far: the radius starts at
// the decimal logarithm of what is wanted and grows by one hop per flood; the
// wait between floods starts at Schedule.First and doubles. It is a plain
// value: copy it to save it. The usual round is
//
//	if radius, due := s.Next(now); due { start a flood; s.Flooded(now) }
//	on each answer: s.Heard(distinct nodes that answered this flood)
//	if workers are lost: s.Reset(now)
//	sleep until s.Wake(), unless there are enough offers
type Search struct {
	schedule Schedule
	first    int // radius

	rounds int
	radius int       // of the last flood
	last   time.Time // of the last flood
	wake   time.Time
	off    time.Time     // the next flood is put off until then; zero = it is not
	wait   time.Duration // after the next flood
	repeat bool          // the next flood has the radius of the last

	heard int // nodes that answered the last flood
	less  int // nodes that answered the last flood with a smaller radius
	held  int // floods for which the radius has not grown
}

// NewSearch returns a search for so many workers, due at once.
func NewSearch(s Schedule, wanted int) Search {
	if s.First <= 0 {
		s.First = time.Second
	}
	if s.Factor == 0 {
		s.Factor = 2
	}
	s.Factor = max(1, s.Factor)
	if s.Max <= 0 {
		s.Max = time.Minute
	}
	s.Max = max(s.Max, s.First)
	if s.MaxRadius <= 0 || s.MaxRadius > MaxRadius {
		s.MaxRadius = MaxRadius
	}
	radius := 0
	for ; wanted >= 10; wanted /= 10 {
		radius++
	}
	if s.Radius > 0 {
		radius = s.Radius
	}
	return Search{schedule: s, first: min(max(1, radius), s.MaxRadius), wait: s.First, less: -1}
}

// Next returns the radius of the next flood and whether it is due. The caller
// floods and then calls Flooded.
func (s *Search) Next(now time.Time) (radius int, due bool) {
	due = !now.Before(s.Wake())
	switch {
	case s.rounds == 0:
		return s.first, due
	case s.repeat || s.full() && s.held < patience:
		return s.radius, due
	}
	return min(s.radius+1, s.schedule.MaxRadius), due
}

// full reports whether the last flood reached no more nodes than one with a
// smaller radius did: then it reached the whole network.
func (s *Search) full() bool { return s.less >= 0 && s.heard <= s.less }

// Flooded tells that the flood that Next asked for has been started.
func (s *Search) Flooded(now time.Time) {
	radius, _ := s.Next(now)
	if s.rounds > 0 && radius > s.radius {
		s.less, s.held = s.heard, 0
	} else if s.full() {
		s.held++
	}
	s.rounds++
	s.radius, s.last, s.heard = radius, now, 0
	s.repeat = false
	s.wake, s.off = now.Add(s.wait), time.Time{}
	s.wait = time.Duration(min(float64(s.schedule.Max), float64(s.wait)*s.schedule.Factor))
}

// Heard reports how many distinct nodes have answered the last flood so far,
// with an offer or without.
func (s *Search) Heard(nodes int) { s.heard = max(s.heard, nodes) }

// Reset starts the timer anew because workers were lost. The next flood has the radius of the last one, and is due now, but not sooner
// than Schedule.First after the last: many losses in a row make one flood.
func (s *Search) Reset(now time.Time) {
	s.wait, s.off = s.schedule.First, time.Time{}
	s.less, s.held = -1, 0
	if s.rounds > 0 {
		s.repeat = true
		s.wake = s.last.Add(s.schedule.First)
		if s.wake.Before(now) {
			s.wake = now
		}
	}
}

// Wake returns when the next flood is due. A time in the past, or zero, means
// at once.
func (s *Search) Wake() time.Time {
	if s.off.After(s.wake) {
		return s.off
	}
	return s.wake
}

// PutOff has the next flood wait until a time, if it would be due before; zero = no longer.
func (s *Search) PutOff(until time.Time) { s.off = until }

// IsOff reports whether the next flood was put off.
func (s *Search) IsOff() bool { return !s.off.IsZero() }

// First returns the radius of the first flood.
func (s *Search) First() int { return s.first }
