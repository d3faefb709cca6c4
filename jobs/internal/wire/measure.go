package wire

import (
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/vicinity"
)

// Measure asks a node for its round trips to others.
type Measure struct {
	Job   jobs.ID       `json:"job"` // of the sender
	Nodes []vicinity.ID `json:"nodes"`
}

// Measured answers Measure.
type Measured struct {
	RTT []int64 `json:"rtt"` // microseconds, in the order of the nodes; 0 = no answer in time
}

// MaxMeasured bounds one request.
const MaxMeasured = 256

// Check refuses what no honest node sends.
func (m *Measure) Check() error {
	if !m.Job.Valid() || len(m.Nodes) == 0 || len(m.Nodes) > MaxMeasured {
		return fmt.Errorf("measure: %w", codec.ErrMalformed)
	}
	for _, id := range m.Nodes {
		if !id.Valid() {
			return fmt.Errorf("measure: node %.40q: %w", id, codec.ErrMalformed)
		}
	}
	return nil
}

// Times returns what an answer says of so many nodes; nil if it says nothing of
// use.
func (m *Measured) Times(nodes int) []time.Duration {
	if len(m.RTT) != nodes {
		return nil
	}
	out := make([]time.Duration, nodes)
	for i, us := range m.RTT {
		if us > 0 && us <= jobs.MaxApart.Microseconds() {
			out[i] = time.Duration(us) * time.Microsecond
		}
	}
	return out
}

// Microseconds rounds up, so that no bound is met by rounding.
func Microseconds(rtt time.Duration) int64 { return (rtt + time.Microsecond - 1).Microseconds() }
