package topology

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"zorilla/internal/seeds"
)

// brute tries all counts, and asks Check about each: the definition of the problem.
func brute(p *Problem) (best [][]int, worth float64) {
	counts := make([][]int, len(p.Hosts))
	for i := range counts {
		counts[i] = make([]int, len(p.Groups))
	}
	value := p.value()
	total := make([]int, len(p.Groups))
	var from func(i, g int)
	from = func(i, g int) {
		if g == len(p.Groups) {
			scratch := make([]int, len(p.Groups))
			if p.checkHost(i, counts[i], scratch) != nil {
				return
			}
			i, g = i+1, 0
		}
		if i < len(p.Hosts) {
			for n := 0; n <= p.Groups[g].Max-total[g]; n++ {
				counts[i][g] = n
				total[g] += n
				from(i, g+1)
				total[g] -= n
			}
			counts[i][g] = 0
			return
		}
		sum := 0.0
		for g, n := range total {
			sum += value[g] * float64(n)
		}
		if (best == nil || sum > worth+epsilon) && p.Check(counts) == nil {
			best, worth = make([][]int, len(counts)), sum
			for i := range counts {
				best[i] = append([]int(nil), counts[i]...)
			}
		}
	}
	from(0, 0)
	return best, worth
}

// draw returns a random small problem.
func draw(rnd *rand.Rand) *Problem {
	hosts, groups := 1+rnd.IntN(3), 1+rnd.IntN(3)
	p := &Problem{Weights: []Weights{{}, {Satisfaction: 1, Utilisation: 0.1}, {Utilisation: 1}}[rnd.IntN(3)]}
	unlike := rnd.IntN(2) == 0
	for g := range groups {
		least := rnd.IntN(4)
		group := Group{Name: fmt.Sprint("g", g), Min: least, Max: least + rnd.IntN(3), Takes: Amounts{1}}
		if unlike {
			group.Takes = Amounts{int64(rnd.IntN(3)), int64(rnd.IntN(4))}
		}
		group.Alike = Alike(rnd.IntN(3))
		if rnd.IntN(3) == 0 {
			group.Clusters = 1 + rnd.IntN(2)
		}
		p.Groups = append(p.Groups, group)
	}
	some := rnd.IntN(4) == 0
	for i := range hosts {
		h := Host{Name: fmt.Sprint("h", i), Free: Amounts{int64(rnd.IntN(8)), int64(rnd.IntN(12))}, Fits: rnd.Uint64N(8) | rnd.Uint64N(8), Cluster: rnd.IntN(3),
			Near: time.Duration(rnd.IntN(3)), Clock: rnd.Int64N(3), Power: rnd.Int64N(3), Workers: max(0, rnd.IntN(12)-6)}
		if rnd.IntN(3) == 0 && i > 0 { // so that there are twins
			h = p.Hosts[i-1]
			h.Name = fmt.Sprint("h", i)
		}
		if some && rnd.IntN(2) == 0 {
			h.Has = make([]int, groups)
			h.Has[rnd.IntN(groups)] = 1 + rnd.IntN(2)
		}
		p.Hosts = append(p.Hosts, h)
	}
	rtt, bandwidth := make([]time.Duration, hosts*hosts), make([]int64, hosts*hosts)
	for a := range hosts {
		for b := range a {
			rtt[a*hosts+b] = time.Duration(rnd.IntN(6)-1) * time.Millisecond
			bandwidth[a*hosts+b] = int64(rnd.IntN(4)) * 100
		}
	}
	p.RTT = func(a, b int) time.Duration { return rtt[max(a, b)*hosts+min(a, b)] }
	p.Bandwidth = func(a, b int) int64 { return bandwidth[max(a, b)*hosts+min(a, b)] }
	drawLinks(rnd, p)
	return p
}

func drawLinks(rnd *rand.Rand, p *Problem) {
	sets := []uint64{1, 2, 4, 3, 7} // nested or disjoint
	for i, groups := range sets {
		if rnd.IntN(2) == 0 || groups >= 1<<len(p.Groups) {
			continue
		}
		l := Link{Name: fmt.Sprint("l", i), Groups: groups}
		if rnd.IntN(3) > 0 {
			l.MaxRTT = time.Duration(1+rnd.IntN(4)) * time.Millisecond
		}
		if rnd.IntN(5) == 0 {
			l.MinRTT = time.Duration(1+rnd.IntN(2)) * time.Millisecond
		}
		if rnd.IntN(5) == 0 {
			l.MinBandwidth = 100 + int64(rnd.IntN(3))*100
		}
		if rnd.IntN(8) == 0 {
			l.MaxBandwidth = 100 + int64(rnd.IntN(3))*100
		}
		p.Links = append(p.Links, l)
	}
}

// compare compares an answer with that of brute, and reports whether there was one.
func compare(t *testing.T, p *Problem) bool {
	t.Helper()
	r := p.Solve()
	want, worth := brute(p)
	switch {
	case r.Verdict == NotFound:
		t.Errorf("not found, brute force: %v", want)
	case (r.Verdict == Found) != (want != nil):
		t.Errorf("verdict %d %q, brute force: %v", r.Verdict, r.Why, want)
	case r.Verdict == Found:
		if err := p.Check(r.Counts); err != nil {
			t.Errorf("%v: %v", r.Counts, err)
		}
		if !r.Proven || math.Abs(r.Utility-worth) > 1e-6 {
			t.Errorf("utility %v (proven: %t), brute force %v: %v, %v", r.Utility, r.Proven, worth, r.Counts, want)
		}
	case r.Why == "":
		t.Error("no reason")
	}
	return want != nil
}

// drawTwins returns a random problem of few kinds of hosts at few places.
func drawTwins(rnd *rand.Rand) *Problem {
	p := draw(rnd)
	kinds := p.Hosts[:min(2, len(p.Hosts))]
	var hosts []Host
	var place []int
	for i := range 5 {
		k := rnd.IntN(len(kinds))
		h := kinds[k]
		h.Name, h.Has, h.Free[0], h.Near = fmt.Sprint("h", i), nil, min(h.Free[0], 3), time.Duration(rnd.IntN(9))
		hosts, place = append(hosts, h), append(place, k)
	}
	p.Hosts = hosts
	p.Groups = p.Groups[:min(2, len(p.Groups))]
	for i := range p.Links {
		p.Links[i].Groups &= 1<<len(p.Groups) - 1
	}
	for g := range p.Groups {
		p.Groups[g].Max = min(p.Groups[g].Max, 4)
		p.Groups[g].Min = min(p.Groups[g].Min, p.Groups[g].Max)
	}
	inside, across := time.Duration(rnd.IntN(4))*time.Millisecond, time.Duration(1+rnd.IntN(5))*time.Millisecond
	p.RTT = func(a, b int) time.Duration {
		if place[a] == place[b] {
			return inside
		}
		return across
	}
	p.Bandwidth = func(a, b int) int64 { return 200 }
	return p
}

// drawAlike returns a random problem of groups that want the same, but may fit other hosts and be in other links.
func drawAlike(rnd *rand.Rand) *Problem {
	p := draw(rnd)
	for len(p.Groups) < 3 {
		p.Groups = append(p.Groups, Group{Name: fmt.Sprint("g", len(p.Groups))})
	}
	like := p.Groups[0]
	like.Max = min(like.Max, 2)
	like.Min = min(like.Min, like.Max)
	for g := range p.Groups {
		like.Name = p.Groups[g].Name
		p.Groups[g] = like
	}
	if rnd.IntN(3) == 0 {
		p.Groups[rnd.IntN(3)].Min = 0
	}
	if rnd.IntN(3) == 0 {
		p.Groups[rnd.IntN(3)].Takes[rnd.IntN(2)]++
	}
	for i := range p.Hosts {
		h := &p.Hosts[i]
		if h.Has = nil; rnd.IntN(2) == 0 {
			h.Fits = 7
		}
		h.Free[0], h.Workers = rnd.Int64N(5), max(0, rnd.IntN(6)-2)
	}
	p.Links = nil
	drawLinks(rnd, p)
	return p
}

// TestAlikeGroupsAsBruteForce has groups that the search takes for each other.
func TestAlikeGroupsAsBruteForce(t *testing.T) {
	from, to := seeds.Range(t, uint64(seeds.Larger(20_000, 2_000)))
	feasible := 0
	for seed := from; seed <= to; seed++ {
		p := drawAlike(rand.New(rand.NewPCG(seed, 5445)))
		if compare(t, p) {
			feasible++
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s\n%+v", seed, seeds.Again(t, seed), p)
		}
	}
	t.Logf("%d of %d feasible", feasible, to-from+1)
}

// TestTwinsAsBruteForce has hosts that the search takes together.
func TestTwinsAsBruteForce(t *testing.T) {
	from, to := seeds.Range(t, uint64(seeds.Larger(5_000, 300)))
	feasible, twins := 0, 0
	for seed := from; seed <= to; seed++ {
		p := drawTwins(rand.New(rand.NewPCG(seed, 54)))
		if m := newModel(p); len(m.units) < len(m.live) {
			twins++
		}
		if compare(t, p) {
			feasible++
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s\n%+v", seed, seeds.Again(t, seed), p)
		}
	}
	t.Logf("%d of %d feasible, %d with twins", feasible, to-from+1, twins)
}

func TestSmallProblemsAsBruteForce(t *testing.T) {
	from, to := seeds.Range(t, uint64(seeds.Larger(20_000, 3_000)))
	feasible := 0
	for seed := from; seed <= to; seed++ {
		p := draw(rand.New(rand.NewPCG(seed, 45)))
		if compare(t, p) {
			feasible++
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s\n%+v", seed, seeds.Again(t, seed), p)
		}
	}
	t.Logf("%d of %d feasible", feasible, to-from+1)
}
