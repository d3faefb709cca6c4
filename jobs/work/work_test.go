package work_test

import (
	"testing"

	"zorilla/jobs/work"
)

func TestTaskNumbers(t *testing.T) {
	n := work.NumberTasks([]work.TaskIDs{{First: 1, Last: 9, Step: 4}, {First: 12, Last: 12, Step: 1}, {First: 20, Last: 22, Step: 2}})
	want := []int{1, 5, 9, 12, 20, 22}
	if n.Count() != len(want) {
		t.Fatalf("%d tasks", n.Count())
	}
	for i, id := range want {
		if place, ok := n.Place(id); n.ID(i) != id || place != i || !ok {
			t.Errorf("place %d: ID %d, found at %d", i, n.ID(i), place)
		}
	}
	if _, ok := n.Place(2); ok {
		t.Error("task 2 was found")
	}
}
