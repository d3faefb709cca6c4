package jobs

import (
	"time"

	"zorilla/internal/units"
)

const (
	// leaveWait is how long a leaving node tries to tell the origins of its
	// workers.
	leaveWait = 3 * time.Second
	// awayLease is how long origins are asked to wait for this node after it
	// was stopped: enough for another program, or another kernel.
	awayLease = 2 * time.Minute
	// leastNodeLimit is for workers that end with their node: it must have the
	// time to connect to them.
	leastNodeLimit = 2 * time.Second
)

// away is how long origins shall wait for this node.
func (s *Service) away() time.Duration { return max(min(awayLease, s.cfg.NodeLimit), time.Millisecond) }

// settle waits until all origins know what becomes of their workers here; for
// those that must end first at most so long, and for the others at most a
// little.
func (s *Service) settle() {
	var told <-chan time.Time
	limit := time.After(stopGrace + 2*leaveWait)
	for {
		changed, left, ending := s.unsettled()
		if left == 0 {
			return
		}
		if ending == 0 && told == nil {
			told = time.After(leaveWait)
		}
		select {
		case <-changed:
		case <-told:
			return
		case <-limit:
			return
		}
	}
}

// unsettled counts the workers of which origins do not know enough, and those
// of them that are about to end. changed is closed when that may be different.
func (s *Service) unsettled() (changed <-chan struct{}, left, ending int) {
	changed = s.Changes()
	s.call(func() {
		for _, w := range s.core.part.works {
			for _, k := range w.workers {
				if k.parted {
					continue
				}
				left++
				if !k.away && k.state != WorkerLost && k.state != WorkerEnded {
					ending++
				}
			}
		}
	})
	return changed, left, ending
}

// bequeath says what a stopped node leaves behind.
func (s *Service) bequeath() {
	running, ended := s.leftovers()
	switch {
	case running > 0 && s.cfg.NodeLimit > 0:
		s.log.Info().Msgf("%s on: start the node again within %v, else their jobs count them as lost; without a node they end after %v",
			units.Count(running, "worker goes", "workers go"), s.away(), s.cfg.NodeLimit)
	case ended > 0:
		s.log.Info().Msgf("%s here: start the node again within %v, else their jobs count them as lost",
			units.Count(ended, "worker has results", "workers have results"), s.away())
	}
}

// leftovers counts the workers of which something is left to the next life of
// this node: those that run, and those that have ended. The loop has ended.
func (s *Service) leftovers() (running, ended int) {
	for _, w := range s.core.part.works {
		for _, k := range w.workers {
			switch {
			case k.phase == phaseStarting && k.state == WorkerRunning: // it was about to be adopted
				running++
			case !k.away || k.declined || k.state == WorkerPreparing || k.state == WorkerReady:
			case k.state == WorkerRunning && !s.exec.ended(workerID{w.job, k.RankAttempt}):
				running++
			default:
				ended++
			}
		}
	}
	return running, ended
}
