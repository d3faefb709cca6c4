package model_test

import (
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/model"
)

// promise gives a job a walltime, mostly, and perhaps a promised start or a deadline.
func (s *storm) promise(node int, spec *jobs.Spec) {
	draw := s.timing
	if !s.books {
		return
	}
	within := func(d time.Duration) time.Duration { return time.Duration(draw.Int64N(int64(d))) }
	if spec.Walltime == 0 && draw.Float64() < 0.75 {
		spec.Walltime = codec.Duration(5*time.Second + within([]time.Duration{4 * time.Second, 20 * time.Second, time.Minute}[draw.IntN(3)]).Truncate(time.Millisecond))
	}
	if draw.Float64() < 0.4 {
		spec.Search.After(max(0, within(30*time.Second)-10*time.Second))
	}
	if draw.Float64() < 0.1 {
		spec.Search.Deadline = s.Local(node).Add(2*time.Second + time.Duration(spec.Walltime) + within(2*time.Minute)).Truncate(time.Millisecond)
	}
}

// cancelBooked cancels jobs whose start is promised, now and then.
func (s *storm) cancelBooked() {
	if !s.books {
		return
	}
	s.net.Schedule(time.Duration(s.timing.Int64N(int64(20*time.Second))), func() {
		if s.net.Elapsed() >= s.length {
			return
		}
		for _, node := range s.Alive() {
			list := slices.DeleteFunc(s.Jobs(node).Jobs(), func(id jobs.ID) bool { return s.Jobs(node).Core().Jobs[id].Primary.Rec.Booking == nil })
			if len(list) > 0 && s.timing.Float64() < 0.3 {
				s.cancel(node, list[s.timing.IntN(len(list))])
				break
			}
		}
		s.cancelBooked()
	})
}

// nothingBooked reports whether no node has a booking, in memory or on disk.
func (s *storm) nothingBooked() bool {
	return !slices.ContainsFunc(s.Alive(), func(i int) bool { return s.Jobs(i).Booked() > 0 })
}

func (s *storm) leftBooked() {
	for _, i := range s.Alive() {
		if n := s.Jobs(i).Booked(); n > 0 {
			s.audit.Fail("", "node %s has %d bookings of jobs that have ended", s.net.ID(i).Short(), n)
		}
	}
}

// promiseSum adds up what became of promised starts in storms.
type promiseSum struct{ one, all chan model.Promises }

func sumPromises() promiseSum {
	c := promiseSum{make(chan model.Promises), make(chan model.Promises, 1)}
	go func() {
		var sum model.Promises
		for p := range c.one {
			sum.Add(p)
		}
		c.all <- sum
	}()
	return c
}
