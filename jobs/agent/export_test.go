package agent

import (
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/journal"
)

// Erasing forgets a job in memory, and returns what is to be done on disk.
func (s *Service) Erasing(id jobs.ID, remove bool) (steps []func() error) {
	return s.own.Erasing(id, remove)
}

// Ended is the journal of a job that ended without a worker.
func Ended(id jobs.ID, at time.Time, spec jobs.Spec, reason string) []journal.Entry {
	var list []journal.Entry
	for _, ev := range []record.Event{
		{Kind: record.Submitted, At: at, Spec: &spec, Stamp: jobs.Stamp(at.UnixMilli() << 16)},
		{Kind: record.Ended, At: at, State: jobs.Failed, Code: 3, Reason: reason},
	} {
		list = append(list, journal.Entry{Key: string(id), Data: codec.MustMarshal(ev)})
	}
	return list
}
