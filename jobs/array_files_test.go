package jobs

import (
	"slices"
	"testing"

	"zorilla/jobs/work"
)

func TestFilesAreNamedByTasks(t *testing.T) {
	spec := Spec{Outputs: []string{"out-%t.txt", "run%t/part-*", "log"}, Array: &Array{Tasks: []work.TaskIDs{{First: 1, Last: 20, Step: 1}}}}
	if got, want := spec.Globs(), []string{"out-*.txt", "run*/part-*", "log"}; !slices.Equal(got, want) {
		t.Errorf("globs %q, want %q", got, want)
	}
	for path, want := range map[string]int{
		"out-7.txt": 7, "out-007.txt": 7, "out-21.txt": -1, "out-x.txt": -1, "run3/part-12": 3, "run30/part-12": -1, "run3/other": -1,
		"log": -1, "12": -1, "out-1.txt/2/3": 1, "out-99999999999999999999.txt": -1, "run20/part-1/deep": 20, "": -1,
	} {
		id, ok := spec.TaskOf(path)
		if !ok {
			id = -1
		}
		if id != want {
			t.Errorf("%s is of task %d, want %d", path, id, want)
		}
	}
	spec.Array = nil
	if _, ok := spec.TaskOf("out-7.txt"); ok || spec.Globs()[0] != "out-%t.txt" {
		t.Error("without an array there are no tasks")
	}
}
