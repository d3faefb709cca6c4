package api

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"zorilla/internal/reserved"
	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// maxKnown bounds the files that KnownObstacles looks for.
const maxKnown = 100_000

// KnownObstacles tells, before a job is submitted, what would be in the way of
// its outputs: as far as their names are known, and whether their directories
// can be written to. Pull finds the rest.
func KnownObstacles(spec *jobs.Spec, want Wanted) transfer.ObstacleError {
	var way transfer.ObstacleError
	seen := map[transfer.Obstacle]bool{}
	files := knownFiles(spec, want.Into)
	if len(files) == 0 {
		return nil
	}
	places := reserved.New()
	for _, dir := range slices.Sorted(maps.Keys(files)) {
		for _, o := range transfer.NameObstacles(dir, files[dir], places, want.Force) {
			if !seen[o] {
				seen[o] = true
				way = append(way, o)
			}
		}
	}
	return way
}

// knownFiles lists, by directory, the files that output patterns without
// wildcards may become: NAME, or NAME.RANK where ranks differ; of tasks that share
// a directory always NAME.TASK.
func knownFiles(spec *jobs.Spec, into string) map[string][]string {
	files := map[string][]string{}
	n := 0
	add := func(dir, name string) {
		if n++; n <= maxKnown {
			files[dir] = append(files[dir], name)
		}
	}
	marks := []int{} // numbers of ranks, or of tasks
	mark := "%r"
	if spec.Array == nil {
		for rank := range min(spec.Max, maxKnown) {
			marks = append(marks, rank)
		}
	} else {
		mark = "%t"
		numbers := work.NumberTasks(spec.Array.Tasks)
		for i := range min(spec.Array.Count(), maxKnown) {
			marks = append(marks, numbers.ID(i))
		}
	}
	for _, glob := range spec.Outputs {
		name := path.Clean(glob)
		if strings.ContainsAny(glob, `*?[\`) {
			name = "." // only the directory is known
		}
		for i, number := range marks {
			text := strconv.Itoa(number)
			dir, own := strings.ReplaceAll(into, mark, text), name
			if spec.Array != nil {
				own = strings.ReplaceAll(name, mark, text)
			}
			same := own == name && dir == into // for all of them
			if !same || i == 0 && (spec.Array == nil || name == ".") {
				add(dir, own)
			}
			if same && name != "." && (len(marks) > 1 || spec.Array != nil) {
				add(dir, name+"."+text)
			}
		}
	}
	return files
}
