package jobs

import "time"

// diskEvery is how often the free disk space is looked at.
const diskEvery = 10 * time.Second

// Limits returns what the owner allows now.
func (s *Service) Limits() (l Limits) {
	s.call(func() { l = s.core.claims.limits })
	return l
}

// SetLimits tells what the owner allows from now on; they must be valid. When
// it returns, nothing beyond them is offered or accepted. Workers that are here
// go on.
func (s *Service) SetLimits(l Limits) {
	s.call(func() {
		s.core.limit(l)
	})
	s.notify()
}

// Queue lists the jobs that wait for room at this node, in the order in which
// they get it.
func (s *Service) Queue() (list []Waiting) {
	s.call(func() { list = s.core.claims.waiting(s.now()) })
	return list
}

// watchDisk keeps an eye on the free disk space until the node leaves.
func (s *Service) watchDisk() {
	tick := time.NewTicker(diskEvery)
	defer tick.Stop()
	for {
		if free, err := s.cfg.FreeDisk(); err == nil {
			s.post(func() {
				s.core.claims.measured(free)
				s.core.claims.loose = true
			})
		}
		select {
		case <-tick.C:
		case <-s.leaving:
			return
		}
	}
}
