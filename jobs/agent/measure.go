package agent

import (
	"context"
	"fmt"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// haveMeasured asks a node for its round trips to others.
func (s *Service) haveMeasured(job jobs.ID, e primary.DoMeasure) {
	ctx, cancel := context.WithTimeout(s.loop.Stopped, wire.MeasureWait)
	defer cancel()
	var got wire.Measured
	err := s.peers.Send(ctx, e.From, peer.PathMeasure, wire.Measure{Job: job, Nodes: e.Nodes}, &got)
	if err != nil {
		if s.loop.Stopped.Err() != nil {
			return
		}
		s.log.Debug().Err(err).Str("node", e.From.Short()).Msg("measure")
	}
	s.loop.Post(func() {
		s.core.Update(time.Now(), job, func(p *primary.Primary) { p.Paired(time.Now(), e.From, e.Nodes, got.Times(len(e.Nodes))) })
	})
}

// measureReceived measures the round trips to nodes for an origin that have not been measured
// of late. An old one counts where a new one is not to be had in time.
func (s *Service) measureReceived(from vicinity.ID, m *wire.Measure) (any, error) {
	if from != m.Job.Origin() {
		return nil, fmt.Errorf("%w: job %s does not originate at %s", jobs.ErrRefused, m.Job, from.Short())
	}
	for _, id := range m.Nodes {
		if s.overlay.Measured(id, search.FreshFor) == 0 {
			s.overlay.Probe(id)
		}
	}
	out := wire.Measured{RTT: make([]int64, len(m.Nodes))}
	pause := time.NewTicker(wire.MeasurePause)
	defer pause.Stop()
	for waited := time.Duration(0); ; waited += wire.MeasurePause {
		missing := 0
		for i, id := range m.Nodes {
			rtt := s.overlay.Measured(id, search.FreshFor)
			if rtt == 0 {
				missing++
				rtt = s.overlay.Measured(id, 0)
			}
			out.RTT[i] = wire.Microseconds(rtt)
		}
		if missing == 0 || waited >= wire.MeasureTime {
			return out, nil
		}
		select {
		case <-pause.C:
		case <-s.loop.Stopped.Done():
			return nil, jobs.ErrStopped
		}
	}
}
