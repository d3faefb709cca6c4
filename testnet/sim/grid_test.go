package sim

import (
	"testing"
	"time"

	"zorilla/jobs"
)

func spec(min, max int, mode string) jobs.Spec {
	return jobs.Spec{Args: []string{"prog"}, Min: min, Max: max, Slots: 1, Search: jobs.Search{Mode: mode}}
}

// idle returns an overlay without vicinity cores, and its ideal graph.
func idle(t *testing.T, n int, seed uint64, noise Noise) (*Overlay, Graph) {
	t.Logf("seed %d", seed)
	o := NewOverlay(OverlayConfig{Layout: SixSites(n, false), Seed: seed, Noise: noise, Idle: true})
	return o, Ideal(o, seed)
}

func TestIdealGraph(t *testing.T) {
	o, g := idle(t, 300, 1, Noise{})
	for i := range o.Len() {
		near := 0
		for _, id := range g.Neighbours(i) {
			k, _ := o.Index(id)
			if o.Site(k) == o.Site(i) {
				near++
			}
			if rtt, ok := g.RTT(i, id); !ok || rtt != o.RTT(i, k) {
				t.Fatalf("node %d has measured %v to its neighbour %d", i, rtt, k)
			}
		}
		if n := len(g.Neighbours(i)); near < idealNear || n < idealNear+1 || n > idealMost {
			t.Errorf("node %d has %d neighbours, %d of its site", i, n, near)
		}
	}
	small := NewOverlay(OverlayConfig{Layout: SixSites(12, false), Idle: true})
	if n := len(Ideal(small, 1).Neighbours(0)); n < idealNear {
		t.Errorf("%d neighbours where sites have two nodes", n)
	}
}

func TestGridRunsJobs(t *testing.T) {
	for _, mode := range []string{jobs.SearchPaper, jobs.SearchAdaptive} {
		o, graph := idle(t, 60, 2, Usual())
		g := NewGrid(GridConfig{Overlay: o, Graph: graph, Seed: 2, Runtime: func(*jobs.Spec) time.Duration { return time.Second }})
		id, err := g.Submit(7, spec(8, 8, mode))
		if err != nil {
			t.Fatal(err)
		}
		if !g.Run(10*time.Second, func() bool { return g.Jobs(7).State(id) == jobs.Running }) {
			st, _ := g.Jobs(7).Status(id)
			t.Fatalf("%s: the job is %s: %s", mode, st.State, st.Reason)
		}
		chosen := o.Distances(7, g.Workers(7, id))
		best := o.Distances(7, o.Nearest(7, 8, func(int) int { return 2 }))
		if len(chosen) != 8 || chosen[7] > time.Millisecond || best[0] != 0 || best[2] == 0 {
			t.Errorf("%s: workers are %v away, the oracle's %v", mode, chosen, best)
		}
		if !g.Run(time.Minute, func() bool { return g.Jobs(7).State(id) == jobs.Completed }) {
			t.Errorf("%s: the job does not end", mode)
		}
		c := g.Cost(id)
		if c.Sum.Messages == 0 || c.Sum.Reached+c.Sum.Duplicates > c.Sum.Messages || c.Answers == 0 || c.Requests == 0 || c.Sum.Bytes < 200*c.Sum.Messages {
			t.Errorf("%s: cost %+v", mode, c)
		}
	}
}

func TestGridIsRepeatable(t *testing.T) {
	run := func() (Cost, time.Duration) {
		o, graph := idle(t, 100, 3, Usual())
		g := NewGrid(GridConfig{Overlay: o, Graph: graph, Seed: 3, Busy: func(i int) int { return i % 3 }})
		id, _ := g.Submit(0, spec(40, 40, jobs.SearchAdaptive))
		g.Run(time.Minute, func() bool { return g.Jobs(0).State(id) == jobs.Running })
		return g.Cost(id), o.Elapsed()
	}
	a, at := run()
	b, bt := run()
	if a.Sum != b.Sum || at != bt || a.Answers != b.Answers {
		t.Errorf("one seed gives %+v at %v and %+v at %v", a.Sum, at, b.Sum, bt)
	}
}

// The graph that changes, on the vicinity cores themselves, and a node that is
// lost: its ranks are found a place again.
func TestGridOnLiveOverlay(t *testing.T) {
	o := start(t, SixSites(40, false), 4)
	o.Run(15 * time.Second)
	g := NewGrid(GridConfig{Overlay: o, Seed: 4})
	id, err := g.Submit(0, spec(10, 20, jobs.SearchAdaptive))
	if err != nil {
		t.Fatal(err)
	}
	full := func() bool {
		used := 0
		for _, i := range g.Workers(0, id) {
			if u, _ := g.Jobs(i).Slots(); o.Up(i) && u > 0 {
				used++
			}
		}
		return used == 20
	}
	if !g.Run(time.Minute, full) {
		t.Fatalf("%d workers", len(g.Workers(0, id)))
	}
	victim := g.Workers(0, id)[5]
	if victim == 0 {
		t.Fatal("the test does not test")
	}
	g.Crash(victim)
	if !g.Run(time.Minute, func() bool { return len(g.Workers(0, id)) < 20 }) || !g.Run(time.Minute, full) {
		t.Fatalf("%d workers after a loss", len(g.Workers(0, id)))
	}
}

func TestExcess(t *testing.T) {
	ratio, clear := Excess([]time.Duration{0, ms, 12 * ms}, []time.Duration{0, ms, 10 * ms})
	if ratio < 1.18 || ratio > 1.19 || clear != ratio {
		t.Errorf("got %v and %v, want 13/11", ratio, clear)
	}
	if ratio, clear = Excess([]time.Duration{ms / 4}, []time.Duration{ms / 5}); ratio != 1.25 || clear != 1 {
		t.Errorf("got %v and %v: what is within the noise does not count", ratio, clear)
	}
	if ratio, clear = Excess([]time.Duration{0}, []time.Duration{0}); ratio != 1 || clear != 1 {
		t.Errorf("got %v and %v at the origin itself", ratio, clear)
	}
}

func TestPaperLayout(t *testing.T) {
	for _, n := range []int{338, 430} {
		l, sum := Paper(n), 0
		for s, size := range l.Sizes {
			sum += size
			if s > 1 && l.RTT[0][s] < l.RTT[0][s-1] {
				t.Errorf("site %d is nearer than the one before", s)
			}
		}
		if sum != n || len(PaperSites()) != len(l.Sizes) {
			t.Errorf("%d nodes, want %d", sum, n)
		}
	}
}
