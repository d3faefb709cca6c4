package claims

import (
	"maps"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
)

// void is a hold that this node has ended.
type void struct {
	key   uint64
	why   string
	until time.Time // when no grant of it can come any more, see wire.GrantWithin
}

// voids are remembered for as long as grants may come, so that their origins learn why these
// are refused.
type voids map[jobs.ID]void

// end ends a hold.
func (v voids) end(now time.Time, holds map[jobs.ID]*Hold, job jobs.ID, why string) {
	if h := holds[job]; h != nil && len(v) < maxHolds {
		v[job] = void{h.key, why, now.Add(wire.HoldLease + wire.PartLease)}
	}
	delete(holds, job)
}

// endAll ends all holds.
func (v voids) endAll(now time.Time, holds map[jobs.ID]*Hold, why string) {
	for job := range holds {
		v.end(now, holds, job, why)
	}
}

// why returns why nothing is held for a job under a key.
func (v voids) why(job jobs.ID, key uint64) string {
	if ended, ok := v[job]; ok && ended.key == key {
		return ended.why
	}
	return wire.ReasonUnknown
}

// expire forgets what no grant can come for any more.
func (v voids) expire(now time.Time) {
	maps.DeleteFunc(v, func(_ jobs.ID, ended void) bool { return !now.Before(ended.until) })
}
