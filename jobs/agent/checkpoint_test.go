package agent

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/keep"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/participant"
	"zorilla/vicinity"
)

// sites are nodes at two or three places: 1 to 9 near node 0, 10 to 19 at the next, 20 to 29 far away. Each has a host
// of its own, but for 9, which is at that of node 0.
type sites []int

func (s sites) Nearer(time.Duration, int) (list []vicinity.Measured) {
	for _, n := range s {
		list = append(list, vicinity.Measured{ID: jobtest.Node(n), RTT: time.Duration(n) * time.Millisecond})
	}
	return list
}

func (s sites) Member(id vicinity.ID) (m vicinity.Member, ok bool) {
	i := slices.IndexFunc(s, func(n int) bool { return jobtest.Node(n) == id })
	if i < 0 {
		return m, false
	}
	m.Addrs, m.Version = []string{fmt.Sprintf("10.0.0.%d:5444", s[i]%9)}, jobs.CheckpointVersion
	if s[i] == 29 {
		m.Version--
	}
	return m, true
}

func (s sites) clusters() []vicinity.Cluster {
	list := make([]vicinity.Cluster, 3)
	list[0].Members = []vicinity.ID{jobtest.Node(0)}
	for _, n := range s {
		list[n/10].Members = append(list[n/10].Members, jobtest.Node(n))
	}
	return slices.DeleteFunc(list, func(c vicinity.Cluster) bool { return len(c.Members) == 0 })
}

// A checkpoint that is to be far away has the nodes of this cluster first, and then those of others, the nearest first.
func TestCandidatesForCheckpoints(t *testing.T) {
	for _, c := range []struct {
		about      string
		nodes      sites
		far        bool
		want       []int // sorted within each site
		wantApart  []int
		wantShort  string
		noClusters bool
	}{
		{about: "as they are near", nodes: sites{1, 2, 10, 11}, want: []int{1, 2, 10, 11}},
		{about: "far", nodes: sites{1, 2, 10, 11, 20}, far: true, want: []int{1, 2, 10, 11, 20}, wantApart: []int{10, 11, 20}},
		{about: "of an earlier version", nodes: sites{1, 2, 29}, far: true, want: []int{1, 2}},
		{about: "on this host", nodes: sites{9, 10}, far: true, want: []int{10, 9}, wantApart: []int{10}, wantShort: "only 1 of 2 nodes that should keep it are on other hosts"},
		{about: "one cluster", nodes: sites{1, 2}, far: true, want: []int{1, 2}},
		{about: "none known", nodes: sites{1, 2}, far: true, want: []int{1, 2}, noClusters: true},
	} {
		p := &checkpoints{self: vicinity.Member{ID: jobtest.Node(0), Addrs: []string{"10.0.0.0:5444"}}, around: c.nodes, clusters: c.nodes.clusters}
		if c.noClusters {
			p.clusters = nil
		}
		got := p.candidates(keep.Worker{Job: "k7f3q@" + jobs.ID(jobtest.Node(0))}, c.far)
		list := numbered(got.List)
		if !c.far { // by chance
			slices.Sort(list)
		}
		if !slices.Equal(list, c.want) || !slices.Equal(numbered(got.Apart), c.wantApart) || got.Short != c.wantShort || got.Far != c.far {
			t.Errorf("%s: %v, apart %v, %q", c.about, list, numbered(got.Apart), got.Short)
		}
	}
}

// stillness is what a loop runs for that has nothing to do.
type stillness struct{}

func (stillness) Due()            {}
func (stillness) Wake() time.Time { return time.Time{} }
func (stillness) Stalled()        {}

// Whether one is to be far away is what the job of the worker says.
func TestCheckpointsOfAJobThatWantsThemFarAway(t *testing.T) {
	id := keep.Worker{Job: "k7f3q@" + jobs.ID(jobtest.Node(0))}
	near := sites{1, 2, 10}
	p := &checkpoints{loop: loop.New(zerolog.Nop()), part: &participant.Participant{}, around: near, clusters: near.clusters}
	p.loop.Start(stillness{})
	defer p.loop.Stop()
	for _, far := range []bool{false, true} {
		p.part.Works = map[jobs.ID]*participant.Work{id.Job: {Spec: jobs.Spec{Failing: jobs.Failing{CheckpointFar: far}}}}
		if got := p.nearby(id); got.Far != far || (len(got.Apart) > 0) != far || len(got.List) != 3 {
			t.Errorf("far away %v: %+v", far, got)
		}
	}
	p.part.Works = nil // it has just ended
	if got := p.nearby(id); got.Far || len(got.List) != 3 {
		t.Errorf("of a worker that has ended: %+v", got)
	}
}

// Workers of a job choose different nodes of a site, and each the same again.
func TestCandidatesOfWorkersDiffer(t *testing.T) {
	s := sites{1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17}
	p := &checkpoints{self: vicinity.Member{ID: jobtest.Node(0), Addrs: []string{"10.9.9.9:5444"}}, around: s, clusters: s.clusters}
	near, far := map[vicinity.ID]bool{}, map[vicinity.ID]bool{}
	for rank := range 20 {
		id := keep.Worker{Job: "k7f3q@" + jobs.ID(jobtest.Node(0)), RankAttempt: jobs.RankAttempt{Rank: rank, Attempt: 1}}
		first, again := p.candidates(id, true), p.candidates(id, true)
		if !slices.Equal(first.List, again.List) {
			t.Errorf("rank %d has %v, then %v", rank, first.List, again.List)
		}
		near[first.List[0]], far[first.Apart[0]] = true, true
	}
	if len(near) < 4 || len(far) < 4 {
		t.Errorf("20 workers have %d nodes near by, and %d far away", len(near), len(far))
	}
}

// numbered are the numbers of nodes; those of one site beside each other are in order.
func numbered(ids []vicinity.ID) (list []int) {
	site := 0 // where the nodes of the last one begin
	for _, id := range ids {
		for n := range 30 {
			if jobtest.Node(n) != id {
				continue
			}
			if len(list) > 0 && list[len(list)-1]/10 != n/10 {
				site = len(list)
			}
			list = append(list, n)
			slices.Sort(list[site:])
		}
	}
	return list
}
