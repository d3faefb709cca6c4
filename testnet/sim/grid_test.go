package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/model"
	"zorilla/node/fastrpc"
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

func TestIdealKnowsMembersAlone(t *testing.T) {
	o := NewOverlay(OverlayConfig{Layout: SixSites(12, false), Idle: true})
	g := Ideal(o, 1)
	o.Leave(3)
	for _, m := range g.Nearer(0, time.Hour, o.Len()) {
		if m.ID == o.ID(3) {
			t.Error("knows how far a node is that has left")
		}
	}
	if n := len(g.Nearer(0, time.Hour, o.Len())); n != 10 {
		t.Errorf("knows how far %d of ten others are", n)
	}
}

func TestGridRunsJobs(t *testing.T) {
	for _, mode := range []string{jobs.SearchPaper, jobs.SearchAdaptive} {
		o, graph := idle(t, 60, 2, Usual())
		g := NewGrid(GridConfig{Overlay: o, Graph: graph, Seed: 2, Fate: Lasting(time.Millisecond, time.Second)})
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
		if c.Sum.Messages == 0 || c.Sum.Reached+c.Sum.Duplicates > c.Sum.Messages || c.Answers == 0 || c.Sum.Bytes < 200*c.Sum.Messages {
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

// Compact finds a site that holds the job, and a bound is kept on every pair,
// though nodes only estimate how far apart others are.
func TestGridPlacesByPairs(t *testing.T) {
	o, graph := idle(t, 120, 5, Usual())
	const origin = 7
	site := o.Site(origin)
	busy := func(i int) int { // a few slots are left at the own site
		if o.Site(i) == site && i%5 != 2 {
			return 2
		}
		return 0
	}
	for _, c := range []struct {
		workers  int
		strategy string
		bound    time.Duration
		sites    int
	}{{6, "compact", 0, 1}, {30, "compact", 0, 1}, {30, "", time.Millisecond, 1}, {30, "spread", 12 * time.Millisecond, 3}, {30, "", 0, 2}} {
		g := NewGrid(GridConfig{Overlay: o, Graph: graph, Seed: 5, Busy: busy})
		s := spec(c.workers, c.workers, "")
		s.Strategy, s.MaxRTT = c.strategy, codec.Duration(c.bound)
		id, err := g.Submit(origin, s)
		if err != nil {
			t.Fatal(err)
		}
		if !g.Run(30*time.Second, func() bool { return g.Jobs(origin).State(id) == jobs.Running }) {
			st, _ := g.Jobs(origin).Status(id)
			t.Fatalf("%+v: the job is %s: %s", c, st.State, st.Reason)
		}
		worst, sites := time.Duration(0), map[int]bool{}
		for _, a := range g.Workers(origin, id) {
			sites[o.Site(a)] = true
			for _, b := range g.Workers(origin, id) {
				worst = max(worst, o.Distance(a, b))
			}
		}
		st, _ := g.Jobs(origin).Status(id)
		asked := c.bound > 0 || c.strategy != ""
		if len(sites) > c.sites || c.bound > 0 && worst > c.bound || st.Worst == nil || asked && (st.Worst.Estimated || time.Duration(st.Worst.RTT) < worst) {
			t.Errorf("%+v: at %d sites, %v apart, said to be %v", c, len(sites), worst, st.Worst)
		}
		t.Logf("%+v: %d sites, worst pair %v, after %v, %d copies", c, len(sites), worst, st.Started.Sub(st.Submitted), g.Cost(id).Sum.Messages)
	}
	g := NewGrid(GridConfig{Overlay: o, Graph: graph, Seed: 6, Busy: busy})
	s := spec(60, 60, "")
	s.MaxRTT = codec.Duration(time.Millisecond)
	id, err := g.Submit(origin, s)
	if err != nil {
		t.Fatal(err)
	}
	g.Run(20*time.Second, func() bool { return false })
	if st, _ := g.Jobs(origin).Status(id); st.State != jobs.Pending || !strings.Contains(st.Reason, "too far apart") {
		t.Errorf("60 workers at one site: %s: %s", st.State, st.Reason)
	}
}

// A start where nobody has talked takes two round trips to the farthest worker, one for the search
// and one for the grant and the report, which are packets. Where these are too long it takes three, as
// nodes connect while the search goes on.
func TestRoundTripsOfAStart(t *testing.T) {
	for _, x := range []struct {
		nodes, workers int // of neighbours, and of others
		args           []string
		most           float64
	}{
		{12, 8, []string{"prog"}, 2.3}, {36, 40, []string{"prog"}, 2.3},
		{12, 8, []string{"prog", strings.Repeat("x", fastrpc.MaxBody)}, 3.3}, {36, 40, []string{"prog", strings.Repeat("x", fastrpc.MaxBody)}, 3.3},
	} {
		l, paths := example(t).Layout(x.nodes, 7)
		o := NewOverlay(OverlayConfig{Layout: l, Paths: paths, Seed: 7})
		o.Run(time.Minute)
		g := NewGrid(GridConfig{Overlay: o, Seed: 7, Fate: Lasting(time.Millisecond, 100*ms)})
		var trips []float64
		for origin := range 10 {
			s := spec(x.workers, x.workers, jobs.SearchAdaptive)
			s.Args = x.args
			id, err := g.Start(origin, s, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			st, _ := g.Jobs(origin).Status(id)
			far := slices.Max(o.Distances(origin, g.Workers(origin, id)))
			trips = append(trips, float64(st.Started.Sub(st.Submitted))/float64(far))
			g.Pass(10 * time.Second)
		}
		if slices.Max(trips) > x.most {
			t.Errorf("%d nodes, %d arguments: starts take %.1f round trips, want at most %.1f", x.nodes, len(x.args), slices.Max(trips), x.most)
		}
	}
}

// A request that was answered is owed no more; a reply that is lost breaks its connection.
func TestAnsweredRequestsAreNotOwed(t *testing.T) {
	o, graph := idle(t, 6, 1, Noise{})
	replies := 0
	g := NewGrid(GridConfig{
		Overlay: o, Graph: graph, Fate: Lasting(time.Millisecond, 10*time.Second), Slots: func(int) int { return 1 },
		Lose: func(from, to int, m model.Message) bool {
			if from == to || m.Kind != model.Reply {
				return false
			}
			replies++
			return replies == 1
		},
	})
	id, err := g.Submit(0, spec(4, 4, ""))
	if err != nil {
		t.Fatal(err)
	}
	if !g.Run(time.Minute, func() bool { return g.Jobs(0).State(id).Final() }) {
		t.Fatalf("the job is %s", g.Jobs(0).State(id))
	}
	g.Run(time.Minute, func() bool { return false })
	for i := range o.Len() {
		if n := len(g.node(i).owes); n > 0 {
			t.Errorf("node %d owes answers to %d of %d requests, which were answered", i, n, replies)
		}
	}
}
