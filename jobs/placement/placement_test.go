package placement

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/seeds"
)

const ms = time.Millisecond

// byRTT are the strategies that need no other distances than from the origin.
var byRTT = []Strategy{Nearest, Spread, Concentrate}

// Three dual-core nodes and a big one far away, listed in no order.
var site = []Offer{
	{"far", 50 * ms, 8},
	{"b", 2 * ms, 2},
	{"a", 1 * ms, 2},
	{"unknown", 0, 9},
	{"busy", 1 * ms, 0},
	{"c", 2 * ms, 2},
}

func TestPlace(t *testing.T) {
	for _, test := range []struct {
		strategy Strategy
		workers  int
		want     string
	}{
		{Nearest, 1, "a"},
		{"", 5, "a a b b c"},
		{Concentrate, 5, "a a b b c"},
		{Nearest, 8, "a a b b c c far far"},
		{Spread, 1, "a"},
		{Spread, 3, "a b c"},
		{Spread, 4, "a b c far"},
		{Spread, 5, "a b c far unknown"},
		{Spread, 6, "a a b c far unknown"},
		{Spread, 11, "a a b b c c far far far unknown unknown"},
	} {
		assign, err := Place(test.strategy, site, test.workers)
		if got := nodes(site, assign); err != nil || got != test.want {
			t.Errorf("%s, %d workers: got %q, %v, want %q", test.strategy, test.workers, got, err, test.want)
		}
	}
}

// Where the job's input takes long to a near node it goes to a farther one that has it sooner.
func TestTimed(t *testing.T) {
	offers := []Offer{{"near", 1 * ms, 1}, {"unsure", 2 * ms, 1}, {"new", 3 * ms, 1}, {"fast", 50 * ms, 1}, {"self", 0 * ms, 1}, {"lost", 0, 1}}
	offers[4].RTT = 1
	speeds := []Speed{{1e6, false}, {2e5, true}, {}, {10e6, false}, {math.Inf(1), false}, {}}
	for _, test := range []struct {
		bytes int64
		want  string
	}{
		{0, "self near unsure new fast lost"},
		{1000, "self near unsure new fast lost"}, // the round trip counts
		{10e6, "self unsure new fast near lost"},
		{math.MaxInt64, "self near unsure new fast lost"}, // not more than can be told
	} {
		assign, err := Place(Bandwidth, Timed(offers, test.bytes, speeds), 6)
		if got := nodes(offers, assign); err != nil || got != test.want {
			t.Errorf("%d bytes: got %q, %v, want %q", test.bytes, got, err, test.want)
		}
	}
	if got := Timed(offers, 10e6, make([]Speed, 6)); !slices.Equal(got, offers) {
		t.Errorf("without any speed: %v", got)
	}
	speeds = []Speed{{1e6, true}, {5e6, true}, {}, {2e6, true}, {math.Inf(1), false}, {}}
	assign, err := Place(Bandwidth, Timed(offers, 10e6, speeds), 6)
	if got := nodes(offers, assign); err != nil || got != "self unsure near new fast lost" {
		t.Errorf("with speeds at least: %q, %v", got, err)
	}
}

func nodes(offers []Offer, assign []int) string {
	var names []string
	for _, i := range assign {
		names = append(names, offers[i].Node)
	}
	return strings.Join(names, " ")
}

// The paper's example in section 3.2: 3 processes, 2 copies, 2 hosts.
func TestReplicasOfThePaper(t *testing.T) {
	hosts := []Offer{{"H0", ms, 4}, {"H1", 2 * ms, 4}}
	for _, s := range byRTT {
		assign, err := PlaceReplicas(s, hosts, 3, 2)
		if want := [][]int{{0, 0, 0}, {1, 1, 1}}; err != nil || !reflect.DeepEqual(assign, want) {
			t.Errorf("%s: got %v, %v, want %v", s, assign, err, want)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		err  error
		want error
		text string
	}{
		{second(Place("near", site, 1)), ErrStrategy, `unknown strategy "near": choose one of nearest, spread, concentrate, compact`},
		{second(Place(Nearest, site, 24)), ErrInfeasible, "not enough offers: 24 workers wanted, room for 23 on 5 nodes"},
		{second(Place(Nearest, nil, 1)), ErrInfeasible, "not enough offers: 1 replicas need 1 nodes, 0 offered"},
		{second(Place(Compact, site, 1)), ErrInvalid, "needs the distances"},
		{feasible(site[:2], 2, 3), ErrInfeasible, "not enough offers: 3 replicas need 3 nodes, 2 offered"},
		{feasible([]Offer{{"x", ms, 100}, {"y", ms, 1}}, 3, 2), ErrInfeasible, "not enough offers: 6 workers wanted, room for 4 on 2 nodes"},
		{feasible(site, 0, 1), ErrInvalid, "at least 1"},
		{feasible(site, 1, -1), ErrInvalid, "at least 1"},
		{feasible(site, 1<<40, 1<<40), ErrInvalid, "10000000 in all"},
		{feasible([]Offer{{"x", ms, 1}, {"x", ms, 1}}, 1, 1), ErrInvalid, `two offers of node "x"`},
		{feasible([]Offer{{"x", ms, 1 << 62}, {"y", ms, 1 << 62}}, 3, 2), nil, ""},
	} {
		if !errors.Is(test.err, test.want) || test.err != nil && !strings.Contains(test.err.Error(), test.text) {
			t.Errorf("got %v, want %q", test.err, test.text)
		}
	}
}

func second(_ []int, err error) error { return err }

// feasible says why n ranks with r replicas each cannot be placed, or nil.
func feasible(offers []Offer, n, r int) error {
	_, err := PlaceReplicas(Nearest, offers, n, r)
	return err
}

// random returns offers with ties, gaps and unknown distances.
func random(rnd *rand.Rand, hosts, workers int) []Offer {
	offers := make([]Offer, hosts)
	for i := range offers {
		offers[i] = Offer{fmt.Sprintf("n%03d", i), time.Duration(rnd.IntN(5)) * ms, rnd.IntN(workers+2) - 1}
	}
	rnd.Shuffle(hosts, func(i, k int) { offers[i], offers[k] = offers[k], offers[i] })
	return offers
}

// checkPlaces returns what must hold for every strategy, and the workers per
// offer.
func checkPlaces(offers []Offer, assign [][]int, n, r int) (used []int, err error) {
	used = make([]int, len(offers))
	if len(assign) != r {
		return nil, fmt.Errorf("%d replicas", len(assign))
	}
	seen := map[[2]int]bool{}
	for _, ranks := range assign {
		if len(ranks) != n {
			return nil, fmt.Errorf("%d ranks", len(ranks))
		}
		for rank, host := range ranks {
			if seen[[2]int{rank, host}] {
				return nil, fmt.Errorf("two replicas of rank %d on node %d", rank, host)
			}
			seen[[2]int{rank, host}] = true
			used[host]++
		}
	}
	all := slices.Concat(assign...)
	left := map[int]bool{}
	for i, host := range all {
		if i > 0 && all[i-1] != host {
			left[all[i-1]] = true
		}
		if left[host] {
			return nil, fmt.Errorf("ranks of node %d are not contiguous in %v", host, all)
		}
	}
	for i, u := range used {
		if u > max(0, offers[i].Workers) {
			return nil, fmt.Errorf("%d workers on node %d", u, i)
		}
	}
	return used, nil
}

// paper is a literal transcription of the loops of section 4.3.
func paper(s Strategy, c []int, nr int) []int {
	d, u, cont := 0, make([]int, len(c)), true
	for cont {
		i := 0
		for i < len(c) && cont {
			if s == Spread {
				if u[i] < c[i] {
					u[i]++
					d++
				}
			} else {
				u[i] = min(c[i], nr-d)
				d += u[i]
			}
			if d == nr {
				cont = false
			}
			i++
		}
	}
	return u
}

func TestLikeThePaper(t *testing.T) {
	seeds.Random(t, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		placed := 0
		for range 2000 {
			n, r := 1+rnd.IntN(40), 1+rnd.IntN(4)
			offers := random(rnd, rnd.IntN(60), 1+rnd.IntN(12))
			// The short list, by the book.
			list := slices.DeleteFunc(slices.Clone(offers), func(o Offer) bool { return o.Workers <= 0 })
			for i := range list {
				if list[i].RTT == 0 {
					list[i].RTT = time.Hour
				}
			}
			slices.SortFunc(list, func(a, b Offer) int { return strings.Compare(a.Node, b.Node) })
			slices.SortStableFunc(list, func(a, b Offer) int { return int(a.RTT - b.RTT) })
			list = list[:min(len(list), n*r)]
			sum := 0
			var c []int
			for _, o := range list {
				c = append(c, min(o.Workers, n))
				sum += min(o.Workers, n)
			}
			room := len(list) >= r && sum >= n*r
			for _, s := range byRTT {
				assign, err := PlaceReplicas(s, offers, n, r)
				if !room {
					if !errors.Is(err, ErrInfeasible) {
						t.Fatalf("got %v", err)
					}
					continue
				}
				used, err2 := checkPlaces(offers, assign, n, r)
				if err != nil || err2 != nil {
					t.Fatalf("%s: %v, %v", s, err, err2)
				}
				placed++
				for i, u := range paper(s, c, n*r) {
					index := slices.IndexFunc(offers, func(o Offer) bool { return o.Node == list[i].Node })
					if used[index] != u {
						t.Fatalf("%s: %d workers on %v, the paper has %d", s, used[index], list[i], u)
					}
				}
			}
		}
		if placed < 500 {
			t.Fatalf("only %d cases could be placed", placed)
		}
	})
}

// everyUse calls f with every way to put n workers on the offers.
func everyUse(offers []Offer, n int, f func(used []int)) {
	used := make([]int, len(offers))
	var try func(i, left int)
	try = func(i, left int) {
		if i == len(offers) {
			if left == 0 {
				f(used)
			}
			return
		}
		for u := 0; u <= min(left, max(0, offers[i].Workers)); u++ {
			used[i] = u
			try(i+1, left-u)
		}
		used[i] = 0
	}
	try(0, n)
}

// measure is what a strategy is about: smaller is better, first number first.
func measure(s Strategy, offers []Offer, used []int) []time.Duration {
	hosts, sum, squares := 0, time.Duration(0), 0
	for i, u := range used {
		rtt := offers[i].RTT
		if rtt == 0 {
			rtt = time.Hour
		}
		sum += time.Duration(u) * rtt
		squares += u * u
		if u > 0 {
			hosts++
		}
	}
	if s == Spread { // many hosts, evenly filled, near
		return []time.Duration{-time.Duration(hosts), time.Duration(squares), sum}
	}
	return []time.Duration{sum}
}

// No way to place is better than ours: all of them are tried.
func TestAgainstBruteForce(t *testing.T) {
	seeds.Random(t, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		compared := 0
		for range 300 {
			offers, n := random(rnd, 1+rnd.IntN(5), 3), 1+rnd.IntN(7)
			for _, s := range byRTT {
				var best []time.Duration
				everyUse(offers, n, func(used []int) {
					if m := measure(s, offers, used); best == nil || slices.Compare(m, best) < 0 {
						best = m
					}
				})
				assign, err := Place(s, offers, n)
				if (best == nil) != errors.Is(err, ErrInfeasible) {
					t.Fatalf("%s: got %v for %d on %v", s, err, n, offers)
				}
				if best == nil {
					continue
				}
				used, err := checkPlaces(offers, [][]int{assign}, n, 1)
				if err != nil {
					t.Fatalf("%s: %v", s, err)
				}
				if got := measure(s, offers, used); !slices.Equal(got, best) {
					t.Fatalf("%s: %d on %v: %v measures %v, best is %v", s, n, offers, used, got, best)
				}
				compared++
			}
		}
		if compared < 100 {
			t.Fatalf("only %d cases could be placed", compared)
		}
	})
}

// The order in which offers arrived does not matter.
func TestOrderOfOffersDoesNotMatter(t *testing.T) {
	seeds.Random(t, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		offers := append(random(rnd, 500, 8), Offer{"reserve", 0, 5000})
		for _, s := range byRTT {
			var first string
			for range 5 {
				assign, err := Place(s, offers, 1500)
				if err != nil {
					t.Fatal(err)
				}
				if got := nodes(offers, assign); first == "" {
					first = got
				} else if got != first {
					t.Fatalf("%s: another order of offers, other places", s)
				}
				rnd.Shuffle(len(offers), func(i, k int) { offers[i], offers[k] = offers[k], offers[i] })
			}
		}
	})
}

// One node with room for all among many small ones: the rounds stay short.
func BenchmarkSpreadUneven(b *testing.B) {
	offers := []Offer{{"big", ms, 100_000}}
	for i := range 50_000 {
		offers = append(offers, Offer{fmt.Sprint(i), ms, 1})
	}
	for b.Loop() {
		if _, err := Place(Spread, offers, 100_000); err != nil {
			b.Fatal(err)
		}
	}
}

func ExamplePlace() {
	offers := []Offer{{"near", 1 * ms, 4}, {"far", 20 * ms, 4}}
	for _, s := range byRTT {
		assign, _ := Place(s, offers, 4)
		fmt.Println(s, nodes(offers, assign))
	}
	// Output:
	// nearest near near near near
	// spread near near far far
	// concentrate near near near near
}
