package web

import (
	"fmt"
	"testing"
	"time"

	"zorilla/jobs"
)

func TestQueueIsTold(t *testing.T) {
	now := time.Now()
	rows, note := describeQueue([]jobs.Waiting{
		{Job: "aaaaa@zbbbb", Priority: 5, Wanted: 1, Slots: 2, Memory: 3 << 30, Disk: 1 << 40, GPUs: 1, Reason: "busy\x1b[31m", Since: now.Add(-time.Minute)},
		{Job: "bbbbb@zbbbb", Wanted: 3, Slots: 1, Since: now},
	}, now)
	if len(rows) != 2 || note != "" {
		t.Fatalf("%+v, %q", rows, note)
	}
	first := queueRow{
		Key: "aaaaa@zbbbb", Short: "aaaaa@zbbbb", Href: "/jobs/aaaaa@zbbbb", Wants: "1 worker of 2 slots, 3 GiB, 1 TiB of disk, 1 GPU", Priority: "priority 5",
		Reason: label("busy\x1b[31m", textLimit), When: since(now.Add(-time.Minute), now),
	}
	if rows[0] != first {
		t.Errorf("%+v, want %+v", rows[0], first)
	}
	if r := rows[1]; r.Wants != "3 workers of 1 slot" || r.Priority != "" || r.Reason != "offered" {
		t.Errorf("%+v", r)
	}
}

func TestLongQueueIsCut(t *testing.T) {
	list := make([]jobs.Waiting, maxQueueRows+7)
	for i := range list {
		list[i].Job = jobs.ID(fmt.Sprintf("j%04d@zbbbb", i))
	}
	rows, note := describeQueue(list, time.Now())
	if len(rows) != maxQueueRows || rows[maxQueueRows-1].Key != "j0049@zbbbb" || note != "7 more jobs wait: zorilla ps --queue lists all." {
		t.Errorf("%d rows, the last %+v, and %q", len(rows), rows[len(rows)-1], note)
	}
}
