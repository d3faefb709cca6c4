package record

import (
	"time"

	"zorilla/jobs"
	"zorilla/vicinity"
)

// InTable reports whether a rank is in the job's table: it was started, and was
// not lost, taken back or given back since. One that has ended stays, so that the
// end of a job is no change.
func (k *Rank) InTable() bool {
	return (k.State == jobs.WorkerRunning || k.State == jobs.WorkerEnded) && !k.GivenBack
}

// turn begins an epoch if the event, which is not applied yet, changes the
// table.
func (r *Record) turn(ev Event) {
	switch ev.Kind {
	case Started, Lost, Retried, Declined, Moved, Resized:
	default:
		return
	}
	for _, ra := range ev.Ranks {
		if r.Owns(ra) && r.Ranks[ra.Rank].InTable() == (ev.Kind != Started) {
			r.Epoch++
			return
		}
	}
}

// expected adds a node to those that are being started again.
func expected(away map[vicinity.ID]time.Time, ev Event) map[vicinity.ID]time.Time {
	if away == nil {
		away = map[vicinity.ID]time.Time{}
	}
	away[ev.Node] = ev.At.Add(time.Duration(ev.For))
	return away
}
