package record

import (
	"slices"

	"zorilla/jobs"
)

// CountsOutput reports whether the output of an attempt is told to users.
func (r *Record) CountsOutput(ra jobs.RankAttempt) bool {
	return r.Tasks != nil || ra.Rank < len(r.Ranks) && r.Ranks[ra.Rank].Attempt == ra.Attempt ||
		slices.ContainsFunc(r.Kept, func(k Kept) bool { return k.RankAttempt == ra })
}

// KnowsOutput reports whether it is known how much a worker wrote, or all of them
// (-1): then nothing can be missing without a name.
func (r *Record) KnowsOutput(worker int) bool {
	for i := range r.Ranks {
		if k := &r.Ranks[i]; (worker < 0 || i == worker) && k.Attempt > 0 && k.Wrote == nil {
			return false
		}
	}
	return r.Tasks == nil
}
