package vicinity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// brute joins groups by mean distance in the plainest way.
func brute(n int, distance func(a, b int) time.Duration, line time.Duration) [][]int {
	groups := make([][]int, n)
	for i := range groups {
		groups[i] = []int{i}
	}
	for {
		best, x, y := float64(line), -1, -1
		for a := range groups {
			for b := range a {
				sum := 0.0
				for _, i := range groups[a] {
					for _, k := range groups[b] {
						sum += float64(distance(i, k))
					}
				}
				if mean := sum / float64(len(groups[a])*len(groups[b])); mean <= best {
					best, x, y = mean, a, b
				}
			}
		}
		if x < 0 {
			for _, g := range groups {
				slices.Sort(g)
			}
			slices.SortFunc(groups, slices.Compare)
			return groups
		}
		groups[y] = append(groups[y], groups[x]...)
		groups = slices.Delete(groups, x, x+1)
	}
}

// plan puts n things at random places of some sites on a line, and returns
// their distances. Sites are apart by a distance, things within by up to near.
func sitesOnALine(rnd *rand.Rand, n, sites int, apart, near time.Duration) (at []int, distance func(a, b int) time.Duration) {
	x := make([]float64, n)
	for i := range x {
		at = append(at, i%sites)
		x[i] = float64(at[i])*float64(apart) + rnd.Float64()*float64(near)
	}
	return at, func(a, b int) time.Duration { return time.Duration(max(x[a]-x[b], x[b]-x[a])) }
}

func TestGroupsAreTheSites(t *testing.T) {
	for seed := range uint64(20) {
		for _, x := range []struct {
			n, sites    int
			apart, near time.Duration
		}{
			{1, 1, 0, 0},
			{12, 1, 0, 100 * time.Microsecond},
			{60, 1, 0, 1500 * time.Microsecond},
			{60, 3, 8 * ms, 2 * ms},
			{60, 6, 3 * ms, 800 * time.Microsecond},
			{80, 40, 10 * ms, 300 * time.Microsecond},
			{20, 2, 100 * ms, 300 * time.Microsecond},
			{20, 20, 10 * ms, 0},
		} {
			at, distance := sitesOnALine(seeded(seed, 1), x.n, x.sites, x.apart, x.near)
			got := Group(x.n, distance)
			want := make([][]int, x.sites)
			for i, s := range at {
				want[s] = append(want[s], i)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("seed %d, %+v: groups %v", seed, x, got)
			}
		}
	}
}

func TestGroupsAgreeWithThePlainWay(t *testing.T) {
	for seed := range uint64(20) {
		rnd := seeded(seed, 2)
		_, distance := sitesOnALine(rnd, 40, 5, 12*ms, 2*ms)
		got := Group(40, distance)
		if want := brute(40, distance, 3*ms); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("seed %d: groups %v, want %v", seed, got, want)
		}
	}
}

func TestEveryThingIsInOneGroup(t *testing.T) {
	for seed := range uint64(50) {
		rnd := seeded(seed, 3)
		n := rnd.IntN(60)
		far := make([]time.Duration, n*n)
		for i := range far {
			far[i] = time.Duration(rnd.Int64N(int64(maxRTT)) >> rnd.IntN(30))
		}
		seen := make([]int, n)
		for _, g := range Group(n, func(a, b int) time.Duration { return far[a*n+b] }) {
			if !slices.IsSorted(g) {
				t.Errorf("seed %d: group %v", seed, g)
			}
			for _, i := range g {
				seen[i]++
			}
		}
		for i, k := range seen {
			if k != 1 {
				t.Errorf("seed %d: thing %d is in %d groups", seed, i, k)
			}
		}
	}
}

func TestClusterNames(t *testing.T) {
	id := func(i int) placed { return placed{id: testID(i)} }
	members := map[ID]Member{
		testID(1): {Name: "anna", Site: "rennes"}, testID(2): {Site: "rennes"}, testID(3): {Site: "lyon"}, testID(4): {},
		testID(5): {Name: "eve"}, testID(6): {Site: "rennes"},
	}
	got := nameClusters([][]placed{{id(1), id(2), id(3), id(4)}, {id(5), id(4)}, {id(4)}, {id(6), id(5)}, {id(1), id(3)}}, members)
	want := []string{"rennes", "near eve", "near " + testID(4).Short(), "rennes, near " + testID(6).Short(), "near anna"}
	for i, c := range got {
		if c.Name != want[i] {
			t.Errorf("cluster %d is called %q, want %q", i, c.Name, want[i])
		}
	}
}

func TestClustersOfATable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t)
		l.start(30)
		time.Sleep(2 * time.Minute)
		a := l.tables[testID(4)]
		a.Join(Member{ID: testID(50)}) // its place is not known
		time.Sleep(time.Second)
		list := a.Clusters()
		if len(list) != 3 || !slices.Contains(list[0].Members, testID(4)) {
			t.Fatalf("clusters %+v", list)
		}
		for _, c := range list {
			if len(c.Members) != 10 || !slices.IsSorted(c.Members) {
				t.Errorf("cluster %+v", c)
			}
			for _, id := range c.Members {
				if l.group(id, 30) != l.group(c.Members[0], 30) {
					t.Errorf("%s is in a cluster with %s", id.Short(), c.Members[0].Short())
				}
			}
		}
		list[0].Members[0] = "mine"
		if a.Clusters()[0].Members[0] == "mine" {
			t.Error("callers share an answer")
		}
		l.end()
	})
}

// A node alone is a cluster, and has a place on the map.
func TestClustersOfAFewNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t)
		l.start(1)
		a := l.tables[testID(0)]
		if list := a.Clusters(); len(list) != 1 || len(list[0].Members) != 1 || list[0].Name != "near node" || a.Position(testID(0)) == nil {
			t.Errorf("alone: clusters %+v, position %v", list, a.Position(testID(0)))
		}
		a.Join(Member{ID: testID(1)})
		time.Sleep(time.Second)
		if list := a.Clusters(); len(list) != 1 || len(list[0].Members) != 1 {
			t.Errorf("beside a member that never answered: clusters %+v", list)
		}
		l.end()
	})
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t)
		l.start(2) // 20 ms apart
		time.Sleep(10 * time.Second)
		a := l.tables[testID(0)]
		if list := a.Clusters(); len(list) != 2 || list[0].Members[0] != testID(0) {
			t.Errorf("two nodes: clusters %+v", list)
		}
		if d, ok := a.Distance(testID(0), testID(1)); !ok || d != 20*ms {
			t.Errorf("two nodes: distance %v %v", d, ok)
		}
		l.end()
	})
}

func BenchmarkGroupTwoThousand(b *testing.B) {
	rnd := seeded(1, 1)
	places := make([]placed, 2000)
	for i := range places {
		for d := range places[i].at.Vec {
			places[i].at.Vec[d] = float64(i%40)*0.01 + rnd.Float64()*1e-4
		}
		for k := range maxLandmarks {
			places[i].seen = append(places[i].seen, bearing{uint16(k), time.Duration(i%40+k)*ms + time.Duration(rnd.IntN(200_000))})
		}
	}
	for b.Loop() {
		groupPlaces(places)
	}
}
