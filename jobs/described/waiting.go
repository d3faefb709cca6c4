package described

import (
	"fmt"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
)

// Waiting says why a job waits at a node, and what it has been promised there, in the time zone of a moment.
func Waiting(w *jobs.Waiting, zone *time.Location) string {
	text := w.Reason
	switch {
	case text != "":
	case w.Since.IsZero():
		text = "did not ask of late"
	default:
		text = "offered"
	}
	b := w.Booked
	if b == nil {
		return text
	}
	text += fmt.Sprintf("; %s from %s", units.Count(b.Workers, "worker", "workers"), clock(b.From, zone))
	if !b.To.IsZero() {
		text += " to " + clock(b.To, zone)
	}
	if !b.Confirmed {
		return text + " asked for"
	}
	return text + " promised"
}

func clock(t time.Time, zone *time.Location) string { return t.In(zone).Format("Mon 15:04:05") }
