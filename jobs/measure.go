package jobs

import (
	"context"
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// Measure asks a node for its round trips to others.
type Measure struct {
	Job   ID            `json:"job"` // of the sender
	Nodes []vicinity.ID `json:"nodes"`
}

// Measured answers Measure.
type Measured struct {
	RTT []int64 `json:"rtt"` // microseconds, in the order of the nodes; 0 = no answer in time
}

func (m *Measure) check() error {
	if !m.Job.Valid() || len(m.Nodes) == 0 || len(m.Nodes) > maxMeasured {
		return fmt.Errorf("measure: %w", codec.ErrMalformed)
	}
	for _, id := range m.Nodes {
		if !id.Valid() {
			return fmt.Errorf("measure: node %.40q: %w", id, codec.ErrMalformed)
		}
	}
	return nil
}

// times returns what an answer says of so many nodes; nil if it says nothing of
// use.
func (m *Measured) times(nodes int) []time.Duration {
	if len(m.RTT) != nodes {
		return nil
	}
	out := make([]time.Duration, nodes)
	for i, us := range m.RTT {
		if us > 0 && us <= maxApart.Microseconds() {
			out[i] = time.Duration(us) * time.Microsecond
		}
	}
	return out
}

// microseconds rounds up, so that no bound is met by rounding.
func microseconds(rtt time.Duration) int64 { return (rtt + time.Microsecond - 1).Microseconds() }

// haveMeasured asks a node for its round trips to others.
func (s *Service) haveMeasured(job ID, e doMeasure) {
	ctx, cancel := context.WithTimeout(s.stoppedCtx, measureWait)
	defer cancel()
	var got Measured
	err := s.send(ctx, e.from, pathMeasure, Measure{Job: job, Nodes: e.nodes}, &got)
	if err != nil {
		if !s.running() {
			return
		}
		s.log.Debug().Err(err).Str("node", e.from.Short()).Msg("measure")
	}
	s.post(func() {
		s.core.tell(s.now(), job, func(p *primary) { p.paired(s.now(), e.from, e.nodes, got.times(len(e.nodes))) })
	})
}

// measureReceived measures the round trips to nodes for an origin.
func (s *Service) measureReceived(from vicinity.ID, m *Measure) (any, error) {
	if from != m.Job.Origin() {
		return nil, fmt.Errorf("%w: job %s does not originate at %s", ErrRefused, m.Job, from.Short())
	}
	for _, id := range m.Nodes {
		if s.overlay.Measured(id) == 0 {
			s.overlay.Probe(id)
		}
	}
	out := Measured{RTT: make([]int64, len(m.Nodes))}
	pause := time.NewTicker(measurePause)
	defer pause.Stop()
	for waited := time.Duration(0); ; waited += measurePause {
		missing := 0
		for i, id := range m.Nodes {
			if out.RTT[i] = microseconds(s.overlay.Measured(id)); out.RTT[i] == 0 {
				missing++
			}
		}
		if missing == 0 || waited >= measureTime {
			return out, nil
		}
		select {
		case <-pause.C:
		case <-s.stopped:
			return nil, ErrStopped
		}
	}
}
