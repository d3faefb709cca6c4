package search

import (
	"errors"
	"slices"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/placement"
	"zorilla/jobs/placement/mapping"
	"zorilla/vicinity"
)

// ringOf is a job with a ring of so many tasks.
func ringOf(tasks string, n int) jobs.Spec {
	return jobs.Spec{Args: []string{"prog"}, Min: n, Max: n, Slots: 1, Strategy: "maheve", Placing: jobs.Placing{Graph: &mapping.Listed{Name: tasks}}}
}

// offered are offers of nodes at sites, see sites.
func offered(nodes ...int) (list []placement.Offer) {
	for _, n := range nodes {
		list = append(list, placement.Offer{Node: string(jobtest.Node(n)), RTT: apartBy(jobtest.Node(0), jobtest.Node(n)), Workers: 1})
	}
	return list
}

// Equal nodes: the largest cluster is filled first, but for a spare; strong ones count where they differ.
func TestTasksAreMappedByClusters(t *testing.T) {
	spec := ringOf("ring:4", 4)
	offers := offered(11, 12, 13, 21, 22, 23, 24, 25)
	sitesOf := func(assign []int) (list []int) {
		for _, i := range assign {
			list = append(list, siteOf(vicinity.ID(offers[i].Node)))
		}
		return list
	}
	alike := func(vicinity.ID) int64 { return 0 }
	assign, err := mapped(&spec, &Demand{Wanted: 4}, offers, alike, apartBy)
	if got := sitesOf(assign); err != nil || !slices.Equal(got, []int{2, 2, 2, 2}) {
		t.Errorf("it is at sites %v (%v), want the one with most nodes", got, err)
	}
	if slices.Sort(assign); len(slices.Compact(assign)) != 4 {
		t.Errorf("two tasks are at one node: %v", assign)
	}
	strong := func(id vicinity.ID) int64 {
		if siteOf(id) == 1 {
			return 9000
		}
		return 500
	}
	if assign, err = mapped(&spec, &Demand{Wanted: 4}, offers, strong, apartBy); err != nil || !slices.Contains(sitesOf(assign), 1) {
		t.Errorf("it is at sites %v (%v), none of which is the strong one", sitesOf(assign), err)
	}
	if _, err = mapped(&spec, &Demand{Wanted: 4}, offers[:3], alike, apartBy); !errors.Is(err, placement.ErrInfeasible) {
		t.Errorf("of too few nodes: %v", err)
	}
}

// A lost rank gets the strongest free node of its cluster, else one of the best.
func TestMappedRanksAreReplaced(t *testing.T) {
	spec := ringOf("ring:4", 4)
	power := func(id vicinity.ID) int64 {
		if id == jobtest.Node(12) || id == jobtest.Node(31) {
			return 2000
		}
		return 1000
	}
	offers := offered(11, 12, 21, 22, 31)
	lost := losses{jobtest.Node(15), jobtest.Node(16), jobtest.Node(17)}
	assign, err := mapped(&spec, &Demand{Wanted: 3, Lost: lost}, offers, power, apartBy)
	if err != nil || len(assign) != 3 || assign[0] != 1 || assign[1] != 0 || assign[2] < 2 {
		t.Errorf("replaced at %v (%v), want 1 (the strongest), 0, and one of another cluster", assign, err)
	}
	to := &Demand{Wanted: 2, Lost: losses{jobtest.Node(11), jobtest.Node(22)}, To: []vicinity.ID{jobtest.Node(11), jobtest.Node(22)}}
	if assign, err = mapped(&spec, to, offers, power, apartBy); err != nil || !slices.Equal(assign, []int{0, 3}) {
		t.Errorf("moved to %v (%v), want the nodes that were named", assign, err)
	}
	if assign, err = mapped(&spec, to, offers[1:], power, apartBy); err != nil || !slices.Equal(assign, []int{0, 2}) {
		t.Errorf("moved to %v (%v), want one near the first, which has no room, and the other", assign, err)
	}
	if _, err = mapped(&spec, &Demand{Wanted: 3, Lost: lost}, offers[:2], power, apartBy); !errors.Is(err, placement.ErrInfeasible) {
		t.Errorf("of too few nodes: %v", err)
	}
}
