package jobs

import (
	"strconv"
	"strings"

	"zorilla/jobs/work"
	"zorilla/transfer"
)

// taskMark stands for the number of a task in output patterns of an array.
const taskMark = "%t"

// Globs returns the patterns of output files. In those of an array taskMark
// stands for anything, since a task's directory has its own files only: see
// TaskOf.
func (s *Spec) Globs() []string {
	if s.Array == nil {
		return s.Outputs
	}
	globs := make([]string, len(s.Outputs))
	for i, g := range s.Outputs {
		globs[i] = strings.ReplaceAll(g, taskMark, "*")
	}
	return globs
}

// WantsOfTask is Wants for files of a task of an array.
func (s *Spec) WantsOfTask() func(path string) bool {
	of := Spec{Outputs: s.Globs()}
	return of.Wants
}

// TaskOf returns the task whose number an output file's path has where a
// pattern has taskMark. Zeros may stand before the number.
func (s *Spec) TaskOf(path string) (id int, ok bool) {
	if s.Array == nil {
		return 0, false
	}
	numbers := work.NumberTasks(s.Array.Tasks)
	for _, digits := range strings.FieldsFunc(path, notDigit) {
		id, err := strconv.Atoi(digits)
		if err != nil {
			continue
		}
		for _, g := range s.Outputs {
			if !strings.Contains(g, taskMark) || !transfer.MatchOutput([]string{strings.ReplaceAll(g, taskMark, digits)}, path) {
				continue
			}
			if _, ok := numbers.Place(id); ok {
				return id, true
			}
		}
	}
	return 0, false
}

// NamesOutput reports whether an output pattern names a path without leaving
// anything open, so that every task may be expected to make it.
func (s *Spec) NamesOutput(path string) bool {
	for _, g := range s.Outputs {
		if !strings.Contains(g, taskMark) && !strings.ContainsAny(g, `*?[\`) && transfer.MatchOutput([]string{g}, path) {
			return true
		}
	}
	return false
}

func notDigit(r rune) bool { return r < '0' || r > '9' }
