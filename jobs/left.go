package jobs

import "zorilla/transfer"

// What a worker of a job without -o leaves is kept if it is no more than that, or a task of an array.
const (
	MaxLeftFiles = 100
	MaxLeftBytes = 1 << 20
	// MaxTasksLeft is how many bytes files of the tasks of one worker take together, as far as they
	// are kept.
	MaxTasksLeft = 8 << 20
	MaxNamedLeft = 3 // such files that RankOutput.Left names
	// MaxLeft is how many bytes RankOutput.Left has at most.
	MaxLeft = 300
)

// Wants reports whether a file may be one of the job's outputs: its patterns name it, or there
// are none and it is one that a program leaves for people.
func (s *Spec) Wants(path string) bool {
	if len(s.Outputs) == 0 {
		return transfer.ForPeople(path)
	}
	return transfer.MatchOutput(s.Outputs, path)
}

// HasFiles reports whether a job has output files that its origin keeps, or may get some.
func (s *Status) HasFiles() bool {
	return len(s.Spec.Outputs) > 0 || len(s.Outputs) > 0 || s.Array != nil && s.Array.Filed > 0
}

// Unasked reports whether these are files of a job without -o, which are fetched if somebody asks
// for them.
func (o *RankOutput) Unasked() bool { return o.Left != "" }
