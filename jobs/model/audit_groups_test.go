package model

import (
	"fmt"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/record"
	"zorilla/vicinity"
)

// lineup is what the journal says of the sizes of a job's groups.
type lineup struct {
	wish   *jobs.Spec // as submitted, once sizes are chosen
	sizes  []int
	broken map[int]bool // groups of which a rank was lost, and that have to start again as a whole
}

// readSizes: the sizes of groups are within their ranges, and change only if no rank has a node.
func (s *story) readSizes(ev *record.Event) string {
	if ev.Kind != record.Granted || len(s.spec.Groups) == 0 {
		return ""
	}
	if len(ev.Sizes) == 0 {
		if s.wish == nil {
			return "groups without sizes"
		}
		return ""
	}
	if s.wish == nil {
		wish := s.spec
		s.wish = &wish
	}
	if slices.Equal(s.sizes, ev.Sizes) {
		return ""
	}
	for i, g := range s.wish.Groups {
		if n := ev.Sizes[i]; n < g.Min || n > g.Max {
			return fmt.Sprintf("group %s has %d ranks, it wants %d..%d", g.Name, n, g.Min, g.Max)
		}
	}
	if s.busy() > 0 {
		return "other sizes while ranks have nodes"
	}
	s.sizes, s.spec = ev.Sizes, s.wish.Sized(ev.Sizes)
	return ""
}

// readLinks: no two ranks that have nodes are farther apart than the links of their groups allow.
func (s *story) readLinks(apart func(a, b vicinity.ID) time.Duration) string {
	if apart == nil || len(s.spec.Links) == 0 {
		return ""
	}
	for x := range s.spec.Workers() {
		for y := range x {
			a, b := &s.ranks[x], &s.ranks[y]
			groupA, _ := s.spec.GroupOf(x)
			groupB, _ := s.spec.GroupOf(y)
			link := s.spec.Ruling(groupA, groupB)
			if a.state != record.Started || b.state != record.Started || a.node == b.node || link < 0 {
				continue
			}
			if l := &s.spec.Links[link]; l.MaxRTT > 0 && apart(a.node, b.node) > time.Duration(l.MaxRTT) {
				return fmt.Sprintf("ranks %d and %d are %v apart, link %s allows %v", y, x, apart(a.node, b.node), l.Name, l.MaxRTT)
			}
		}
	}
	return ""
}

// readGroups: a group that starts again as a whole does so with all of its ranks.
func (s *story) readGroups(ev *record.Event) string {
	if s.broken == nil {
		s.broken = map[int]bool{}
	}
	for _, ra := range ev.Ranks {
		group, _ := s.spec.GroupOf(ra.Rank)
		if s.spec.Restarts(ra.Rank) != groups.RestartGroup {
			continue
		}
		switch ev.Kind {
		case record.Lost:
			s.broken[group] = true
		case record.Granted:
			if s.broken[group] {
				return fmt.Sprintf("others of group %s, of which a rank was lost, go on", s.spec.Groups[group].Name)
			}
		case record.Retried, record.Declined:
			delete(s.broken, group)
			for rank := range s.spec.Workers() {
				g, _ := s.spec.GroupOf(rank)
				if c := &s.ranks[rank]; g == group && c.attempt > 0 &&
					!slices.Contains(ev.Ranks, jobs.RankAttempt{Rank: rank, Attempt: c.attempt}) {
					return fmt.Sprintf("rank %d of group %s does not start again", rank, s.spec.Groups[group].Name)
				}
			}
		}
	}
	return ""
}

// alone reports whether a rank gets another attempt by itself, not with all of its job or group.
func (s *story) alone(ev *record.Event, ra jobs.RankAttempt) bool {
	return !s.spec.Rigid() && len(ev.Ranks) < s.spec.Workers() && s.spec.Restarts(ra.Rank) != groups.RestartGroup
}

// SetApart has links looked at, by the true round trips between nodes.
func (a *Audit) SetApart(rtt func(a, b vicinity.ID) time.Duration) { a.apart = rtt }
