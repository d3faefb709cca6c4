package search

import (
	"maps"
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
)

// Jobs of one origin that want the same need not be in each other's way: while one searches,
// those that are submitted meanwhile wait. Then the first of them searches for all, under the
// name of a call, and each that has its workers hands the search on to the next, with all that
// it has found.

// MaxTurn bounds how long a job waits for the search of another one, each time anew when the
// search has been handed on.
const MaxTurn = time.Second

// TakesTurns reports whether jobs with this spec may: nothing but the distance of each node by
// itself counts, and how many workers they get is given.
func TakesTurns(spec *jobs.Spec) bool { return simple(spec) && spec.Rigid() }

// EndTurn ends a turn, with the flood of the call, and lists what is left of the offers.
func (s *Search) EndTurn() []Returned {
	s.Call, s.passed = "", true
	s.Current, s.frontier = flood.Flood{}, flood.Frontier{}
	return s.GiveBack(NotNeeded)
}

// Short reports whether all who could be asked have answered, and do not offer what the job
// wants.
func (s *Search) Short(now time.Time) bool {
	n, ready := len(s.Rounds), s.frontier.Ready()
	return n > 0 && s.sent == s.Rounds[n-1].Number && s.decideAt.IsZero() && !s.open(now, anywhere) &&
		(s.frontier.IsDirect() || !ready.IsZero() && !now.Before(ready))
}

// Pass hands the search of a job that has its workers on to one that waits for its turn. What it
// returns is the search that the former has from now on: it tells what nodes have answered.
func (s *Search) Pass(to *Search) (left *Search) {
	left = New(s.id, s.Rnd)
	left.Surroundings, s.Surroundings = s.Surroundings, to.Surroundings
	left.Begin(s.spec)
	left.Answers, left.Rounds = maps.Clone(s.Answers), slices.Clone(s.Rounds)
	left.passed, left.changed = true, true
	s.spec, s.decideAt, s.until = to.spec, time.Time{}, time.Time{}
	for id, a := range s.Answers {
		if a.Fate == taken {
			s.fate(id, takenBefore)
		}
	}
	return left
}
