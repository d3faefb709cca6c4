package search

import (
	"maps"
	"slices"
	"time"

	"zorilla/jobs"
)

// Shareable reports whether jobs with this spec may share a search: nothing but the distance of each
// node by itself counts, and how many workers they get is given. What a node offers several jobs may be more than
// one for each.
func Shareable(spec *jobs.Spec) bool { return simple(spec) && spec.Rigid() && !spec.OnePerNode }

// Short reports whether all who could be asked have answered, and do not offer what is wanted.
func (s *Search) Short(now time.Time) bool {
	n, ready := len(s.Rounds), s.frontier.Ready()
	return n > 0 && s.sent == s.Rounds[n-1].Number && s.decideAt.IsZero() && !s.open(now, anywhere) &&
		(s.frontier.IsDirect() || !ready.IsZero() && !now.Before(ready))
}

// Learn takes over what a shared search was answered, for those who ask; got is what it has found for
// the job.
func (s *Search) Learn(from *Search, got []Choice) {
	s.Answers, s.Rounds = maps.Clone(from.Answers), slices.Clone(from.Rounds)
	s.taught, s.changed = true, true
	for _, c := range got {
		s.fate(c.Node, taken)
	}
}

// Asked reports whether the nodes that have answered know the job itself.
func (s *Search) Asked() bool { return !s.taught }
