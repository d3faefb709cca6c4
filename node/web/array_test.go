package web

import (
	"slices"
	"testing"

	"zorilla/jobs"
)

// An array is summed up, however many tasks it has.
func TestArrayIsSummedUp(t *testing.T) {
	list := facts(&jobs.Status{Spec: jobs.Spec{Min: 1, Max: 50}, Array: &jobs.ArrayStatus{Tasks: 900, Done: 70, Failed: 3}})
	for _, want := range []counter{{"Tasks", "900"}, {"Tasks done", "70"}, {"Tasks failed", "3"}} {
		if !slices.Contains(list, want) {
			t.Errorf("%+v has no %+v", list, want)
		}
	}
}
