package wire

import "zorilla/jobs"

// Spares are claims of a node without workers, for ranks of a job that may be lost.
type Spares struct {
	Key     uint64 `json:"key"` // of the hold that they were, which a grant names
	Workers int    `json:"workers"`
	Ready   bool   `json:"ready,omitempty"` // the job's inputs are there
}

func badSpares(n int) bool { return n < 0 || n > jobs.MaxRanks }

func (s *Spares) bad() bool { return s != nil && (s.Key == 0 || s.Workers < 1 || badSpares(s.Workers)) }
