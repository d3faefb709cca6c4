package jobs

import (
	"strings"

	"zorilla/transfer"
)

// What a worker of a job without -o leaves is kept if it is no more than that.
const (
	MaxLeftFiles = 100
	MaxLeftBytes = 1 << 20
	MaxNamedLeft = 3 // such files that RankOutput.Left names
	// MaxLeft is how many bytes RankOutput.Left has at most.
	MaxLeft = 300
)

// Wants reports whether a file may be one of the job's outputs: its patterns name it, or there
// are none and it is one that a program leaves for people.
func (s *Spec) Wants(path string) bool {
	if len(s.Outputs) == 0 {
		return s.Array == nil && ForPeople(path)
	}
	return transfer.MatchOutput(s.Outputs, path)
}

// ForPeople reports whether a file that no pattern names is reported and kept: what programs have at
// home for themselves is hidden, or is Python's.
func ForPeople(path string) bool {
	for element := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(element, ".") || element == "__pycache__" {
			return false
		}
	}
	return true
}

// Unasked reports whether these are files of a job without -o, which are fetched if somebody asks
// for them.
func (o *RankOutput) Unasked() bool { return o.Left != "" }
