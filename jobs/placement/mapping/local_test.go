package mapping

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"zorilla/internal/seeds"
)

// ET(V_i) of section 3.1, by hand.
func TestTimes(t *testing.T) {
	g := NewGraph(3)
	g.Cost = []float64{4, 1, 3}
	g.Join(0, 1, 2)
	g.Join(1, 2, 5)
	clusters := []Cluster{{[]float64{2, 4}}, {[]float64{1}}}
	wl := func(a, b int) float64 {
		if a == b {
			return 0.1
		}
		return 1
	}
	got := g.Times(clusters, []Place{{0, 0}, {0, 1}, {1, 0}}, wl)
	if want := "2.2000 5.4500 8.0000"; four(got) != want {
		t.Errorf("%s, want %s", four(got), want)
	}
}

// After the first cluster those of nearly equal marks come by their distance; others by mark.
func TestNearestClusters(t *testing.T) {
	clusters := []Cluster{alike(10, 1), alike(10, 1), alike(10, 1), alike(10, 1)}
	away := []float64{0, 9, 1, 5} // on a line
	wl := func(a, b int) float64 { return math.Abs(away[a] - away[b]) }
	for _, c := range []struct {
		marks []float64
		want  []int
	}{
		{[]float64{2, 2, 2, 2}, []int{0, 2, 3, 1}},
		{[]float64{2, 1.96, 1.92, 1.85}, []int{0, 2, 1, 3}}, // 3 is no peer of 1
		{[]float64{1, 1.9, 1.1, 1.85}, []int{1, 3, 2, 0}},
		{[]float64{2, -1, 2, 2}, []int{0, 2, 3, 1}},
	} {
		if got := nearest(c.marks, clusters, wl); !slices.Equal(got, c.want) {
			t.Errorf("marks %v: %v, want %v", c.marks, got, c.want)
		}
	}
}

// Two pairs that talk, each torn apart, come together.
func TestExchangeBringsNeighboursTogether(t *testing.T) {
	g := NewGraph(4)
	g.Join(0, 1, 1)
	g.Join(2, 3, 1)
	clusters := []Cluster{alike(2, 1), alike(2, 1)}
	wl := func(a, b int) float64 { return math.Abs(float64(a - b)) }
	places := []Place{{0, 0}, {1, 0}, {0, 1}, {1, 1}}
	newExchange(g, clusters, places, wl).run(effort)
	for i, time := range g.Times(clusters, places, wl) {
		if time != 1 {
			t.Errorf("task %d takes %v at %v", i, time, places)
		}
	}
}

// Exchanges make the longest iteration no longer, and keep count of what they change.
func TestExchangesNeverHarm(t *testing.T) {
	from, to := seeds.Range(t, 500)
	better := 0
	for seed := from; seed <= to; seed++ {
		rnd := rand.New(rand.NewPCG(seed, 82))
		g, clusters, wl := drawn(rnd, 1+rnd.IntN(25))
		m, err := Maheve(g, clusters, 0)
		if err != nil {
			t.Fatal(err)
		}
		before := g.Times(clusters, m.Places, wl)
		x := newExchange(g, clusters, m.Places, wl)
		x.run([]int{effort, 500}[rnd.IntN(2)])
		after := g.Times(clusters, m.Places, wl)
		switch {
		case slices.Max(after) > slices.Max(before)+1e-9, squares(after) > squares(before)+1e-9, valid(g, clusters, m) != nil:
			t.Errorf("the longest takes %v, before %v; squares %v, before %v; %v", slices.Max(after), slices.Max(before), squares(after), squares(before), valid(g, clusters, m))
		case four(x.times) != four(after):
			t.Errorf("counts %v, are %v", x.times, after)
		case squares(after) < squares(before):
			better++
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, seeds.Again(t, seed))
		}
	}
	if t.Logf("%d of %d were better", better, to-from+1); better == 0 {
		t.Error("none was better")
	}
}

func squares(list []float64) (sum float64) {
	for _, v := range list {
		sum += v * v
	}
	return sum
}

func TestReplaceInTheMannerOfLocal(t *testing.T) {
	g := NewGraph(3)
	g.Join(0, 1, 1)
	g.Join(0, 2, 1)
	places := []Place{{0, 0}, {1, 0}, {1, 1}}
	for _, c := range []struct {
		free   []Cluster
		far    float64
		want   Place
		wanted bool
	}{
		{[]Cluster{{[]float64{1}}, {}, {[]float64{2, 3}}}, 9, Place{0, 0}, true},   // its own cluster
		{[]Cluster{{}, {[]float64{1}}, {[]float64{2, 3}}}, 9, Place{1, 0}, true},   // beside both neighbours
		{[]Cluster{{}, {[]float64{1}}, {[]float64{2, 3}}}, 0.1, Place{2, 1}, true}, // distance hardly matters: the strongest
		{[]Cluster{{}, {}, {}}, 1, Place{}, false},
	} {
		wl := func(a, b int) float64 { return c.far * math.Abs(float64(a-b)) }
		if got, ok := g.Replace(0, places, c.free, wl); ok != c.wanted || got != c.want {
			t.Errorf("of %v, far %v: %v, %t; want %v", c.free, c.far, got, ok, c.want)
		}
	}
}

// best is the shortest that the longest iteration can be, by trying all.
func best(g *Graph, clusters []Cluster, wl Latency) float64 {
	var nodes []Place
	for c := range clusters {
		for n := range clusters[c].Power {
			nodes = append(nodes, Place{c, n})
		}
	}
	places, used, least := make([]Place, len(g.Cost)), make([]bool, len(nodes)), math.Inf(1)
	var from func(i int)
	from = func(i int) {
		if i == len(places) {
			least = min(least, slices.Max(g.Times(clusters, places, wl)))
			return
		}
		for k := range nodes {
			if !used[k] {
				places[i], used[k] = nodes[k], true
				from(i + 1)
				used[k] = false
			}
		}
	}
	from(0)
	return least
}

// No mapping is better than the best of all; how far they are from it is printed with -v.
func TestAgainstTheBestOfAll(t *testing.T) {
	from, to := seeds.Range(t, uint64(seeds.Fewer(200, 40)))
	ratios := map[string][]float64{}
	for seed := from; seed <= to; seed++ {
		rnd := rand.New(rand.NewPCG(seed, 83))
		var g *Graph
		var clusters []Cluster
		var wl Latency
		for nodes := 0; nodes == 0 || nodes > 7; {
			g, clusters, wl = drawn(rnd, 2+rnd.IntN(4))
			nodes = len(allPowers(clusters))
		}
		least := best(g, clusters, wl)
		for _, share := range []float64{0, DefaultSpares} {
			m, err := Maheve(g, clusters, share)
			l, err2 := Local(g, clusters, share, wl)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			for name, m := range map[string]Mapping{"maheve": m, "local": l} {
				if err := valid(g, clusters, m); err != nil {
					t.Errorf("seed %d, %s: %v", seed, name, err)
				}
				got := slices.Max(g.Times(clusters, m.Places, wl))
				if got < least-1e-9 {
					t.Errorf("seed %d, %s: %v, the best of all is %v", seed, name, got, least)
				}
				if least > 0 {
					name = fmt.Sprintf("%s, %.0f %% spares", name, 100*share)
					ratios[name] = append(ratios[name], got/least)
				}
			}
		}
		if t.Failed() {
			t.Fatal(seeds.Again(t, seed))
		}
	}
	for name, list := range ratios {
		slices.Sort(list)
		n := len(list)
		t.Logf("%s: longest iteration by the best of all: median %.2f, 90 %% within %.2f, worst %.2f (%d cases)", name, list[n/2], list[n*9/10], list[n-1], n)
	}
}

func allPowers(clusters []Cluster) (list []float64) {
	for _, c := range clusters {
		list = append(list, c.Power...)
	}
	return list
}

// large returns 10 000 tasks of ten neighbours, and 12 000 nodes in 40 clusters.
func large() (*Graph, []Cluster, Latency) {
	rnd := rand.New(rand.NewPCG(1, 84))
	const tasks = 10_000
	g := NewGraph(tasks)
	for i := range tasks {
		g.Cost[i] = 1 + rnd.Float64()
		for k := range 5 {
			g.Join(i, (i+1+k*k)%tasks, 1)
		}
	}
	var clusters []Cluster
	for range 40 {
		clusters = append(clusters, alike(300, 1+3*rnd.Float64()))
	}
	return g, clusters, func(a, b int) float64 { return 0.01 * math.Abs(float64(a-b)) }
}

func BenchmarkMaheve(b *testing.B) {
	g, clusters, _ := large()
	for b.Loop() {
		if _, err := Maheve(g, clusters, DefaultSpares); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLocal(b *testing.B) {
	g, clusters, wl := large()
	for b.Loop() {
		if _, err := Local(g, clusters, DefaultSpares, wl); err != nil {
			b.Fatal(err)
		}
	}
}
