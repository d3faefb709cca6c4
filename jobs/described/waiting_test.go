package described_test

import (
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/described"
)

func TestWaiting(t *testing.T) {
	now := time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)
	booked := &jobs.Booking{From: now, To: now.Add(time.Hour), Workers: 2, Confirmed: true}
	for want, w := range map[string]jobs.Waiting{
		"offered": {Since: now}, "busy": {Since: now, Reason: "busy"}, "did not ask of late": {},
		"busy; 2 workers from Mon 22:00:00 to Mon 23:00:00 promised": {Since: now, Reason: "busy", Booked: booked},
		"offered; 1 worker from Mon 22:00:00 asked for":              {Since: now, Booked: &jobs.Booking{From: now, Workers: 1}},
	} {
		if got := described.Waiting(&w, time.UTC); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
