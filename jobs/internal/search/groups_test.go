package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// sites is a search for a job with groups. Nodes 10 to 19 are at site 1, 20 to 29 at site 2, and so on: nodes
// of a site are half a millisecond apart, those of others 20 ms for each site between.
type sites struct {
	*hunt
	t        *testing.T
	measured map[pair]int // how often
	guess    func(a, b vicinity.ID) time.Duration
	keys     uint64
	mute     bool // nobody tells what was measured
}

func siteOf(id vicinity.ID) int {
	for n := range 100 {
		if jobtest.Node(n) == id {
			return n / 10
		}
	}
	return -1
}

func apartBy(a, b vicinity.ID) time.Duration {
	if siteOf(a) == siteOf(b) {
		return time.Millisecond / 2
	}
	return time.Duration(20*max(siteOf(a)-siteOf(b), siteOf(b)-siteOf(a))) * time.Millisecond
}

func newSites(t *testing.T, spec jobs.Spec) *sites {
	spec.Args, spec.Slots = []string{"prog"}, max(1, spec.Slots)
	spec.Min, spec.Max = spec.Topology.Least(), spec.Topology.Most()
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	s := &sites{hunt: newHunt(spec), t: t, measured: map[pair]int{}}
	s.d.Groups = &Groups{Has: map[vicinity.ID][]int{}, Split: make([]bool, len(spec.Groups))}
	for _, g := range spec.Groups {
		s.d.Groups.Least, s.d.Groups.Most = append(s.d.Groups.Least, g.Min), append(s.d.Groups.Most, g.Max)
	}
	s.s.Measured = func(id vicinity.ID) time.Duration { return apartBy(jobtest.Node(0), id) }
	s.s.Fresh = s.s.Measured
	s.s.Distance = func(a, b vicinity.ID) time.Duration {
		if s.guess != nil {
			return s.guess(a, b)
		}
		return apartBy(a, b)
	}
	s.next()
	return s
}

// key is that of another offer.
func (s *sites) key() uint64 {
	s.keys++
	return s.keys
}

// room has nodes offer room for so many workers of one slot, of any kind.
func (s *sites) room(slots int, nodes ...int) {
	for _, n := range nodes {
		s.says(n, wire.Answer{Round: len(s.s.Rounds), Key: s.key(), Workers: slots, Capacity: slots, Fits: 1<<jobs.MaxKinds - 1, Room: &wire.Room{Slots: slots}})
	}
}

// says has a node of 8 slots answer.
func (s *sites) says(n int, a wire.Answer) {
	m := vicinity.Member{ID: jobtest.Node(n), Name: fmt.Sprint("n", n), Slots: 8, Memory: 8 << 30}
	s.s.Answered(s.now, m, apartBy(jobtest.Node(0), m.ID), a, false)
}

// taken lets time pass until something is granted, and returns how many workers each node gets; nil = none for
// two seconds. Nodes measure what they are asked for.
func (s *sites) taken() (got map[int]int, sizes []int) {
	got = map[int]int{}
	for end := s.now.Add(2 * time.Second); s.now.Before(end); {
		n := s.next()
		for _, g := range n.Grant {
			for k := range 100 {
				if jobtest.Node(k) == g.Node {
					got[k] += len(g.Places)
				}
			}
		}
		if len(got) > 0 {
			return got, n.Sizes
		}
		for _, m := range n.Measure {
			var rtt []time.Duration
			for _, id := range m.Nodes {
				s.measured[pairOf(m.From, id)]++
				rtt = append(rtt, apartBy(m.From, id))
			}
			if m.From != jobtest.Node(0) && !s.mute {
				s.s.Paired(s.now, m.From, m.Nodes, rtt)
			}
		}
		if len(n.Measure) > 0 {
			continue
		}
		if n.Until.IsZero() {
			break
		}
		s.now = timers.Later(n.Until, s.now.Add(time.Millisecond))
	}
	return nil, nil
}

// at returns at which sites the nodes are, and how many workers each has.
func at(got map[int]int) map[int]int {
	by := map[int]int{}
	for n, workers := range got {
		by[n/10] += workers
	}
	return by
}

func ms(n int) codec.Duration { return codec.Duration(time.Duration(n) * time.Millisecond) }

// near is groups of so many workers, of which each has a link of its own.
func near(rtt int, list ...groups.Group) (s jobs.Spec) {
	for i := range list {
		list[i].Name = string(rune('a' + i))
		s.Links = append(s.Links, groups.Link{Name: "in-" + list[i].Name, Groups: []string{list[i].Name}, MaxRTT: ms(rtt)})
	}
	s.Groups = list
	return s
}

func exactly(n int) groups.Group { return groups.Group{Min: n, Max: n} }

// Two sites have room, neither on its own for a part of each group: each group is at one of them.
func TestLinkedGroupIsAtOneSite(t *testing.T) {
	s := newSites(t, near(5, exactly(4), exactly(3)))
	s.room(2, 10, 11, 20, 21)
	got, sizes := s.taken()
	if want := map[int]int{1: 4, 2: 3}; !slices.Equal(sizes, []int{4, 3}) || !maps.Equal(at(got), want) {
		t.Fatalf("taken %v with sizes %v, want %v", got, sizes, want)
	}
}

// Distances count only where they are measured, and only those are that a link or a cluster depends on.
func TestOnlyPairsThatMatterAreMeasured(t *testing.T) {
	s := newSites(t, near(5, exactly(4), exactly(4)))
	s.room(2, 10, 11, 20, 21)
	if got, _ := s.taken(); len(got) != 4 {
		t.Fatalf("taken %v", got)
	}
	for p := range s.measured {
		if siteOf(p.a) != siteOf(p.b) && p.a != jobtest.Node(0) && p.b != jobtest.Node(0) {
			t.Errorf("%s and %s were measured, which are of different groups", p.a, p.b)
		}
	}
	for _, p := range []pair{pairOf(jobtest.Node(10), jobtest.Node(11)), pairOf(jobtest.Node(20), jobtest.Node(21))} {
		if s.measured[p] == 0 {
			t.Errorf("%v was not measured before the grant", p)
		}
	}
	free := newSites(t, jobs.Spec{Topology: groups.Topology{Groups: []groups.Group{{Name: "a", Min: 8, Max: 8}}}})
	free.room(2, 10, 11, 20, 21)
	if got, _ := free.taken(); len(got) != 4 || len(free.measured) > 0 {
		t.Errorf("taken %v without links, and measured %v", got, free.measured)
	}
}

// An estimate that is too high keeps no job waiting: it is measured.
func TestEstimatesThatAreTooHigh(t *testing.T) {
	s := newSites(t, near(5, exactly(4)))
	s.guess = func(a, b vicinity.ID) time.Duration { return 300 * time.Millisecond }
	s.room(2, 10, 11)
	if got, _ := s.taken(); len(got) != 2 || s.measured[pairOf(jobtest.Node(10), jobtest.Node(11))] == 0 {
		t.Errorf("taken %v, measured %v", got, s.measured)
	}
	// Where that does not help either, the job waits, and says why.
	s = newSites(t, near(5, exactly(4)))
	s.guess = func(a, b vicinity.ID) time.Duration { return 300 * time.Millisecond }
	s.room(2, 10, 20)
	if got, _ := s.taken(); got != nil {
		t.Errorf("taken %v", got)
	}
	if text := s.next().Text(s.s.Tally()); !strings.Contains(text, "group a") && !strings.Contains(text, "link in-a") {
		t.Errorf("it says %s", text)
	}
	// And an estimate that is too low does not get nodes that are too far apart.
	s = newSites(t, near(5, exactly(4)))
	s.guess = func(a, b vicinity.ID) time.Duration { return time.Millisecond }
	s.room(2, 10, 20)
	if got, _ := s.taken(); got != nil {
		t.Errorf("taken %v, by an estimate", got)
	}
	s.room(2, 11)
	if got, _ := s.taken(); !maps.Equal(got, map[int]int{10: 2, 11: 2}) {
		t.Errorf("taken %v", got)
	}
}

// A node gets workers only of kinds that it fulfils, as it said with its offer.
func TestNodesGetGroupsThatTheyFulfil(t *testing.T) {
	list := func() []groups.Group {
		return []groups.Group{{Name: "a", Min: 2, Max: 2, Where: `site == "x"`}, {Name: "b", Min: 2, Max: 2, Where: `site == "y"`}}
	}
	s := newSites(t, jobs.Spec{Topology: groups.Topology{Groups: list()}})
	s.s.Members = func() int { return 2 }
	offer := func(n int, fits uint16) {
		s.says(n, wire.Answer{Round: len(s.s.Rounds), Key: s.key(), Workers: 4, Capacity: 4, Fits: fits, Room: &wire.Room{Slots: 4}})
	}
	offer(10, 1)
	offer(11, 1)
	if got, _ := s.taken(); got != nil {
		t.Errorf("nobody can run group b, and %v is taken", got)
	}
	if text, never := s.outlook(); !never || !strings.Contains(text, "group b") {
		t.Errorf("it says %s", text)
	}
	s = newSites(t, jobs.Spec{Topology: groups.Topology{Groups: list()}})
	offer(10, 2)
	offer(20, 1)
	if got, _ := s.taken(); !maps.Equal(got, map[int]int{10: 2, 20: 2}) {
		t.Errorf("taken %v", got)
	}
}

// Nodes that do not answer what is to be measured get nothing by an estimate.
func TestPairsThatCannotBeMeasured(t *testing.T) {
	s := newSites(t, near(5, exactly(4)))
	s.mute = true
	for range 5 {
		s.room(2, 10, 11)
		if got, _ := s.taken(); got != nil {
			t.Fatalf("after %v taken %v", s.now.Sub(jobtest.Start), got)
		}
	}
	if n := s.measured[pairOf(jobtest.Node(10), jobtest.Node(11))]; n < measureRounds {
		t.Errorf("they were asked %d times: the test does not test", n)
	}
	s.mute = false
	s.room(2, 10, 11)
	if got, _ := s.taken(); len(got) != 2 {
		t.Errorf("when they answer: taken %v", got)
	}
}

// Of what is offered as much is taken as the groups may have, before anything else.
func TestSizesAreChosen(t *testing.T) {
	ranges := []groups.Group{{Min: 1, Max: 3}, {Min: 2, Max: 4}}
	for slots, want := range map[int][]int{4: {3, 4}, 3: {3, 3}, 2: {0, 0}} {
		s := newSites(t, near(5, slices.Clone(ranges)...))
		s.room(slots, 10)
		s.room(max(1, slots-1), 20)
		if slots == 3 {
			s.room(1, 21)
		}
		got, sizes := s.taken()
		if s.d.Wanted != 0 {
			t.Errorf("with %d slots: %d workers are wanted besides", slots, s.d.Wanted)
		}
		total := 0
		for g, n := range sizes {
			if total += n; n < ranges[g].Min || n > ranges[g].Max {
				t.Errorf("with %d slots: sizes %v", slots, sizes)
			}
		}
		switch {
		case slots == 2 && (total != 3 || len(got) != 2): // 2 at one site, 1 at the other
			t.Errorf("with %d slots: taken %v, sizes %v", slots, got, sizes)
		case slots > 2 && !slices.Equal(sizes, want):
			t.Errorf("with %d slots: taken %v, sizes %v, want %v", slots, got, sizes, want)
		}
	}
	short := newSites(t, near(5, slices.Clone(ranges)...))
	short.room(2, 10)
	if got, _ := short.taken(); got != nil {
		t.Errorf("taken %v of too little", got)
	}
}

// A group that is not to be split waits for a cluster that has room for it, or may be anywhere after a while.
func TestUnsplitGroups(t *testing.T) {
	spec := jobs.Spec{Topology: groups.Topology{Groups: []groups.Group{{Name: "a", Min: 4, Max: 4, Clusters: 1, Prefer: codec.Duration(time.Minute)}}}}
	s := newSites(t, spec)
	s.room(2, 10, 20)
	if got, _ := s.taken(); got != nil {
		t.Fatalf("taken %v", got)
	}
	if text := s.next().Text(s.s.Tally()); !strings.Contains(text, "group a") {
		t.Errorf("it says %s", text)
	}
	s.room(2, 21)
	s.room(2, 20)
	if got, _ := s.taken(); !maps.Equal(got, map[int]int{20: 2, 21: 2}) {
		t.Fatalf("taken %v", got)
	}
	if s.measured[pairOf(jobtest.Node(20), jobtest.Node(21))] == 0 {
		t.Error("whether they are one cluster was not measured")
	}
	s = newSites(t, spec)
	s.d.Groups.Split[0] = true
	s.room(2, 10, 20)
	if got, _ := s.taken(); len(got) != 2 {
		t.Errorf("when it may be split: taken %v", got)
	}
}

// Ranks that are lost are replaced near those that stay.
func TestReplacementsAreNearThoseThatStay(t *testing.T) {
	s := newSites(t, near(5, exactly(4)))
	stays := jobtest.Node(20)
	s.d = Demand{Wanted: 2, Least: 2, Placed: true, Nodes: []vicinity.ID{stays},
		Groups: &Groups{Least: []int{2}, Most: []int{2}, Has: map[vicinity.ID][]int{stays: {2}}, Split: []bool{false}}}
	s.room(4, 10, 11)
	if got, _ := s.taken(); got != nil {
		t.Fatalf("taken %v, far from those that stay", got)
	}
	if text := s.next().Text(s.s.Tally()); !strings.Contains(text, "link in-a") {
		t.Errorf("it says %s", text)
	}
	s.room(1, 21, 22)
	if got, _ := s.taken(); !maps.Equal(got, map[int]int{21: 1, 22: 1}) {
		t.Errorf("taken %v", got)
	}
	if s.measured[pairOf(stays, jobtest.Node(21))] == 0 {
		t.Error("how far a new node is from one that stays was not measured")
	}
}

// What offers of queues cannot do together is given back at once, and what they may is gathered.
func TestOffersOfQueuesThatDoNotDoAreGivenBack(t *testing.T) {
	queued := func(s *sites, n, workers, capacity int) Next {
		s.says(n, wire.Answer{Key: s.key(), Workers: workers, Capacity: capacity, Fits: 1, Room: &wire.Room{Slots: workers}})
		s.next()
		s.s.releaseAt = time.Time{} // the others have had time
		return s.s.FollowUp(s.now, s.d, jobtest.Node(n))
	}
	busy := func(s *sites, n, capacity int) {
		s.says(n, wire.Answer{Round: len(s.s.Rounds), Capacity: capacity, Fits: 1, Reason: wire.ReasonBusy})
	}
	s := newSites(t, near(5, exactly(4)))
	busy(s, 10, 2)
	if n := queued(s, 20, 1, 2); !returns(n, 20) {
		t.Errorf("room for 2 at each of two sites: %+v, %q", n.Release, s.s.infeasible)
	}
	if _, never := s.outlook(); never {
		t.Error("it says that this is so for ever")
	}
	s = newSites(t, near(5, exactly(4)))
	busy(s, 10, 2)
	busy(s, 11, 2)
	if n := queued(s, 20, 1, 2); len(n.Release) > 0 {
		t.Errorf("another site has room for all: gives back %+v", n.Release)
	}
	// What was lacking is not when it is not wanted any more.
	s = newSites(t, jobs.Spec{Topology: groups.Topology{Groups: []groups.Group{{Name: "a", Min: 4, Max: 4, Clusters: 1, Prefer: codec.Duration(time.Minute)}}}})
	busy(s, 10, 2)
	if n := queued(s, 20, 1, 2); !returns(n, 20) {
		t.Errorf("unsplit: %+v", n.Release)
	}
	s.d.Groups.Split = []bool{true}
	if n := queued(s, 20, 1, 2); len(n.Release) > 0 {
		t.Errorf("when it may be split it gives back %+v, as %s", n.Release, s.s.infeasible)
	}
	// Nodes that are to be far apart are, as far as anybody knows.
	far := jobs.Spec{Topology: groups.Topology{Groups: []groups.Group{{Name: "a", Min: 2, Max: 2}}, Links: []groups.Link{{Name: "l", Groups: []string{"a"}, MinRTT: ms(5)}}}}
	s = newSites(t, far)
	busy(s, 21, 1)
	s.s.Measured = func(vicinity.ID) time.Duration { return 0 }
	s.s.Distance = func(a, b vicinity.ID) time.Duration { return 0 }
	if n := queued(s, 20, 1, 1); len(n.Release) > 0 {
		t.Errorf("nodes that may be far apart: gives back %+v, as %s", n.Release, s.s.infeasible)
	}
}

// A job ends that the members could not run if they were idle, and did not care where; not one for which they
// are only too far apart.
func TestGroupsThatNoMemberCanRun(t *testing.T) {
	for name, c := range map[string]struct {
		spec  jobs.Spec
		want  string // why it never runs
		apart string // else what keeps it
	}{
		"too far apart": {near(5, exactly(4)), "", "link in-a"},
		"too few":       {near(5, exactly(9)), "group a wants 9 workers", ""},
		"of one kind":   {near(5, exactly(2), groups.Group{Min: 1, Max: 1, GPUs: groups.Range{Min: 1}}), "group b", ""},
		"it could run":  {near(50, exactly(4)), "", ""},
		"split":         {jobs.Spec{Topology: groups.Topology{Groups: []groups.Group{{Name: "a", Min: 4, Max: 4, Clusters: 1}}}}, "", "group a"},
	} {
		s := newSites(t, c.spec)
		s.s.Members = func() int { return 2 }
		_, of := s.s.spec.Kinds()
		for _, n := range []int{10, 20} {
			if text, never := s.outlook(); never {
				t.Fatalf("%s: before all have answered: %s", name, text)
			}
			s.says(n, wire.Answer{Round: 1, Capacity: 2, Fits: 1 << of[0], Reason: wire.ReasonBusy})
		}
		text, never := s.outlook()
		if never != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: never is %v: %s", name, never, text)
		}
		if s.s.lacks(&s.d); (s.s.infeasible != "") != (c.want+c.apart != "") || !strings.Contains(s.s.infeasible, c.apart) {
			t.Errorf("%s: idle they could not since %q", name, s.s.infeasible)
		}
	}
	// A member comes that could.
	s := newSites(t, near(5, exactly(9)))
	members := 1
	s.s.Members = func() int { return members }
	s.says(10, wire.Answer{Round: 1, Capacity: 2, Fits: 1, Reason: wire.ReasonBusy})
	if _, never := s.outlook(); !never {
		t.Error("one node of 2 slots may run 9 workers")
	}
	members = 2
	s.says(11, wire.Answer{Round: 1, Capacity: 8, Fits: 1, Reason: wire.ReasonBusy})
	if text, never := s.outlook(); never {
		t.Errorf("two of them: %s", text)
	}
}
