package search

import (
	"slices"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// Each site gets spares for its share of the ranks, with those that it has; at a site the strongest node comes first.
func TestSparesAreWhereRanksAre(t *testing.T) {
	offers := func(nodes ...int) (list []placement.Offer) {
		for _, n := range nodes {
			list = append(list, placement.Offer{Node: string(jobtest.Node(n)), RTT: apartBy(jobtest.Node(0), jobtest.Node(n)), Workers: 1})
		}
		return list
	}
	at := func(counts map[int]int) map[vicinity.ID]int {
		m := map[vicinity.ID]int{}
		for n, count := range counts {
			m[jobtest.Node(n)] = count
		}
		return m
	}
	strong := func(id vicinity.ID) int64 {
		if id == jobtest.Node(17) {
			return 2
		}
		return 1
	}
	for name, test := range map[string]struct {
		ranks, has map[int]int
		offers     []placement.Offer
		power      func(vicinity.ID) int64
		want       []int // nodes, in order
	}{
		"most of the ranks are far":      {map[int]int{1: 2, 11: 6}, nil, offers(2, 3, 14, 15, 16), alike, []int{14, 15, 2}},
		"there is one already":           {map[int]int{1: 2, 11: 6}, map[int]int{12: 1}, offers(2, 3, 14, 15, 16), alike, []int{14, 2, 15}},
		"where ranks are there is none":  {map[int]int{1: 2, 11: 6}, nil, offers(2), alike, []int{2}},
		"no more than is offered":        {map[int]int{21: 1}, nil, offers(2, 11), alike, []int{2, 11}},
		"the strongest":                  {map[int]int{11: 1}, nil, offers(14, 15, 17), strong, []int{17, 14, 15}},
		"where nobody is, the near ones": {nil, nil, offers(2, 14), alike, []int{2, 14}},
	} {
		d := Spares{Ranks: at(test.ranks), Has: at(test.has)}
		var got []int
		for _, i := range d.spread(3, test.offers, test.power, apartBy) {
			for n := range 40 {
				if string(jobtest.Node(n)) == test.offers[i].Node {
					got = append(got, n)
				}
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: spares are kept at %v, want %v", name, got, test.want)
		}
	}
}

// Ranks get the spares that they would get as replacements, as many as there are.
func TestRanksGetNearSpares(t *testing.T) {
	s := newHunt(jobs.Spec{Min: 1, Max: 4, Slots: 1}).s
	var spares []Spare
	for _, n := range []int{2, 12, 22} {
		spares = append(spares, Spare{Node: jobtest.Node(n), Name: "n", Key: uint64(n), RTT: time.Millisecond, Workers: 1})
	}
	d := Demand{Wanted: 4, Least: 1, Lost: losses{jobtest.Node(21), jobtest.Node(11), jobtest.Node(13), jobtest.Node(14)}}
	got := map[vicinity.ID][]int{}
	for _, c := range s.FromSpares(s.spec, d, spares, apartBy) {
		got[c.Node] = c.Places
		if n := c.Places[0]; c.Key == 0 || c.Replaced[0].From != d.Lost[n] {
			t.Errorf("place %d: %+v", n, c)
		}
	}
	if len(got) != 3 || !slices.Equal(got[jobtest.Node(22)], []int{0}) || !slices.Equal(got[jobtest.Node(12)], []int{1}) || !slices.Equal(got[jobtest.Node(2)], []int{2}) {
		t.Errorf("the ranks go to %v", got)
	}
	if list := s.FromSpares(s.spec, Demand{Wanted: 1}, spares, apartBy); len(list) > 0 {
		t.Errorf("a new rank gets %+v", list)
	}
}
