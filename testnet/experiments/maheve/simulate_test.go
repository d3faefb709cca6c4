package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"zorilla/internal/seeds"
	"zorilla/jobs/placement/mapping"
)

// pair is two tasks that tell each other everything, and times that are easy to follow.
func pair() (*problem, *measured) {
	g := mapping.NewGraph(2)
	g.Join(0, 1, 1)
	seconds := func(s float64) figure { return figure{Seconds: s} }
	return &problem{g: g}, &measured{Detection: seconds(3), RestoreNear: seconds(1), RestoreFar: seconds(5), Checkpoint: seconds(5), Iteration: seconds(1),
		MessageNear: seconds(0.1), MessageFar: seconds(0.1)}
}

// on gives a problem nodes at sites, one cluster at each, and they came in that order.
func (p *problem) on(nodes ...int) *shape {
	sh := &shape{nodes: nodes, sites: len(nodes), distance: slices.Repeat([]float64{1}, len(nodes)*len(nodes))}
	for c, n := range nodes {
		sh.site, sh.power = append(sh.site, c), append(sh.power, 1)
		for i := range n {
			p.came = append(p.came, mapping.Place{Cluster: c, Node: i})
		}
	}
	p.clusters = sh.all()
	return sh
}

// A message takes a tenth of an iteration, so each result is heard one iteration later: after t seconds
// the error is reduction^ceil(t/2). Both nodes fail after 20; the last that each had sent was of second 19.
func TestSimulationByHand(t *testing.T) {
	for _, c := range []struct {
		name    string
		nodes   []int
		failing bool
		power   int // of reduction that is enough
		want    outcome
	}{
		{"no failure", []int{2}, false, 3, outcome{seconds: 5}},
		{"longer", []int{2}, false, 15, outcome{seconds: 29}},
		{"both restored near at 24: as after second 19, and four seconds and a half later", []int{4}, true, 15, outcome{seconds: 33, failed: 2}},
		{"both restored far at 28", []int{2, 2}, true, 15, outcome{seconds: 37, failed: 2, far: 2}},
		{"one node too few", []int{3}, true, 15, outcome{seconds: math.Inf(1), failed: 2}},
		{"not in time", []int{2}, false, 9999, outcome{seconds: math.Inf(1)}},
	} {
		p, m := pair()
		sh := p.on(c.nodes...)
		var failures *trouble
		if c.failing {
			failures = &trouble{rnd: rand.New(rand.NewPCG(1, 1))}
		}
		how := methods()[0]
		got := simulate(p, sh, m, &how, failures, nil, limits{error: math.Pow(reduction, float64(c.power)) * 1.0001, seconds: 100})
		if got.error = 0; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// What is restored begins with the error of its last checkpoint, and has not converged while it is away.
func TestRestoredFromCheckpoint(t *testing.T) {
	p, m := pair()
	sh := p.on(4)
	s := &simulation{state: newState(p, nil), m: m, shape: sh}
	s.take(asTheyCame(s.state))
	s.begin()
	for now := 1.0; now <= 7; now++ {
		s.step(0, now)
		s.step(1, now)
	}
	third, fourth := math.Pow(reduction, 3), math.Pow(reduction, 4) // after second 5, when there was a checkpoint, and 7
	failures := &trouble{rnd: rand.New(rand.NewPCG(1, 1))}
	if !near(s.now[0], fourth) || !s.converged(fourth*1.001) || s.fail(7.5, failures) != 2 || s.fail(7.6, failures) != 0 || s.converged(1) {
		t.Error("both are away, once, and that is not converged")
	}
	node, ok := s.nextThatCame(0)
	if !ok || node != (mapping.Place{Node: 2}) || !s.replace(0, node, 10.5) || s.free[node] || s.next[0] != 11.5 || !near(s.now[0], third) {
		t.Errorf("on %v: error %v, want %v; goes on at %v", node, s.now[0], third, s.next[0])
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// An iteration takes the task's cost by the node's power.
func TestIterationsTakeCostByPower(t *testing.T) {
	p, m := pair()
	sh := p.on(2)
	p.g.Cost[1], p.clusters[0].Power[0], p.clusters[0].Power[1] = 3, 2, 4
	s := &simulation{state: newState(p, nil), m: m, shape: sh}
	s.take(asTheyCame(s.state))
	if s.begin(); s.next[0] != 0.5 || s.next[1] != 0.75 {
		t.Errorf("iterations end at %v", s.next)
	}
}

// In the mean two nodes fail every 20 s, whether at the same time or at random.
func TestFailuresAreAsMany(t *testing.T) {
	for _, random := range []bool{false, true} {
		f := &trouble{rand.New(rand.NewPCG(1, 9)), random}
		now, n := 0.0, 0
		for ; n < 20_000; n += f.nodes() {
			now += f.pause()
		}
		if mean := now / float64(n); math.Abs(mean-every/atATime) > 0.3 {
			t.Errorf("random %t: one in %v s", random, mean)
		}
	}
}

func TestShapes(t *testing.T) {
	from, to := seeds.Range(t, 50)
	for seed := from; seed <= to; seed++ {
		for _, k := range kinds() {
			s := drawShape(rand.New(rand.NewPCG(seed, 6)), &k)
			nodes, sites, mean := 0, map[int]bool{}, 0.0
			for i, n := range s.nodes {
				nodes, mean = nodes+n, mean+float64(n)*s.power[i]/float64(k.nodes)
				sites[s.site[i]] = true
			}
			if nodes != k.nodes || len(s.nodes) != k.clusters || len(sites) != k.sites || slices.Min(s.nodes) < leastNodes {
				t.Errorf("%v nodes at %v", s.nodes, s.site)
			}
			if math.Abs(s.hd()-k.hd) > 1e-6 || math.Abs(mean-1) > 1e-6 || slices.Max(s.power) > slices.Min(s.power)*(mostUnlike+1e-6) {
				t.Errorf("powers %v: hd %v, want %v; mean %v", s.power, s.hd(), k.hd, mean)
			}
			for a := range s.sites {
				for b := range a {
					if d := s.distance[a*s.sites+b]; d < leastDistance || d != s.distance[b*s.sites+a] {
						t.Errorf("sites %d and %d are %v apart, and %v", a, b, d, s.distance[b*s.sites+a])
					}
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d, hd %v: %s", seed, k.hd, seeds.Again(t, seed))
			}
		}
	}
}

func TestGraphs(t *testing.T) {
	from, to := seeds.Range(t, 1000)
	for seed := from; seed <= to; seed++ {
		g := drawGraph(rand.New(rand.NewPCG(seed, 7)))
		ends, cost := 0, 0.0
		for i, edges := range g.Edges {
			if ends, cost = ends+len(edges), cost+g.Cost[i]; len(edges) < fewest || len(edges) > most {
				t.Errorf("task %d has %d neighbours", i, len(edges))
			}
		}
		if g.Check() != nil || len(g.Cost) != tasks || ends != tasks*meanNeighbours || math.Abs(cost-tasks) > 1e-6 {
			t.Errorf("%d tasks cost %v, with %d ends of edges; %v", len(g.Cost), cost, ends, g.Check())
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, seeds.Again(t, seed))
		}
	}
}

// Each method gives each task a node of its own, at the beginning and until no node is left.
func TestMethodsGiveEachTaskANode(t *testing.T) {
	_, m := pair()
	o := options{shapes: 2, seeds: 1}
	for _, k := range kinds() {
		for _, tr := range o.trials(&k, m) {
			for _, how := range methods() {
				s := newState(tr.problem, rand.New(rand.NewPCG(1, 8)))
				s.take(how.place(s))
				if len(s.free) != k.nodes-tasks || len(s.places) != tasks {
					t.Fatalf("hd %v, %s: %d free nodes of %d", k.hd, how.name, len(s.free), k.nodes)
				}
				for i := 0; len(s.free) > 0; i++ {
					node, ok := how.replace(s, i%tasks)
					if !ok || !s.free[node] {
						t.Fatalf("hd %v, %s: %v (%t) is not free, %d are", k.hd, how.name, node, ok, len(s.free))
					}
					own := s.places[i%tasks].Cluster
					beside := slices.ContainsFunc(s.freeNodes(), func(n mapping.Place) bool { return n.Cluster == own })
					if beside && node.Cluster != own && slices.Contains([]string{byMaheve, ours, nearOnly}, how.name) {
						t.Fatalf("hd %v, %s: cluster %d although %d has a free node", k.hd, how.name, node.Cluster, own)
					}
					delete(s.free, node)
					s.places[i%tasks] = node
				}
				if node, ok := how.replace(s, 0); ok {
					t.Errorf("hd %v, %s: %v although none is free", k.hd, how.name, node)
				}
			}
		}
	}
}

// The comparators do what their originals are for: QM leaves no task on a node where its iterations take longer than
// on a free one, F-EC cuts few edges, and replaces beside the neighbours.
func TestComparators(t *testing.T) {
	_, m := pair()
	o := options{shapes: 2, seeds: 3}
	for _, k := range kinds() {
		for _, tr := range o.trials(&k, m) {
			s := newState(tr.problem, nil)
			s.take(quickest(s))
			placed := func(i int) (mapping.Place, bool) { return s.places[i], true }
			for i, p := range s.places {
				if node, least := s.leastTime(i, s.freeNodes(), placed); least < s.time(i, p, placed) {
					t.Errorf("hd %v: task %d is on %v, and quicker on %v", k.hd, i, p, node)
				}
			}
			cuts := func(places []mapping.Place) (n int) {
				for i, edges := range tr.g.Edges {
					for _, e := range edges {
						if places[i].Cluster != places[e.To].Cluster {
							n++
						}
					}
				}
				return n / 2
			}
			if few, some := cuts(fewestCuts(newState(tr.problem, nil))), cuts(asTheyCame(newState(tr.problem, nil))); few > some/2 {
				t.Errorf("hd %v: %d edges are cut, by default %d", k.hd, few, some)
			}
			s = newState(tr.problem, nil)
			s.take(asTheyCame(s))
			beside := map[int]int{}
			for _, e := range tr.g.Edges[0] {
				beside[s.places[e.To].Cluster]++
			}
			node, _ := s.besideMost(0)
			for _, other := range s.freeNodes() {
				if beside[other.Cluster] > beside[node.Cluster] {
					t.Errorf("hd %v: task 0 goes to cluster %d, its neighbours are at %v", k.hd, node.Cluster, beside)
				}
			}
		}
	}
}
