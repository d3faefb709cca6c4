package mapping

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"zorilla/internal/seeds"
)

// alike returns a cluster of equal nodes.
func alike(n int, power float64) Cluster { return Cluster{slices.Repeat([]float64{power}, n)} }

func four(values []float64) string {
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, "%.4f ", v)
	}
	return strings.TrimSpace(b.String())
}

func TestHeterogeneity(t *testing.T) {
	for _, c := range []struct {
		powers []float64
		want   string
	}{
		{nil, "0.0000"}, {[]float64{1, 1, 1, 1}, "0.0000"}, {[]float64{1, 3}, "0.5000"},
		{[]float64{1, 1, 1, 1, 1, 2, 2, 2, 2}, "0.3440"}, {[]float64{1, 1, 1, 9}, "1.0000"}, {[]float64{0, 0}, "0.0000"},
	} {
		if got := four([]float64{Heterogeneity(c.powers)}); got != c.want {
			t.Errorf("%v: %s, want %s", c.powers, got, c.want)
		}
	}
}

// Formula (1), with the limits that the paper gives at hd = 0 and 1, and an exact tie at 0.50.
func TestMarks(t *testing.T) {
	three := []Cluster{alike(40, 1), alike(20, 2), alike(10, 4)}
	other := []Cluster{alike(40, 1), alike(30, 1.2), alike(12, 3)}
	for _, c := range []struct {
		clusters []Cluster
		hd       float64
		marks    string
		order    []int
	}{
		{three, 0, "2.0000 1.5000 1.2500", []int{0, 1, 2}},
		{three, 0.08, "1.8950 1.4746 1.2793", []int{0, 1, 2}},
		{three, 0.50, "1.5000 1.4142 1.5000", []int{0, 2, 1}},
		{three, 0.72, "1.3686 1.4307 1.6783", []int{2, 1, 0}},
		{three, 1, "1.2500 1.5000 2.0000", []int{2, 1, 0}},
		{other, 0.08, "1.9159 1.6968 1.3303", []int{0, 1, 2}},
		{other, 0.50, "1.5774 1.4985 1.5477", []int{0, 2, 1}},
		{other, 0.72, "1.4534 1.4396 1.7138", []int{2, 0, 1}},
		{[]Cluster{{}, alike(1, 1)}, 1, "-1.0000 2.0000", []int{1, 0}},
	} {
		got := marks(c.clusters, c.hd)
		if four(got) != c.marks || !slices.Equal(falling(got), c.order) {
			t.Errorf("hd %v: %s, order %v; want %s, %v", c.hd, four(got), falling(got), c.marks, c.order)
		}
	}
}

// worked are six tasks that cost 4 1 1 8 2 6.
func worked() *Graph {
	g := NewGraph(6)
	g.Cost = []float64{4, 1, 1, 8, 2, 6}
	for _, e := range [][2]int{{0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 2}, {4, 5}} {
		g.Join(e[0], e[1], 1)
	}
	return g
}

// Formula (2), and the list that tasks are placed by.
func TestTasksInOrder(t *testing.T) {
	g := worked()
	for _, c := range []struct {
		hd        float64
		q         string
		following []int
		list      []int
	}{
		{0, "4.0000 2.0000 2.0000 1.0000 2.0000 1.0000", []int{4, 2, 2, 1, 2, 1}, []int{0, 1, 2, 4, 3, 5}},
		{0.08, "4.0000 1.8921 1.8921 1.1810 2.0000 1.1541", []int{4, 2, 2, 1, 2, 1}, []int{0, 4, 1, 2, 3, 5}},
		{0.50, "4.0000 1.4142 1.4142 2.8284 2.0000 2.4495", []int{2, 1, 1, 1, 1, 1}, []int{0, 3, 4, 5, 1, 2}},
		{0.72, "4.0000 1.2142 1.2142 4.4691 2.0000 3.6330", []int{1, 1, 1, 1, 1, 1}, []int{3, 0, 5, 4, 1, 2}},
		{1, "4.0000 1.0000 1.0000 8.0000 2.0000 6.0000", []int{1, 1, 1, 1, 1, 1}, []int{3, 0, 5, 4, 1, 2}},
	} {
		var nb []int
		for i := range g.Edges {
			nb = append(nb, following(len(g.Edges[i]), c.hd))
		}
		if q := four(g.qualities(c.hd)); q != c.q || !slices.Equal(nb, c.following) || !slices.Equal(g.list(c.hd), c.list) {
			t.Errorf("hd %v: Q %s, Nb %v, list %v; want %s, %v, %v", c.hd, q, nb, g.list(c.hd), c.q, c.following, c.list)
		}
	}
	if n := following(0, 0.5); n != 0 {
		t.Errorf("%d neighbours of a task without any", n)
	}
}

// Spares are a share of each cluster, at least one, and given up as evenly as can be.
func TestKeep(t *testing.T) {
	clusters := []Cluster{alike(70, 1), alike(25, 1), alike(4, 1), {}}
	order := []int{2, 0, 1, 3}
	for _, c := range []struct {
		tasks  int
		share  float64
		spares []int
		short  int
	}{
		{64, 0.10, []int{7, 3, 1, 0}, 0},
		{88, 0.10, []int{7, 3, 1, 0}, 0},
		{89, 0.10, []int{6, 3, 1, 0}, 1},
		{93, 0.10, []int{3, 2, 1, 0}, 5}, // the last in order gives first
		{96, 0.10, []int{1, 1, 1, 0}, 8},
		{98, 0.10, []int{0, 0, 1, 0}, 10},
		{99, 0.10, []int{0, 0, 0, 0}, 11},
		{99, 0, []int{0, 0, 0, 0}, 0},
		{64, 0.28, []int{20, 7, 2, 0}, 0}, // 7 of 25, although 0.28 x 25 is a little more than that
		{1, 1, []int{70, 25, 3, 0}, 1},
	} {
		spares, short := keep(order, clusters, c.tasks, c.share)
		if c.share == 1 { // everything is spare but what the one task takes
			if sum(spares) != 98 || short != c.short {
				t.Errorf("all spare: %v, %d short", spares, short)
			}
			continue
		}
		if !slices.Equal(spares, c.spares) || short != c.short {
			t.Errorf("%d tasks, share %v: %v, %d short; want %v, %d", c.tasks, c.share, spares, short, c.spares, c.short)
		}
	}
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

// Nine nodes for six tasks. By hand: hd is 0.62, the marks are 1.40, 1.43 and 1.90, and Nb of task 0 is 2.
func TestMaheveOnAnExample(t *testing.T) {
	clusters := []Cluster{alike(4, 1), {[]float64{2, 2.5}}, {[]float64{4, 5, 4}}}
	m, err := Maheve(worked(), clusters, DefaultSpares)
	if err != nil {
		t.Fatal(err)
	}
	want := Mapping{
		// The list is 0 3 4 5 1 2.
		Places: []Place{{2, 1}, {0, 1}, {0, 2}, {2, 0}, {1, 1}, {0, 0}},
		Order:  []int{2, 1, 0}, Spares: []int{1, 1, 1},
	}
	if fmt.Sprint(m) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", m, want)
	}
	if m, err = Maheve(worked(), []Cluster{alike(5, 1)}, DefaultSpares); !errors.Is(err, ErrTooFew) || m.Places != nil {
		t.Errorf("too few nodes: %v, %v", m, err)
	}
}

// drawn returns a random graph, and clusters with room for it.
func drawn(rnd *rand.Rand, tasks int) (*Graph, []Cluster, Latency) {
	g := NewGraph(tasks)
	for i := range tasks {
		g.Cost[i] = float64(rnd.IntN(5))
		for j := range i {
			if rnd.IntN(max(2, tasks/4)) == 0 {
				g.Join(i, j, float64(1+rnd.IntN(3)))
			}
		}
	}
	var clusters []Cluster
	for nodes := 0; nodes < tasks || rnd.IntN(3) > 0 && nodes < 3*tasks; {
		var c Cluster
		for range rnd.IntN(1 + tasks) {
			c.Power = append(c.Power, float64(1+rnd.IntN(4)))
		}
		nodes += len(c.Power)
		clusters = append(clusters, c)
	}
	between := make([]float64, len(clusters)*len(clusters))
	for i := range between {
		between[i] = rnd.Float64() / 4
	}
	return g, clusters, func(a, b int) float64 {
		if a == b {
			return 0.01
		}
		return between[min(a, b)*len(clusters)+max(a, b)]
	}
}

// valid returns what is wrong with a mapping.
func valid(g *Graph, clusters []Cluster, m Mapping) error {
	if len(m.Places) != len(g.Cost) {
		return fmt.Errorf("%d places for %d tasks", len(m.Places), len(g.Cost))
	}
	used, left := map[Place]bool{}, make([]int, len(clusters))
	for i, c := range clusters {
		left[i] = len(c.Power) - m.Spares[i]
	}
	for i, p := range m.Places {
		if p.Cluster < 0 || p.Cluster >= len(clusters) || p.Node < 0 || p.Node >= len(clusters[p.Cluster].Power) {
			return fmt.Errorf("task %d is nowhere: %v", i, p)
		}
		if used[p] {
			return fmt.Errorf("task %d is on a node with another", i)
		}
		if used[p] = true; left[p.Cluster] == 0 {
			return fmt.Errorf("task %d is on a spare of cluster %d", i, p.Cluster)
		}
		left[p.Cluster]--
	}
	order := slices.Sorted(slices.Values(m.Order))
	for i := range clusters {
		if order[i] != i {
			return fmt.Errorf("clusters %v", m.Order)
		}
	}
	return nil
}

func TestMappingsAreValid(t *testing.T) {
	from, to := seeds.Range(t, 2000)
	for seed := from; seed <= to; seed++ {
		rnd := rand.New(rand.NewPCG(seed, 81))
		g, clusters, wl := drawn(rnd, rnd.IntN(25))
		share := []float64{0, 0.1, 0.5, 1}[rnd.IntN(4)]
		m, err := Maheve(g, clusters, share)
		if err == nil {
			err = valid(g, clusters, m)
		}
		l, err2 := Local(g, clusters, share, wl)
		if err2 == nil {
			err2 = valid(g, clusters, l)
		}
		again, _ := Local(g, clusters, share, wl)
		if err != nil || err2 != nil || sum(m.Spares) != sum(l.Spares) || fmt.Sprint(l) != fmt.Sprint(again) {
			t.Fatalf("seed %d: %v, %v, spares %v and %v: %s", seed, err, err2, m.Spares, l.Spares, seeds.Again(t, seed))
		}
	}
}

// What is equal stays as it is given: tasks, clusters and nodes.
func TestEqualOnesStayInOrder(t *testing.T) {
	g := NewGraph(7)
	m, err := Maheve(g, []Cluster{alike(3, 2), alike(3, 2), alike(3, 2)}, DefaultSpares)
	if err != nil {
		t.Fatal(err)
	}
	want := []Place{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}}
	if !slices.Equal(m.Places[:6], want) || !slices.Equal(m.Order, []int{0, 1, 2}) || m.Short != 1 {
		t.Errorf("%+v, want %v and one more", m, want)
	}
}

func TestReplacement(t *testing.T) {
	free := []Cluster{{[]float64{1, 3, 3}}, {}, alike(10, 2)}
	for cluster, want := range map[int]Place{0: {0, 1}, 1: {2, 0}, 2: {2, 0}, -1: {2, 0}, 3: {2, 0}} {
		if got, ok := Replacement(cluster, free); !ok || got != want {
			t.Errorf("of cluster %d: %v, %t; want %v", cluster, got, ok, want)
		}
	}
	// With what is free now nodes differ much, and the strong one counts for more than the ten.
	free[2] = alike(2, 1)
	free[0] = Cluster{[]float64{9}}
	if got, ok := Replacement(1, free); !ok || got != (Place{0, 0}) {
		t.Errorf("clusters are not sorted again: %v, %t", got, ok)
	}
	for _, none := range [][]Cluster{nil, {{}, {}}} {
		if got, ok := Replacement(0, none); ok {
			t.Errorf("of none: %v", got)
		}
	}
}

func TestGraphsAreChecked(t *testing.T) {
	edges := func(list ...[]Edge) [][]Edge { return list }
	for _, c := range []struct {
		g    Graph
		want string
	}{
		{Graph{[]float64{1}, nil}, "a graph of 1 tasks has edges of 0"},
		{Graph{[]float64{-1}, edges(nil)}, "task 0 costs -1: want 0 or more"},
		{Graph{[]float64{math.NaN()}, edges(nil)}, "task 0 costs NaN: want 0 or more"},
		{Graph{[]float64{1}, edges([]Edge{{1, 1}})}, "task 0 has the neighbour 1: there are 1 tasks, from 0"},
		{Graph{[]float64{1}, edges([]Edge{{0, 1}})}, "task 0 is its own neighbour"},
		{Graph{[]float64{1, 1}, edges([]Edge{{1, 0}}, []Edge{{0, 0}})}, "tasks 0 and 1 tell each other 0: want more than 0"},
		{Graph{[]float64{1, 1}, edges([]Edge{{1, 1}}, nil)}, "task 0 has the neighbour 1, which does not have it"},
		{Graph{[]float64{1, 1}, edges(nil, []Edge{{0, 1}})}, "task 1 has the neighbour 0, which does not have it"},
		{Graph{[]float64{1, 1}, edges([]Edge{{1, 1}}, []Edge{{0, 2}})}, "the edge of tasks 0 and 1 has the weight 1 at one end, 2 at the other"},
		{Graph{[]float64{1, 1}, edges([]Edge{{1, 1}, {1, 1}}, []Edge{{0, 1}, {0, 1}})}, "task 0 has the neighbour 1 twice"},
		{*worked(), "<nil>"},
	} {
		if got := fmt.Sprint(c.g.Check()); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	for _, c := range []struct {
		power, share float64
		want         string
	}{
		{0, 0.1, "a node of cluster 0 has the power 0: want more than 0"},
		{1, 1.5, "the share of spares is 1.5: want 0 to 1"},
	} {
		if _, err := Maheve(worked(), []Cluster{alike(6, c.power)}, c.share); fmt.Sprint(err) != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
		if _, err := Local(worked(), []Cluster{alike(6, c.power)}, c.share, nil); fmt.Sprint(err) != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
