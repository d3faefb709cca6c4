package placement

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/seeds"
)

// plane is nodes on a plane, the origin in its middle: round trips are lengths.
type plane struct {
	x, y   []float64
	offers []Offer
}

func newPlane(rnd *rand.Rand, nodes, sites, workers int) *plane {
	p := &plane{}
	for i := range nodes {
		x, y := 40*rnd.Float64(), 40*rnd.Float64()
		if sites > 0 { // around one of them
			at := rand.New(rand.NewPCG(uint64(rnd.IntN(sites)), 0))
			x, y = 40*at.Float64()+x/40, 40*at.Float64()+y/40
		}
		p.x, p.y = append(p.x, x), append(p.y, y)
		p.offers = append(p.offers, Offer{fmt.Sprintf("n%04d", i), length(x-20, y-20), 1 + rnd.IntN(workers)})
	}
	return p
}

func length(x, y float64) time.Duration {
	return time.Duration(math.Hypot(x, y)*float64(ms)) + 1
}

func (p *plane) between(a, b int) time.Duration {
	if a == b {
		return 0
	}
	return length(p.x[a]-p.x[b], p.y[a]-p.y[b])
}

// check returns the worst pair of a choice that is otherwise right.
func (p *plane) check(t *testing.T, assign [][]int, n, r int) time.Duration {
	t.Helper()
	if _, err := checkPlaces(p.offers, assign, n, r); err != nil {
		t.Fatal(err)
	}
	_, _, worst := Worst(slices.Concat(assign...), p.between)
	return worst
}

// subsets calls f with every set of offers.
func subsets(n int, f func(list []int)) {
	for bits := 1; bits < 1<<n; bits++ {
		var list []int
		for i := range n {
			if bits&(1<<i) != 0 {
				list = append(list, i)
			}
		}
		f(list)
	}
}

// Small cases, with all sets of nodes tried: compact is the best but for the
// slack, a bound is kept, met whenever it can be, and the choice under it is the
// best that the strategy has.
func TestGroupsAgainstBruteForce(t *testing.T) {
	seeds.Random(t, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		met, unmet := 0, 0
		for i := range 300 {
			nodes := 2 + rnd.IntN(7)
			if i%60 == 0 {
				nodes = 14
			}
			p := newPlane(rnd, nodes, rnd.IntN(4), 3)
			n, r := 1+rnd.IntN(6), 1+rnd.IntN(2)
			bound := time.Duration(1 + rnd.IntN(30*int(ms)))
			least := time.Duration(math.MaxInt64)
			cost := map[Strategy][]time.Duration{}
			subsets(len(p.offers), func(list []int) {
				some := make([]Offer, len(list))
				for i, k := range list {
					some[i] = p.offers[k]
				}
				if feasible(some, n, r) != nil {
					return
				}
				_, _, worst := Worst(list, p.between)
				least = min(least, worst)
				if worst > bound {
					return
				}
				for _, s := range append(byRTT, Bandwidth) {
					assign, err := PlaceReplicas(s, some, n, r)
					if err != nil {
						t.Fatal(err)
					}
					f := field{Wish: Wish{Strategy: s}, offers: some, places: n * r}
					if c := f.cost(assign); cost[s] == nil || slices.Compare(c, cost[s]) < 0 {
						cost[s] = c
					}
				}
			})
			possible := least < math.MaxInt64
			assign, err := Wish{Strategy: Compact, Ranks: n, Replicas: r, Between: p.between}.Place(p.offers)
			if (err == nil) != possible || err != nil && !errors.Is(err, ErrInfeasible) {
				t.Fatalf("compact: %v, where the smallest worst pair is %v", err, least)
			}
			if !possible {
				continue
			}
			if worst := p.check(t, assign, n, r); worst > least+Slack(least) {
				t.Fatalf("compact: %v apart, the best is %v", worst, least)
			}
			for _, s := range byDistance() {
				assign, err := Wish{Strategy: s, Ranks: n, Replicas: r, MaxRTT: bound, Between: p.between}.Place(p.offers)
				if (err == nil) != (least <= bound) || err != nil && !errors.Is(err, ErrApart) {
					t.Fatalf("%s within %v: %v, where the smallest worst pair is %v", s, bound, err, least)
				}
				if err != nil {
					unmet++
					continue
				}
				met++
				if worst := p.check(t, assign, n, r); worst > bound {
					t.Fatalf("%s within %v: %v apart", s, bound, worst)
				}
				f := field{Wish: Wish{Strategy: s}, offers: p.offers, places: n * r}
				if got := f.cost(assign); s != Compact && !slices.Equal(got, cost[s]) {
					t.Fatalf("%s within %v costs %v, the best is %v", s, bound, got, cost[s])
				}
			}
		}
		if met < 100 || unmet < 100 {
			t.Errorf("%d bounds were met, %d not", met, unmet)
		}
	})
}

// Large cases: the bound is never broken, compact is within twice the least
// radius, below which no choice is, and a bound of that much is always met.
func TestLargeGroups(t *testing.T) {
	seeds.Random(t, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		for range 6 {
			p := newPlane(rnd, 50+rnd.IntN(150), rnd.IntN(3)*6, 4)
			n, r := 2+rnd.IntN(60), 1+rnd.IntN(2)
			if feasible(p.offers, n, r) != nil {
				continue
			}
			least := time.Duration(math.MaxInt64)
			for v := range p.offers {
				least = min(least, p.radius(v, n, r))
			}
			assign, err := Wish{Strategy: Compact, Ranks: n, Replicas: r, Between: p.between}.Place(p.offers)
			if err != nil {
				t.Fatal(err)
			}
			worst := p.check(t, assign, n, r)
			if worst > 2*least+Slack(2*least) {
				t.Errorf("compact: %v apart, no choice is below %v", worst, least)
			}
			t.Logf("%d nodes, %d x %d: %v apart, at least %v", len(p.offers), n, r, worst, least)
			for _, s := range byDistance() {
				for _, bound := range []time.Duration{2 * least, worst, least / 2} {
					assign, err := Wish{Strategy: s, Ranks: n, Replicas: r, MaxRTT: bound, Between: p.between}.Place(p.offers)
					switch {
					case bound == 0: // no bound
						if err != nil {
							t.Errorf("%s without a bound: %v", s, err)
						}
					case bound < least:
						if !errors.Is(err, ErrApart) {
							t.Errorf("%s within %v: %v, but no choice is below %v", s, bound, err, least)
						}
					case err != nil && bound == 2*least:
						t.Errorf("%s within %v: %v", s, bound, err)
					case err == nil && p.check(t, assign, n, r) > bound:
						t.Errorf("%s within %v: farther apart", s, bound)
					}
				}
			}
		}
	})
}

// radius is that of the narrowest circle around a node that holds enough.
func (p *plane) radius(v, n, r int) time.Duration {
	order := make([]int, len(p.offers))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(p.between(v, a) - p.between(v, b)) })
	room := 0
	for k, i := range order {
		if room += min(p.offers[i].Workers, n); room >= n*r && k+1 >= r {
			return p.between(v, i)
		}
	}
	return math.MaxInt64
}

// sites is offers of two slots each at sites 10 ms apart, named by their first
// letter, nodes of a site 0.2 ms apart.
func sites(names ...string) (offers []Offer, between func(a, b int) time.Duration) {
	for i, name := range names {
		offers = append(offers, Offer{name, time.Duration(1+i) * ms, 2})
	}
	return offers, func(a, b int) time.Duration {
		switch {
		case a == b:
			return 0
		case offers[a].Node[0] == offers[b].Node[0]:
			return ms / 5
		}
		return 10 * ms
	}
}

func TestCompactStaysAtASite(t *testing.T) {
	offers, between := sites("a1", "b1", "b2", "c1", "c2", "a2", "c3")
	for _, c := range []struct {
		wish Wish
		want string
	}{
		{Wish{Strategy: Compact, Ranks: 2}, "a1 a1"},
		{Wish{Strategy: Compact, Ranks: 4}, "b1 b1 b2 b2"}, // the nearest site with room
		{Wish{Strategy: Compact, Ranks: 5}, "c1 c1 c2 c2 c3"},
		{Wish{Strategy: Compact, Ranks: 7}, "a1 a1 b1 b1 b2 b2 c1"}, // no site has room: the nearest
		{Wish{Strategy: Compact, Ranks: 2, Replicas: 2}, "b1 b1 b2 b2"},
		{Wish{Strategy: Spread, Ranks: 3, MaxRTT: ms}, "c1 c2 c3"},
		{Wish{Strategy: Spread, Ranks: 3}, "a1 b1 b2"},
		{Wish{Ranks: 3, MaxRTT: ms}, "b1 b1 b2"},
		{Wish{Strategy: Concentrate, Ranks: 3, MaxRTT: 10 * ms}, "a1 a1 b1"},
	} {
		c.wish.Between = between
		assign, err := c.wish.Place(offers)
		if got := nodes(offers, slices.Concat(assign...)); err != nil || got != c.want {
			t.Errorf("%+v: got %q, %v, want %q", c.wish, got, err, c.want)
		}
	}
	_, err := Wish{Ranks: 7, MaxRTT: ms, Between: between}.Place(offers)
	if want := "nodes too far apart: the closest that have room for 7 workers are up to 10ms apart, want 1ms"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
	// The job is at site a already, one node of which has left room.
	beside := func(a, b int) time.Duration {
		if a == b {
			return map[bool]time.Duration{true: ms / 5, false: 10 * ms}[offers[a].Node[0] == 'a']
		}
		return between(a, b)
	}
	assign, err := Wish{Ranks: 2, MaxRTT: ms, Strategy: Spread, Between: beside}.Place(offers)
	if got := nodes(offers, slices.Concat(assign...)); err != nil || got != "a1 a2" {
		t.Errorf("beside a: %q, %v", got, err)
	}
	if _, err = (Wish{Ranks: 5, MaxRTT: ms, Between: beside}).Place(offers); !errors.Is(err, ErrApart) {
		t.Errorf("five beside a: %v", err)
	}
}

// More nodes than are looked at, and the order in which they are listed.
func TestManyNodes(t *testing.T) {
	seeds.Random(t, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		p := newPlane(rnd, MaxNodes+200, 8, 1)
		w := Wish{Strategy: Compact, Ranks: 100, Between: p.between}
		assign, err := w.Place(p.offers)
		if err != nil {
			t.Fatal(err)
		}
		first := nodes(p.offers, assign[0])
		order := rnd.Perm(len(p.offers))
		mixed := make([]Offer, len(order))
		for i, k := range order {
			mixed[i] = p.offers[k]
		}
		w.Between = func(a, b int) time.Duration { return p.between(order[a], order[b]) }
		if assign, err = w.Place(mixed); err != nil || nodes(mixed, assign[0]) != first {
			t.Errorf("another order of offers, other places: %v", err)
		}
		w.Ranks, w.Between = MaxNodes+1, p.between
		if _, err := w.Place(p.offers); !errors.Is(err, ErrInfeasible) || !strings.Contains(err.Error(), "the nearest 512 nodes") {
			t.Errorf("got %v", err)
		}
	})
}

func TestWorst(t *testing.T) {
	between := func(a, b int) time.Duration { return time.Duration(10*a+b) * ms }
	if a, b, d := Worst([]int{3, 1, 3, 2}, between); a != 2 || b != 3 || d != 23*ms {
		t.Errorf("got %d, %d, %v", a, b, d)
	}
	if a, b, d := Worst([]int{4, 4}, between); a != -1 || b != -1 || d != 0 {
		t.Errorf("got %d, %d, %v of one node", a, b, d)
	}
}

func BenchmarkCompact(b *testing.B) {
	p := newPlane(rand.New(rand.NewPCG(1, 1)), 256, 0, 4)
	for b.Loop() {
		if _, err := (Wish{Strategy: Compact, Ranks: 64, Between: p.between}).Place(p.offers); err != nil {
			b.Fatal(err)
		}
	}
}

// byDistance are the strategies that need no task graph.
func byDistance() []Strategy {
	return slices.DeleteFunc(Strategies(), func(s Strategy) bool { return s == Maheve })
}
