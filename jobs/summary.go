package jobs

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"zorilla/vicinity"
)

// maxSummaryArgs is how many bytes of its command a summary tells, about.
const maxSummaryArgs = 512

// Summary is what lists tell of a job: a Status without what grows with its workers,
// floods and files.
type Summary struct {
	ID     ID          `json:"id"`
	Origin vicinity.ID `json:"origin"`
	Name   string      `json:"name,omitempty"`
	// Args is the beginning of the command: at most about 512 bytes.
	Args   []string `json:"args,omitempty"`
	State  State    `json:"state"`
	Reason string   `json:"reason,omitempty"`
	// ExitCode is the job's exit code once State is final, else -1.
	ExitCode  int       `json:"exit_code"`
	Submitted time.Time `json:"submitted,omitzero"`
	Started   time.Time `json:"started,omitzero"` // first START
	Ended     time.Time `json:"ended,omitzero"`

	Min    int          `json:"min"` // ranks
	Max    int          `json:"max"`
	Rigid  bool         `json:"rigid,omitempty"`
	Wanted int          `json:"wanted"` // workers, all copies of the least ranks
	Count  WorkerCount  `json:"count"`
	Array  *ArrayStatus `json:"array,omitempty"` // nil unless the job is an array

	Damage    string    `json:"damage,omitempty"` // the first of what the disk of its origin lost of it
	Size      int64     `json:"size,omitempty"`   // bytes of results that the origin keeps
	Forgotten time.Time `json:"forgotten,omitzero"`
	Brief     bool      `json:"brief,omitempty"`      // only the job's record is told, as in Status
	LastKnown bool      `json:"last_known,omitempty"` // a participant answers for its origin
}

// WorkerCount says how the workers of a job are.
type WorkerCount struct {
	All    int `json:"all"`
	Active int `json:"active,omitempty"` // preparing, ready or running
	Ended  int `json:"ended,omitempty"`
	Stuck  int `json:"stuck,omitempty"` // wanted or lost: they have no node
}

// Summary returns what lists tell of the job.
func (s *Status) Summary() Summary {
	m := Summary{
		ID: s.ID, Origin: s.Origin, Name: s.Spec.Name, Args: cutArgs(s.Spec.Command()), State: s.State, Reason: s.Reason, ExitCode: s.ExitCode,
		Submitted: s.Submitted, Started: s.Started, Ended: s.Ended,
		Min: s.Spec.Min, Max: s.Spec.Max, Rigid: s.Spec.FixedSize(), Wanted: s.Spec.Workers(), Array: s.Array,
		Size: s.Size, Forgotten: s.Forgotten, Brief: s.Brief, LastKnown: s.LastKnown,
	}
	if len(s.Damaged) > 0 {
		m.Damage = s.Damaged[0]
	}
	m.Count.All = len(s.Workers)
	for i := range s.Workers {
		switch s.Workers[i].State {
		case WorkerPreparing, WorkerReady, WorkerRunning:
			m.Count.Active++
		case WorkerEnded:
			m.Count.Ended++
		case WorkerWanted, WorkerLost:
			m.Count.Stuck++
		case WorkerStopped:
			if !s.State.Final() { // it was given back
				m.Count.All--
			}
		}
	}
	return m
}

// cutArgs returns the beginning of a command.
func cutArgs(args []string) []string {
	room := maxSummaryArgs
	for i, a := range args {
		if room -= len(a); room < 0 {
			return append(slices.Clone(args[:i]), a[:len(a)+room])
		}
	}
	return args
}

// SummariesInOrder orders summaries as InOrder does statuses.
func SummariesInOrder(a, b Summary) int {
	return inOrder(a.State, b.State, a.Submitted, b.Submitted, a.ID, b.ID)
}

// MaxPastName is how many bytes of a job's title are told.
const MaxPastName = 48

// Title is the name of a job, or the beginning of its command.
func (s *Spec) Title() string {
	name := s.Name
	if command := s.Command(); name == "" && len(command) > 0 {
		args := slices.Clone(command[:min(len(command), MaxPastName)])
		args[0] = args[0][strings.LastIndexByte(args[0], '/')+1:]
		name = strings.Join(args, " ")
	}
	return CutText(name, MaxPastName)
}

// CutText returns the beginning of a text, in memory of its own.
func CutText(s string, limit int) string {
	if len(s) <= limit {
		return strings.Clone(s)
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
