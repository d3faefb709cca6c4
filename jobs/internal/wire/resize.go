package wire

import (
	"fmt"

	"zorilla/internal/codec"
	"zorilla/jobs"
)

// Resize asks a job's origin for another number of workers, for one of its workers or for
// a user; or for other nodes for some of them, for a user.
type Resize struct {
	Job jobs.ID `json:"job"`
	// By is the worker that asks, at the node that sends this; attempt 0 = none does.
	By jobs.RankAttempt `json:"by"`
	jobs.Resize
}

// Check refuses what no honest node sends.
func (r *Resize) Check() error {
	if !r.Job.Valid() {
		return fmt.Errorf("resize: %w", codec.ErrMalformed)
	}
	if r.By != (jobs.RankAttempt{}) {
		if err := CheckRanks([]jobs.RankAttempt{r.By}); err != nil {
			return err
		}
	}
	for _, m := range r.Move {
		if r.By.Attempt > 0 || m.To != "" && !m.To.Valid() {
			return fmt.Errorf("move: %w", codec.ErrMalformed)
		}
	}
	return r.Resize.Check()
}
