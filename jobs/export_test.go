package jobs

import (
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/journal"
)

// Erasing forgets a job in memory, and returns what is to be done on disk.
func (s *Service) Erasing(id ID, remove bool) (steps []func() error) {
	s.call(func() {
		steps = s.eraseSteps([]erasure{s.forget(s.archive.all[id], remove)}, func(error) {})
	})
	return steps
}

// Ended is the journal of a job that ended without a worker.
func Ended(id ID, at time.Time, spec Spec, reason string) []journal.Entry {
	var list []journal.Entry
	for _, ev := range []event{
		{Kind: evSubmitted, At: at, Spec: &spec, Stamp: Stamp(at.UnixMilli() << 16)},
		{Kind: evEnded, At: at, State: Failed, Code: 3, Reason: reason},
	} {
		list = append(list, journal.Entry{Key: string(id), Data: codec.MustMarshal(ev)})
	}
	return list
}
