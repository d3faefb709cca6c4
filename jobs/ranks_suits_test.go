package jobs

import (
	"testing"

	"zorilla/jobs/groups"
	"zorilla/vicinity"
)

// A member suits a group if it can ever have a worker of it, however full it is.
func TestSuits(t *testing.T) {
	m := vicinity.Member{Name: "n3", Site: "rennes", Platform: "linux/amd64", Slots: 4, Memory: 8 << 30, GPUs: 1, Version: groupVersion}
	old := m
	old.Version--
	for _, e := range []struct {
		about string
		group groups.Group
		where string
		m     vicinity.Member
		want  bool
	}{
		{"nothing is asked", groups.Group{}, "", m, true},
		{"an older node", groups.Group{}, "", old, false},
		{"enough of all", groups.Group{Slots: groups.Range{Min: 4, Max: 4}, Memory: groups.Range{Min: 8 << 30}, GPUs: groups.Range{Min: 1}}, "", m, true},
		{"too many slots", groups.Group{Slots: groups.Range{Min: 5}}, "", m, false},
		{"too much memory", groups.Group{Memory: groups.Range{Min: 9 << 30}}, "", m, false},
		{"too many GPUs", groups.Group{GPUs: groups.Range{Min: 2}}, "", m, false},
		{"a node that is too large", groups.Group{Slots: groups.Range{Max: 3}}, "", m, false},
		{"its condition", groups.Group{Where: `site == "rennes"`}, "", m, true},
		{"another site", groups.Group{Where: `site == "delft"`}, "", m, false},
		{"the job's condition", groups.Group{}, `name == "n4"`, m, false},
		{"any disk", groups.Group{Disk: groups.Range{Min: 10 << 30, Max: 11 << 30}}, "disk > 10G", m, true},
		{"no disk can be so", groups.Group{Disk: groups.Range{Max: 11 << 30}}, "disk > 12G", m, false},
	} {
		g := e.group
		g.Name, g.Min, g.Max = "a", 1, 1
		s := Spec{Slots: 1, Where: e.where, Topology: groups.Topology{Groups: []groups.Group{g}}}
		if got := s.Suits(0, e.m); got != e.want {
			t.Errorf("%s: %v", e.about, got)
		}
	}
	s := Spec{Slots: 2, Where: "slots == 4"}
	if !s.Suits(-1, old) {
		t.Error("a job without groups")
	}
	s.Memory = 9 << 30
	if s.Suits(-1, m) {
		t.Error("a job without groups that takes more than there is")
	}
}
