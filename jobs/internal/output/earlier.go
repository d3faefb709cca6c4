package output

import (
	"maps"
	"slices"

	"zorilla/jobs/internal/record"
)

// Earlier lists the attempts of ranks, before those that count, of which there is output. What
// tasks wrote counts whichever attempt of a rank ran them.
func (w *File) Earlier(rec *record.Record) []int {
	if rec.Tasks != nil || !slices.ContainsFunc(rec.Ranks, func(k record.Rank) bool { return k.Attempt > 1 }) {
		return nil
	}
	found := map[int]bool{}
	for ra, got := range w.all() {
		if got.Stdout+got.Stderr > 0 && !rec.CountsOutput(ra) {
			found[ra.Attempt] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
