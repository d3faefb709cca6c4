package topology_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"zorilla/internal/seeds"
	. "zorilla/jobs/placement/topology"
	"zorilla/testnet/sim"
)

// spread returns as many hosts as there are at the sites of a layout, of 1 to 4 slots each.
func spread(l sim.Layout, rnd *rand.Rand) *Problem {
	var site []int
	p := new(Problem)
	for s, n := range l.Sizes {
		for range n {
			site = append(site, s)
			i := len(p.Hosts)
			p.Hosts = append(p.Hosts, Host{Name: fmt.Sprintf("n%d", i), Free: Amounts{1 + rnd.Int64N(4)}, Fits: ^uint64(0), Cluster: s, Near: l.RTT[site[0]][s] + time.Millisecond})
		}
	}
	p.RTT = func(a, b int) time.Duration { return l.RTT[site[a]][site[b]] }
	return p
}

// measured reads a matrix of round trips as of PlanetLab.
func measured(t *testing.T) *sim.Matrix {
	t.Helper()
	f, err := os.Open("../../../testnet/sim/testdata/detours.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := sim.ReadMatrix(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// quantile returns a round trip that so much of all are shorter than.
func quantile(p *Problem, q float64) time.Duration {
	var all []time.Duration
	for a := range p.Hosts {
		for b := range a {
			all = append(all, p.RTT(a, b))
		}
	}
	slices.Sort(all)
	return max(1, all[int(q*float64(len(all)-1))])
}

// sets is what two groups can have on twelve hosts, by all sets of hosts that each could be on.
func sets(p *Problem) (worth float64, feasible bool) {
	all := 1<<len(p.Hosts) - 1
	near := func(g, g2 int) []int { // by set of hosts, all that may be with each of them
		l := &p.Links[2] // which has both
		if g == g2 {
			l = &p.Links[g]
		}
		list := make([]int, all+1)
		for set := range list {
			list[set] = all
			for a := range p.Hosts {
				for b := range p.Hosts {
					if set>>a&1 == 1 && a != b && p.RTT(a, b) > l.MaxRTT {
						list[set] &^= 1 << b
					}
				}
			}
		}
		return list
	}
	room := make([]int, all+1)
	for set := range room {
		for i := range p.Hosts {
			room[set] += set >> i & 1 * int(p.Hosts[i].Free[0])
		}
	}
	first, both, second := near(0, 0), near(0, 1), near(1, 1)
	g, h := p.Groups[0], p.Groups[1]
	for a := range all + 1 {
		if a&^first[a] != 0 || room[a] < g.Min {
			continue
		}
		for b := both[a]; ; b = (b - 1) & both[a] {
			if b&^second[b] == 0 && room[b] >= h.Min {
				for n := g.Min; n <= min(g.Max, room[a]); n++ {
					if k := min(h.Max, room[b], room[a|b]-n); k >= h.Min {
						feasible = true
						worth = max(worth, float64(n)/float64(g.Max)+float64(k)/float64(h.Max))
					}
				}
			}
			if b == 0 {
				break
			}
		}
	}
	return worth, feasible
}

func TestTwelveNodesAsAllSets(t *testing.T) {
	m := measured(t)
	from, to := seeds.Range(t, uint64(seeds.Larger(400, 30)))
	feasible := 0
	for seed := from; seed <= to; seed++ {
		rnd := rand.New(rand.NewPCG(seed, 12))
		l, _ := m.Layout(12, seed)
		if seed%2 == 0 {
			l = sim.Plane(12, 12, seed)
		}
		p := spread(l, rnd)
		for g := range 2 {
			least := 1 + rnd.IntN(12)
			p.Groups = append(p.Groups, Group{Name: fmt.Sprint("g", g), Min: least, Max: least + rnd.IntN(6), Takes: Amounts{1}})
			p.Links = append(p.Links, Link{Name: fmt.Sprint("in", g), Groups: 1 << g, MaxRTT: quantile(p, rnd.Float64())})
		}
		p.Links = append(p.Links, Link{Name: "all", Groups: 3, MaxRTT: quantile(p, rnd.Float64())})
		r := p.Solve()
		worth, ok := sets(p)
		if ok {
			feasible++
		}
		if (r.Verdict == Found) != ok || r.Verdict == NotFound || ok && (!r.Proven || math.Abs(worth-r.Utility) > 1e-6) {
			t.Fatalf("seed %d: %s\nverdict %d, utility %v (proven: %t) in %d steps, by sets: %t, %v", seed, seeds.Again(t, seed), r.Verdict, r.Utility, r.Proven, r.Steps, ok, worth)
		}
		if ok {
			if err := p.Check(r.Counts); err != nil {
				t.Fatalf("seed %d: %s\n%v", seed, seeds.Again(t, seed), err)
			}
		}
	}
	t.Logf("%d of %d feasible", feasible, to-from+1)
}
