package agent

import (
	"time"

	"zorilla/jobs"
)

// diskEvery is how often the free disk space is looked at.
const diskEvery = 10 * time.Second

// Limits returns what the owner allows now.
func (s *Service) Limits() (l jobs.Limits) {
	s.loop.Call(func() { l = s.core.Claims.Limits })
	return l
}

// SetLimits tells what the owner allows from now on; they must be valid. When
// it returns, nothing beyond them is offered or accepted. Workers that are here
// go on.
func (s *Service) SetLimits(l jobs.Limits) {
	s.loop.Call(func() {
		s.core.Limit(l)
	})
	s.loop.Notify()
}

// Queue lists the jobs that wait for room at this node, in the order in which
// they get it.
func (s *Service) Queue() (list []jobs.Waiting) {
	s.loop.Call(func() { list = s.core.Claims.Waiting(time.Now()) })
	return list
}

// watchDisk keeps an eye on the free disk space until the node leaves.
func (s *Service) watchDisk() {
	tick := time.NewTicker(diskEvery)
	defer tick.Stop()
	for {
		if free, err := s.cfg.FreeDisk(); err == nil {
			s.loop.Post(func() {
				s.core.Claims.Measured(free)
				s.core.Claims.Loose = true
			})
		}
		select {
		case <-tick.C:
		case <-s.loop.Leaving.Done():
			return
		}
	}
}
