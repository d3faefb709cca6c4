package agent

import (
	"time"

	"zorilla/jobs"
	"zorilla/jobs/disk"
	"zorilla/vicinity"
)

const (
	// diskEvery is how often is looked whether workers run, whose disk needs an eye.
	diskEvery = time.Second
	// diskSeldom is how often all hear of the free disk space.
	diskSeldom = 10 * time.Second
)

// Limits returns what the owner allows now.
func (s *Service) Limits() (l jobs.Limits) {
	s.loop.Call(func() { l = s.core.Claims.Limits })
	return l
}

// SetLimits reports what the owner allows from now on; they must be valid. When
// it returns, nothing beyond them is offered or accepted. Workers that are here
// go on.
func (s *Service) SetLimits(l jobs.Limits) {
	s.loop.Call(func() {
		s.core.Limit(l)
	})
	s.loop.Notify()
}

// Shut reports whether it is outside of the owner's hours, and until when.
func (s *Service) Shut() (shut bool, until time.Time) {
	s.loop.Call(func() { shut, until = s.core.Claims.Shut(time.Now()) })
	return shut, until
}

// Describe says what this node is like from now on, for conditions of jobs; its ID, slots,
// memory and GPUs stay.
func (s *Service) Describe(self vicinity.Member) {
	s.loop.Call(func() { s.core.Claims.Describe(self) })
	s.loop.Notify()
}

// Queue lists the jobs that wait for room at this node, in the order in which
// they get it.
func (s *Service) Queue() (list []jobs.Waiting) {
	s.loop.Call(func() { list = s.core.Claims.Waiting(time.Now()) })
	return list
}

// watchDisk keeps an eye on the free disk space until the node leaves, and has workers
// make room if too little is left.
func (s *Service) watchDisk() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var told time.Time
	short := false
	for {
		select {
		case <-timer.C:
		case <-s.exec.Began: // what it writes at once must not wait
		case <-s.loop.Leaving.Done():
			return
		}
		wait := diskEvery
		if due := short || time.Since(told) >= diskSeldom; due || s.exec.Busy() {
			if due {
				told = time.Now()
			}
			short, wait = lookAtDisk(s, due)
		}
		timer.Reset(wait)
	}
}

// lookAtDisk reports whether too little disk space is left, after it has had a worker make
// room, and when to look again. What is free is told if that is wanted.
func lookAtDisk(s *Service, tell bool) (short bool, again time.Duration) {
	free, err := s.cfg.Disk.Free()
	if err != nil {
		return false, diskEvery
	}
	short = free < s.cfg.Workers.KeepFree
	if short || tell {
		s.loop.Post(func() {
			s.core.Claims.Measured(free)
			s.core.Claims.Loose = true
		})
	}
	if short {
		s.exec.MakeRoom()
		return true, diskEvery
	}
	return false, disk.Soon(free - s.cfg.Workers.KeepFree)
}
