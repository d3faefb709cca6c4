package participant

import (
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
)

// checkpoints is what a worker has to do with those of its rank.
type checkpoints struct {
	last    int              // the largest number that the origin knew at the grant
	resume  *jobs.Checkpoint // that it begins with; nil = it begins anew
	made    *jobs.Checkpoint // the newest one that its nodes keep
	known   int              // the largest number that the origin has confirmed
	missing int              // number of the one that it could not begin with
}

// granted takes what the grant says of the checkpoints of a rank.
func (c *checkpoints) granted(list []wire.Resume, rank int) {
	if i := slices.IndexFunc(list, func(r wire.Resume) bool { return r.Rank == rank }); i >= 0 {
		c.last, c.resume = list[i].Last, list[i].From
	}
}

// report is what is to be told of them, nil = nothing.
func (c *checkpoints) report() *wire.CheckpointReport {
	r := wire.CheckpointReport{Missing: c.missing}
	if c.made != nil && c.made.Number > c.known {
		r.Made = c.made
	}
	if r == (wire.CheckpointReport{}) {
		return nil
	}
	return &r
}

// Checkpointed tells that nodes keep a checkpoint of a worker, of which its origin is told. It reports false if
// the worker is not here any more.
func (p *Participant) Checkpointed(now time.Time, id WorkerID, c jobs.Checkpoint) bool {
	w := p.Works[id.Job]
	if w == nil {
		return false
	}
	k := w.find(id.RankAttempt)
	if k == nil {
		return false
	}
	if k.made == nil || k.made.Number < c.Number {
		k.made = &c
		w.tell(now)
	}
	return true
}

// Numbered returns the largest number of the checkpoints of a rank before its worker's own.
func (p *Participant) Numbered(id WorkerID) int {
	if w := p.Works[id.Job]; w != nil {
		if k := w.find(id.RankAttempt); k != nil {
			return k.last
		}
	}
	return 0
}
