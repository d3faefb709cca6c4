package topology

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"zorilla/internal/seeds"
)

// plane returns hosts anywhere on a plane, of 1 to 4 slots each.
func plane(n int) *Problem {
	place, room := rand.New(rand.NewPCG(7, 0x91a)), rand.New(rand.NewPCG(7, 512))
	x, y := make([]float64, n), make([]float64, n)
	rtt := make([][]time.Duration, n)
	for i := range n {
		x[i], y[i] = 30*place.Float64(), 30*place.Float64()
		rtt[i] = make([]time.Duration, n)
		for k := range i {
			rtt[i][k] = time.Duration((1 + math.Hypot(x[i]-x[k], y[i]-y[k])*(1+0.2*place.Float64())) * float64(ms))
			rtt[k][i] = rtt[i][k]
		}
	}
	p := &Problem{RTT: func(a, b int) time.Duration { return rtt[a][b] }}
	for i := range n {
		p.Hosts = append(p.Hosts, Host{Name: fmt.Sprintf("n%d", i), Free: Amounts{1 + room.Int64N(4)}, Fits: ^uint64(0), Cluster: i, Near: rtt[0][i] + ms})
	}
	return p
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

// scattered returns so many hosts of which no two are as far from others, and groups with links.
func scattered(hosts, groups, least, most int, inside, all float64) *Problem {
	p := plane(hosts)
	near, far := quantile(p, inside), quantile(p, all)
	for g := range groups {
		p.group(fmt.Sprint("g", g), least, most)
		p.Links = append(p.Links, Link{Name: fmt.Sprint("in", g), Groups: 1 << g, MaxRTT: near})
	}
	if groups > 1 {
		p.Links = append(p.Links, Link{Name: "all", Groups: 1<<groups - 1, MaxRTT: far})
	}
	return p
}

// TestSearchEndsWithinItsEffort has 512 hosts that no bound makes twins.
func TestSearchEndsWithinItsEffort(t *testing.T) {
	for _, c := range []struct {
		groups, least, most int
		inside, all         float64 // quantiles of the round trips
		want                Verdict
	}{
		{4, 30, 32, 0.05, 0.3, Found}, // only around some centres
		{1, 20, 400, 0.5, 1, Found},
		{4, 16, 32, 0.02, 0.3, Found},
		{4, 60, 64, 0.15, 0.6, Found},
		{17, 8, 16, 0.01, 0.5, Found},
		{1, 64, 64, 0.05, 1, Infeasible}, // no host has so many around it
		{1, 200, 400, 0.2, 1, Infeasible},
		{17, 40, 60, 0.05, 0.5, Infeasible}, // none has room for all groups around it
		{17, 40, 70, 0.1, 1, NotFound},
	} {
		p := scattered(512, c.groups, c.least, c.most, c.inside, c.all)
		r := p.Solve()
		t.Logf("%+v: utility %.3f of %.3f, proven: %t, %d steps: %s", c, r.Utility, r.Bound, r.Proven, r.Steps, r.Why)
		if r.Verdict != c.want || (r.Why == "") != (r.Verdict == Found) {
			t.Errorf("%+v: verdict %d", c, r.Verdict)
		}
		if r.Verdict == Found {
			if err := p.Check(r.Counts); err != nil {
				t.Error(err)
			}
		}
		if r.Steps > DefaultEffort*11/10 {
			t.Errorf("%+v: %d steps", c, r.Steps)
		}
	}
}

// TestSearchThatIsCutOffClaimsNothing has too little effort for most problems.
func TestSearchThatIsCutOffClaimsNothing(t *testing.T) {
	from, to := seeds.Range(t, uint64(seeds.Larger(5_000, 500)))
	var verdicts [3]int
	unproven := 0
	for seed := from; seed <= to; seed++ {
		rnd := rand.New(rand.NewPCG(seed, 45))
		p := draw(rnd)
		p.Effort = 1 + rnd.IntN(100)
		r := p.Solve()
		want, worth := brute(p)
		wrong := r.Verdict == Infeasible && want != nil || r.Verdict == Found && (want == nil || p.Check(r.Counts) != nil ||
			r.Utility > worth+1e-6 || r.Bound < worth-1e-6 || r.Proven && r.Utility < worth-1e-6)
		if wrong {
			t.Fatalf("seed %d: %s\n%+v\nbrute force: %v %v", seed, seeds.Again(t, seed), r, worth, want)
		}
		if verdicts[r.Verdict]++; r.Verdict == Found && !r.Proven {
			unproven++
		}
	}
	if t.Logf("not found, found, infeasible: %v; not proven: %d", verdicts, unproven); from != to && (verdicts[NotFound] == 0 || unproven == 0) {
		t.Error("no search was cut off")
	}
}
