package model_test

import (
	"math/rand/v2"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/hours"
)

// lend has owners change when, and for how long, they lend their machines. It is drawn apart, so that storms without
// are what they were.
func (s *storm) lend() {
	rnd := rand.New(rand.NewPCG(s.seed, 8))
	if s.gentle || rnd.Float64() >= 0.3 {
		return
	}
	upTo := func(d time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(d))) }
	s.strike(5*time.Second+upTo(20*time.Second), func(node int) {
		var l jobs.TimeLimits
		if begin := s.Local(node).Add(upTo(12*time.Minute) - 10*time.Minute); rnd.Float64() < 0.8 {
			end := begin.Add(time.Minute + upTo(15*time.Minute))
			week, err := hours.Parse(begin.Format("Mon 15:04-") + end.Format("15:04"))
			if err != nil {
				s.audit.Fail("", "hours of node %d: %v", node, err)
			}
			l.Hours = week
		}
		if rnd.Float64() < 0.5 {
			l.AfterHours = jobs.HoursEnd
		}
		if rnd.Float64() < 0.3 {
			l.MaxWalltime = codec.Duration(time.Second + upTo(20*time.Second))
		}
		s.limit(node, jobs.Limits{TimeLimits: l})
	})
}
