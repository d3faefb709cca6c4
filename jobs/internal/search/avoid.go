package search

import (
	"maps"
	"slices"
	"time"

	"zorilla/vicinity"
)

// AvoidFor keeps a job away from a node that could not do its work.
const AvoidFor = 30 * time.Second

// MovedAway is why a job takes nothing of a node that one of its ranks was moved away from.
const MovedAway = "a rank was moved away from it"

// avoided is why and how long a job keeps away from a node.
type avoided struct {
	until   time.Time
	program bool // the job's program failed there, which is no reason to wait for others
	passed  bool // that node has offered in a round, and others came first
}

// avoid are the nodes that a job keeps away from.
type avoid map[vicinity.ID]avoided

// Avoid keeps the job away from a node for a while, as it could not do its work.
func (s avoid) Avoid(now time.Time, id vicinity.ID) { s[id] = avoided{until: now.Add(AvoidFor)} }

// Demote has others come before a node at which the job's program failed: the node is passed over
// until it has offered and no others had enough.
func (s avoid) Demote(now time.Time, id vicinity.ID) {
	if !now.Before(s[id].until) {
		s[id] = avoided{until: now.Add(AvoidFor), program: true}
	}
}

// leave has nothing more of the nodes that the workers of some demands may not have, and gives back what they offer.
func (s *nodeAnswers) leave(list []Demand) []Returned {
	s.left = nil
	for i := range list {
		s.left = append(s.left, list[i].Left...)
	}
	if len(s.left) == 0 {
		return nil
	}
	return s.returns("a rank of the job has left it", func(id vicinity.ID) bool { return slices.Contains(s.left, id) })
}

// keepsAway reports whether the job takes nothing of a node now.
func (s *nodeAnswers) keepsAway(now time.Time, id vicinity.ID) bool {
	return now.Before(s.avoid[id].until) || slices.Contains(s.left, id)
}

// Readmit ends what Avoid or Demote began.
func (s avoid) Readmit(id vicinity.ID) { delete(s, id) }

// lastResort reports whether nodes have offered that were only put off.
func (s avoid) lastResort() bool {
	for _, a := range s {
		if a.passed {
			return true
		}
	}
	return false
}

// resort lets the nodes be asked again that were only put off: others did not have enough.
func (s avoid) resort() {
	maps.DeleteFunc(s, func(_ vicinity.ID, a avoided) bool { return a.passed })
}
