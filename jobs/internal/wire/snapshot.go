package wire

import (
	"fmt"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/transfer"
)

// Snapshot asks what files a worker has made until now.
type Snapshot struct {
	Job jobs.ID `json:"job"`
	// RankAttempt is a worker at the node that is asked; with attempt 0 it is a rank, and the
	// job's origin is asked.
	jobs.RankAttempt
	Globs []string `json:"globs"` // of output files
}

// Check refuses what no honest node sends.
func (s *Snapshot) Check() error {
	if !s.Job.Valid() || s.Rank < 0 || s.Rank >= jobs.MaxRanks || s.Attempt < 0 || len(s.Globs) == 0 || len(s.Globs) > jobs.MaxGlobs {
		return fmt.Errorf("snapshot: %w", codec.ErrMalformed)
	}
	for _, glob := range s.Globs {
		if err := transfer.CheckPattern(glob); err != nil || len(glob) > transfer.MaxPath {
			return fmt.Errorf("snapshot: %w: a pattern", codec.ErrMalformed)
		}
	}
	return nil
}
