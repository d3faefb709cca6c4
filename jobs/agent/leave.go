package agent

import (
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
)

// away is how long origins shall wait for this node.
func (s *Service) away() time.Duration {
	return max(min(wire.AwayLease, s.cfg.Workers.NodeLimit), time.Millisecond)
}

// awaitReports waits until all origins have the reports of their workers here: for workers that
// must end first at most StopGrace and twice LeaveWait, for the others at most LeaveWait.
func (s *Service) awaitReports() {
	var waited <-chan time.Time
	limit := time.After(participant.StopGrace + 2*wire.LeaveWait)
	for {
		changed, left, ending := s.unsettled()
		if left == 0 {
			return
		}
		if ending == 0 && waited == nil {
			waited = time.After(wire.LeaveWait)
		}
		select {
		case <-changed:
		case <-waited:
			return
		case <-limit:
			return
		}
	}
}

// unsettled counts the workers of which origins do not know enough, and those
// of them that are about to end. changed is closed when that may be different.
func (s *Service) unsettled() (changed <-chan struct{}, left, ending int) {
	changed = s.loop.Changes()
	s.loop.Call(func() {
		for _, w := range s.core.Part.Works {
			for _, k := range w.Workers {
				if k.Parted {
					continue
				}
				left++
				if !k.Detached && k.State != jobs.WorkerLost && k.State != jobs.WorkerEnded {
					ending++
				}
			}
		}
	})
	return changed, left, ending
}

// logLeftovers logs which workers a stopped node leaves behind.
func (s *Service) logLeftovers() {
	running, ended := s.leftovers()
	switch {
	case running > 0 && s.cfg.Workers.NodeLimit > 0:
		s.log.Info().Msgf("%s on: start the node again within %v, else their jobs count them as lost; without a node they end after %v",
			units.Count(running, "worker goes", "workers go"), s.away(), s.cfg.Workers.NodeLimit)
	case ended > 0:
		s.log.Info().Msgf("%s here: start the node again within %v, else their jobs count them as lost",
			units.Count(ended, "worker has results", "workers have results"), s.away())
	}
}

// leftovers counts the workers that the next run of this node takes up: those that run, and
// those that have ended. The loop has ended.
func (s *Service) leftovers() (running, ended int) {
	for _, w := range s.core.Part.Works {
		for _, k := range w.Workers {
			switch {
			case k.Phase == participant.PhaseStarting && k.State == jobs.WorkerRunning: // it was about to be adopted
				running++
			case !k.Detached || k.Declined || k.State == jobs.WorkerPreparing || k.State == jobs.WorkerReady:
			case k.State == jobs.WorkerRunning && !s.exec.Ended(participant.WorkerID{Job: w.Job, RankAttempt: k.RankAttempt}):
				running++
			default:
				ended++
			}
		}
	}
	return running, ended
}
