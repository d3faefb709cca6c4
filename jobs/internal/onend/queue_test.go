package onend_test

import (
	"fmt"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/onend"
)

func due(n int) onend.Due {
	return onend.Due{Job: jobs.ID(fmt.Sprint("job", n)), Command: fmt.Sprint("command ", n)}
}

// A few run at a time, in the order in which their jobs ended, and each once.
func TestQueue(t *testing.T) {
	var q onend.Queue
	for n := range onend.AtOnce + 2 {
		q.Add(due(n))
		q.Add(due(n))
	}
	for n := range onend.AtOnce {
		if d, ok := q.Next(); !ok || d != due(n) {
			t.Fatalf("%d: %v, %v", n, d, ok)
		}
	}
	if d, ok := q.Next(); ok {
		t.Fatalf("one too many: %v", d)
	}
	q.Add(due(0)) // it runs
	for n := range 2 {
		q.Done(due(n).Job)
		if d, ok := q.Next(); !ok || d != due(onend.AtOnce+n) {
			t.Fatalf("after %d: %v, %v", n, d, ok)
		}
	}
	q.Done(due(2).Job)
	if d, ok := q.Next(); ok {
		t.Errorf("twice: %v", d)
	}
	q.Add(due(0)) // after its end it may be wanted again
	if d, ok := q.Next(); !ok || d != due(0) {
		t.Errorf("not taken in: %v", d)
	}
}
