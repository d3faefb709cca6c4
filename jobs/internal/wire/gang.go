package wire

import (
	"fmt"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/pmi"
)

// Gang names one start of a job whose ranks are one parallel program: the nodes that run
// them stay in touch (package gang).
type Gang struct {
	Job     jobs.ID `json:"job"`
	Replica int     `json:"replica,omitempty"`
	Epoch   int64   `json:"epoch"` // of its START
}

type (
	// Beat is a sign of life of a node to the one of rank 0, and what its ranks wait for.
	Beat struct {
		Gang
		Sent   int64 `json:"sent,omitempty"`   // when, in nanoseconds of the sender's clock: the latest counts
		Passed int   `json:"passed,omitempty"` // the last barrier that its ranks have passed
		// Waits is the barrier that all of its ranks wait at, with what they have put;
		// 0 = not all do.
		Waits int       `json:"waits,omitempty"`
		Puts  []pmi.Put `json:"puts,omitempty"`
		Done  bool      `json:"done,omitempty"` // all of its ranks have ended
		Lost  string    `json:"lost,omitempty"` // why the gang cannot go on
		// Failed: because a rank has failed, of which the origin of the job hears: the others
		// end as if it had stopped them.
		Failed bool `json:"failed,omitempty"`
	}

	// BeatAnswer answers it, at once if there is something to tell.
	BeatAnswer struct {
		Passed int       `json:"passed,omitempty"` // all ranks may pass this barrier
		Puts   []pmi.Put `json:"puts,omitempty"`   // what all of them have put before it, if the node has not passed it
		Lost   string    `json:"lost,omitempty"`   // why the gang cannot go on
		Failed bool      `json:"failed,omitempty"` // as in a beat
		// Gone: the node has no ranks of the gang any more, nor knows of it, since it was started
		// again after they had ended.
		Gone bool `json:"gone,omitempty"`
	}
)

// MaxWhy bounds, in bytes, why a gang is lost.
const MaxWhy = 500

// Check refuses what no node sends.
func (b *Beat) Check() error {
	if err := checkGang(b.Job, b.Epoch, b.Replica); err != nil {
		return err
	}
	if b.Passed < 0 || b.Passed > pmi.MaxBarriers || b.Waits != 0 && b.Waits != b.Passed+1 || b.Waits == 0 && len(b.Puts) > 0 || len(b.Lost) > MaxWhy {
		return fmt.Errorf("barrier %d after %d, %d puts: %w", b.Waits, b.Passed, len(b.Puts), codec.ErrMalformed)
	}
	return pmi.CheckPuts(b.Puts)
}

// Check refuses what no node answers.
func (a *BeatAnswer) Check() error {
	if a.Passed < 0 || a.Passed > pmi.MaxBarriers || len(a.Lost) > MaxWhy {
		return fmt.Errorf("barrier %d: %w", a.Passed, codec.ErrMalformed)
	}
	return pmi.CheckPuts(a.Puts)
}

func checkGang(job jobs.ID, epoch int64, replica int) error {
	if !job.Valid() || epoch < 1 || replica < 0 || replica >= jobs.MaxRanks {
		return fmt.Errorf("job %.80q, copy %d, epoch %d: %w", job, replica, epoch, codec.ErrMalformed)
	}
	return nil
}
