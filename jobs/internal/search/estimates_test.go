package search

import (
	"maps"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Nodes that are to be far apart may be farther than estimated, or not.
func TestEstimatesThatAreTooLow(t *testing.T) {
	far := func() jobs.Spec {
		return jobs.Spec{Topology: groups.Topology{Groups: []groups.Group{exactly(2)}, Links: []groups.Link{{Name: "l", Groups: []string{"a"}, MinRTT: ms(5)}}}}
	}
	for name, c := range map[string]struct {
		nodes []int
		taken bool
	}{"far": {[]int{10, 20}, true}, "near": {[]int{10, 11}, false}} {
		spec := far()
		spec.Groups[0].Name = "a"
		s := newSites(t, spec)
		s.guess = func(a, b vicinity.ID) time.Duration { return time.Millisecond }
		s.room(1, c.nodes...)
		if got, _ := s.taken(); (len(got) == 2) != c.taken || len(s.measured) == 0 {
			t.Errorf("%s: taken %v, measured %v", name, got, s.measured)
		}
	}
}

// It helps nothing that round trips are not known which do not count.
func TestNodesThatAreKnownToBeTooNear(t *testing.T) {
	s := newSites(t, jobs.Spec{Topology: groups.Topology{Groups: []groups.Group{{Name: "a", Min: 2, Max: 2}, {Name: "b", Min: 1, Max: 1, Where: "gpus > 1"}},
		Links: []groups.Link{{Name: "l", Groups: []string{"a"}, MinRTT: ms(5)}}}})
	s.guess = func(a, b vicinity.ID) time.Duration { return time.Millisecond }
	for n, fits := range map[int]uint16{10: 1, 11: 1, 20: 2} {
		s.says(n, wire.Answer{Round: 1, Key: s.key(), Workers: 1, Capacity: 1, Fits: fits, Room: &wire.Room{Slots: 1}})
	}
	if got, _ := s.taken(); got != nil || s.measured[pairOf(jobtest.Node(10), jobtest.Node(11))] == 0 {
		t.Errorf("taken %v, measured %v", got, s.measured)
	}
}

// What is hoped of round trips that may not be measured any more is not granted.
func TestHopesThatCannotBeMeasured(t *testing.T) {
	s := newSites(t, near(16, exactly(4)))
	s.guess = func(a, b vicinity.ID) time.Duration { return 300 * time.Millisecond } // 15 at least, by how far they are from here
	for n := range maxPairs {
		s.s.pairs[pairOf("other", jobtest.Node(1000+n))] = apartness{1, s.now}
	}
	s.room(2, 10, 20)
	if got, _ := s.taken(); got != nil || len(s.measured) > 0 {
		t.Errorf("taken %v, 20 ms apart; measured %v", got, s.measured)
	}
}

// What nodes say of their speeds later counts, too, for whether they could do it.
func TestSpeedsThatAreKnownLater(t *testing.T) {
	s := newSites(t, jobs.Spec{Topology: groups.Topology{Groups: []groups.Group{{Name: "a", Min: 2, Max: 2}},
		Links: []groups.Link{{Name: "l", Groups: []string{"a"}, Bandwidth: groups.Range{Min: 1000}}}}})
	says := func(mbits int64) {
		for _, n := range []int{10, 11} {
			m := vicinity.Member{ID: jobtest.Node(n), Slots: 8, Speeds: vicinity.Speeds{Bandwidth: mbits}}
			s.s.Answered(s.now, m, apartBy(jobtest.Node(0), m.ID), wire.Answer{Round: 1, Capacity: 1, Fits: 1, Reason: wire.ReasonBusy}, false)
		}
	}
	says(100)
	if !s.s.lacks(&s.d) {
		t.Error("networks of 100 Mbit/s may do where 1000 are wanted")
	}
	if says(1000); s.s.lacks(&s.d) {
		t.Errorf("networks of 1000 Mbit/s do not do: %s", s.s.infeasible)
	}
}

// A choice that has fewer workers than groups may have waits for other nodes, however near its own are.
func TestGroupsThatMayHaveMoreWaitForOthers(t *testing.T) {
	s := newSites(t, near(50, groups.Group{Min: 1, Max: 2}))
	s.room(1, 10)
	for begin := s.now; s.now.Before(begin.Add(MaxNearerWait - 10*time.Millisecond)); s.now = s.now.Add(10 * time.Millisecond) {
		if n := s.next(); len(n.Grant) > 0 {
			t.Fatalf("after %v it takes one", s.now.Sub(begin))
		}
	}
	s.room(1, 20)
	if got, _ := s.taken(); !maps.Equal(got, map[int]int{10: 1, 20: 1}) {
		t.Errorf("taken %v", got)
	}
}

// Guesses may put a node into the cluster of one that it is far from, and so out of that with which there is
// room for a group: they are measured, although no choice depends on them.
func TestGuessesThatMakeWrongClusters(t *testing.T) {
	kind := map[int]uint16{10: 2, 11: 2, 20: 1, 21: 1} // nodes 10 and 11 are nothing for group a
	for name, c := range map[string]struct {
		nodes      []int
		infeasible bool
	}{"room in another cluster": {[]int{10, 20, 21}, false}, "room in none": {[]int{10, 11, 20}, true}} {
		begun := func() *sites {
			s := newSites(t, jobs.Spec{Topology: groups.Topology{Groups: []groups.Group{{Name: "a", Min: 2, Max: 2, Clusters: 1}, {Name: "b", Min: 1, Max: 1, Where: "gpus > 1"}}}})
			s.s.Measured = func(id vicinity.ID) time.Duration { return 20 * time.Millisecond }
			s.guess = func(a, b vicinity.ID) time.Duration { return 0 } // and all are as far from here
			s.s.learn(s.now, jobtest.Node(10), []vicinity.ID{jobtest.Node(21)}, []time.Duration{20 * time.Millisecond})
			return s
		}
		s := begun()
		for _, n := range c.nodes {
			s.says(n, wire.Answer{Round: 1, Capacity: 1, Fits: kind[n], Reason: wire.ReasonBusy})
		}
		if s.s.lacks(&s.d) != c.infeasible {
			t.Errorf("%s: idle they could not since %q", name, s.s.infeasible)
		}
		s = begun()
		for _, n := range c.nodes {
			s.says(n, wire.Answer{Round: 1, Key: s.key(), Workers: 1, Capacity: 1, Fits: kind[n], Room: &wire.Room{Slots: 1}})
		}
		if got, _ := s.taken(); (len(got) == 3) == c.infeasible || len(s.measured) > 0 == c.infeasible {
			t.Errorf("%s: taken %v, measured %v; %s", name, got, s.measured, s.s.group.apart)
		}
	}
}
