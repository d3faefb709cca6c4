package primary

import (
	"maps"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/groups"
)

// A status names of each link the two nodes that are farthest apart, of those between which that link rules.
func TestWorstPairOfEachLink(t *testing.T) {
	spec := jobs.Spec{Args: []string{"prog"}, Min: 4, Max: 4, Slots: 1, Topology: groups.Topology{
		Groups: []groups.Group{{Name: "a", Min: 2, Max: 2}, {Name: "b", Min: 2, Max: 2}},
		Links: []groups.Link{
			{Name: "in-a", Groups: []string{"a"}, MaxRTT: codec.Duration(5 * time.Millisecond)},
			{Name: "all", Groups: []string{"a", "b"}, MaxRTT: codec.Duration(time.Second)},
			{Name: "in-b", Groups: []string{"b"}, Bandwidth: groups.Range{Min: 0}},
		},
	}}
	c := newTalk(t, spec)
	c.far()
	c.step()
	for n := range 4 {
		c.room(n+1, 1)
	}
	by := c.grants()
	c.runs(by)
	c.state(jobs.Running, -1)
	got := map[string]time.Duration{}
	for _, p := range c.p.Status().Worst.Links {
		got[p.Link] = time.Duration(p.RTT)
		if p.A == "" || p.B == "" || p.A == p.B || p.NameA == "" || p.NameB == "" {
			t.Errorf("link %s: %+v", p.Link, p.WorstPair)
		}
	}
	if want := (map[string]time.Duration{"in-a": time.Millisecond / 2, "all": 40 * time.Millisecond}); !maps.Equal(got, want) {
		t.Errorf("the worst pairs are %v apart, want %v", got, want)
	}
}
