package web

import (
	"fmt"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
)

// maxQueueRows bounds the queue on the page; zorilla ps --queue lists all.
const maxQueueRows = 50

// queueRow is a job, of any node, that waits for room at this one.
type queueRow struct {
	Key      string `json:"key"`
	Short    string `json:"short"`
	Href     string `json:"href"`
	Wants    string `json:"wants"`
	Priority string `json:"priority"` // "" if it is the usual one
	Reason   string `json:"reason"`
	When     stamp  `json:"when"`
}

// describeQueue tells of the first ones in order, and how many more there are.
func describeQueue(list []jobs.Waiting, now time.Time) (rows []queueRow, note string) {
	for i := range list[:min(len(list), maxQueueRows)] {
		w := &list[i]
		id := label(string(w.Job), nameLimit)
		row := queueRow{
			Key: id, Short: label(w.Job.Short(), nameLimit), Href: "/jobs/" + id, When: since(w.Since, now), Reason: label(w.Reason, textLimit),
			Wants: plural(w.Wanted, "worker", "workers") + " of " + needs(w),
		}
		if row.Reason == "" {
			row.Reason = "offered"
		}
		if w.Priority != 0 {
			row.Priority = fmt.Sprintf("priority %d", w.Priority)
		}
		rows = append(rows, row)
	}
	if more := len(list) - maxQueueRows; more > 0 {
		note = plural(more, "more job waits", "more jobs wait") + ": zorilla ps --queue lists all."
	}
	return rows, note
}

// needs tells what each worker takes.
func needs(w *jobs.Waiting) string {
	text := plural(w.Slots, "slot", "slots")
	if w.Memory > 0 {
		text += ", " + units.Bytes(w.Memory)
	}
	if w.Disk > 0 {
		text += ", " + units.Bytes(w.Disk) + " of disk"
	}
	if w.GPUs > 0 {
		text += ", " + plural(w.GPUs, "GPU", "GPUs")
	}
	return text
}
