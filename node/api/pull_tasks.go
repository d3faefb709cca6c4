package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"zorilla/jobs"
	"zorilla/transfer"
)

// byTask sorts the files of ranks by the task whose number they bear. Others
// are left out with a warning.
func byTask(spec *jobs.Spec, trees []RankTree) (tasks map[int][]RankTree, warnings []string) {
	tasks = map[int][]RankTree{}
	for _, t := range trees {
		own := map[int][]transfer.Entry{}
		for _, e := range t.Manifest.Entries {
			if e.Dir {
				continue
			}
			id, ok := spec.TaskOf(e.Path)
			if !ok {
				warnings = append(warnings, fmt.Sprintf("rank %d: %q bears no task's number: it was left out", t.Rank, e.Path))
				continue
			}
			own[id] = append(own[id], e)
		}
		for id, entries := range own {
			tasks[id] = append(tasks[id], RankTree{t.Rank, transfer.Manifest{Entries: entries}})
		}
	}
	if n := len(warnings) - maxMergeWarnings; n > 0 {
		slices.Sort(warnings)
		warnings = append(warnings[:maxMergeWarnings], fmt.Sprintf("and %d more files without a number", n))
	}
	return tasks, warnings
}

// placeTasks gives the files of each task a directory of its own.
func placeTasks(spec *jobs.Spec, trees []RankTree, into string) (layout []placed, warnings []string, err error) {
	if !spec.NamesTasks() {
		return nil, nil, fmt.Errorf("%w: --into %s: %%t needs an array, and %%t in each of its output patterns (-o 'out-%%t')", ErrInvalid, into)
	}
	tasks, warnings := byTask(spec, trees)
	for id, trees := range tasks {
		m, more, err := Merge(trees)
		warnings = append(warnings, more...)
		if err != nil {
			return nil, warnings, err
		}
		layout = append(layout, placed{dir: strings.ReplaceAll(into, "%t", strconv.Itoa(id)), tree: m})
	}
	return layout, warnings, nil
}
