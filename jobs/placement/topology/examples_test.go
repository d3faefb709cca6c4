package topology

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// worked is the worked example of the notes on the paper: groups of 8 to 10, 4 to 6 and 4 to 6, and
// three clusters. A (12 machines, 2.4 GHz) and B (8, 2.6) have the clocks that are asked for, C (30, 1.8) only if fits says so.
func worked(fitsC bool, inside, all [2]time.Duration, clusters int) *Problem {
	p := &Problem{}
	for i, h := range []struct {
		name  string
		size  int64
		clock int64
	}{{"A", 12, 2400}, {"B", 8, 2600}, {"C", 30, 1800}} {
		fits := uint64(7)
		if h.name == "C" && !fitsC {
			fits = 0
		}
		for n := range h.size {
			p.Hosts = append(p.Hosts, Host{Name: fmt.Sprint(h.name, n), Free: Amounts{1}, Fits: fits, Cluster: i, Clock: h.clock})
		}
	}
	for i, n := range [][2]int{{8, 10}, {4, 6}, {4, 6}} {
		name := fmt.Sprint("v", i+1)
		p.Groups = append(p.Groups, Group{Name: name, Min: n[0], Max: n[1], Takes: Amounts{1}, Clusters: clusters})
		if inside != [2]time.Duration{} {
			p.Links = append(p.Links, Link{Name: "inside " + name, Groups: 1 << i, MinRTT: inside[0], MaxRTT: inside[1]})
		}
	}
	p.Links = append(p.Links, Link{Name: "all", Groups: 7, MinRTT: all[0], MaxRTT: all[1]})
	between := [3][3]time.Duration{{100, 9000, 500}, {9000, 100, 9300}, {500, 9300, 100}}
	p.RTT = func(a, b int) time.Duration {
		return between[p.Hosts[a].Cluster][p.Hosts[b].Cluster] * time.Microsecond
	}
	return p
}

func TestWorkedExample(t *testing.T) {
	for _, c := range []struct {
		name    string
		p       *Problem
		workers int
		utility float64
		why     string
	}{
		{"inside 1 ms, all 10 ms, clock 2..3", worked(false, [2]time.Duration{0, ms}, [2]time.Duration{0, 10 * ms}, 0), 20, 2.8, ""},
		{"the same, unsplit", worked(false, [2]time.Duration{0, ms}, [2]time.Duration{0, 10 * ms}, 1), 20, 2.8, ""},
		{"all 5 ms, clock 2..3", worked(false, [2]time.Duration{0, ms}, [2]time.Duration{0, 5 * ms}, 0), 0, 0,
			"link all wants 5ms at most: A0 and B0 are 9ms apart"},
		{"all 5 ms, clock 1..3", worked(true, [2]time.Duration{0, ms}, [2]time.Duration{0, 5 * ms}, 0), 22, 3, ""},
		{"the same, unsplit", worked(true, [2]time.Duration{0, ms}, [2]time.Duration{0, 5 * ms}, 1), 22, 3, ""},
		{"1 to 10 ms inside and outside", worked(true, [2]time.Duration{ms, 10 * ms}, [2]time.Duration{ms, 10 * ms}, 0), 0, 0,
			"link inside v1 wants 10ms at most and 1ms at least: A0 and A1 are 0.1ms apart"},
	} {
		r := c.p.Solve()
		if c.why != "" {
			if r.Verdict != Infeasible || r.Why != c.why {
				t.Errorf("%s: verdict %d, %q; want %q", c.name, r.Verdict, r.Why, c.why)
			}
			continue
		}
		sum := 0
		for _, row := range r.Counts {
			for _, n := range row {
				sum += n
			}
		}
		if r.Verdict != Found || !r.Proven || sum != c.workers || math.Abs(r.Utility-c.utility) > 1e-9 {
			t.Errorf("%s: %d workers, want %d: %+v", c.name, sum, c.workers, r)
		} else if err := c.p.Check(r.Counts); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// offers is hosts of so many slots each, each in a cluster of its own, all 10 ms apart.
func offers(slots ...int64) *Problem {
	p := &Problem{RTT: func(a, b int) time.Duration { return 10 * ms }}
	for i, n := range slots {
		p.Hosts = append(p.Hosts, Host{Name: fmt.Sprintf("n%d", i), Free: Amounts{n}, Fits: ^uint64(0), Cluster: i, Near: time.Duration(i+1) * ms})
	}
	return p
}

// group adds one of workers that take one slot each.
func (p *Problem) group(name string, least, most int) *Group {
	p.Groups = append(p.Groups, Group{Name: name, Min: least, Max: most, Takes: Amounts{1}})
	return &p.Groups[len(p.Groups)-1]
}

func TestWhyItIsInfeasible(t *testing.T) {
	for _, c := range []struct {
		change func(p *Problem)
		want   string
	}{
		{func(p *Problem) { p.group("sea", 20, 20) }, "group sea wants 20 workers, 3 nodes fulfil it, with room for 10"},
		{func(p *Problem) {
			p.group("sea", 1, 1)
			for i := range p.Hosts {
				p.Hosts[i].Fits = 0
			}
		}, "group sea wants 1 worker, no node fulfils it"},
		{func(p *Problem) { p.group("sea", 6, 6); p.group("air", 6, 6) }, "groups sea and air together want 12 workers, 3 nodes fulfil them, with room for 10"},
		{func(p *Problem) { // a link that has them all is not what is in the way
			p.group("sea", 6, 6)
			p.group("air", 6, 6)
			p.Links = []Link{{Name: "all", Groups: 3, MaxRTT: 30 * ms}}
		}, "groups sea and air together want 12 workers, 3 nodes fulfil them, with room for 10"},
		{func(p *Problem) { p.group("sea", 6, 6).Clusters = 1 }, "group sea wants 6 workers in one cluster, the largest has room for 5"},
		{func(p *Problem) { p.group("sea", 9, 9).Clusters = 2 }, "group sea wants 9 workers in 2 clusters at most, the largest have room for 8"},
		{func(p *Problem) { p.group("sea", 5, 5).Clusters = 1; p.group("air", 4, 4).Clusters = 1 },
			"group sea wants to be in one cluster, which the links and other groups leave no room for"},
		{func(p *Problem) {
			p.group("sea", 6, 6)
			p.Links = []Link{{Name: "all", Groups: 1, MaxRTT: 5 * ms}}
		}, "link all wants 5ms at most: n0 and n1 are 10ms apart"},
		{func(p *Problem) {
			p.group("sea", 4, 4)
			p.Links = []Link{{Name: "all", Groups: 1, MinRTT: 5 * ms}}
		}, "link all wants 5ms at least: two workers on n0 are 0ms apart"},
		{func(p *Problem) {
			p.group("sea", 6, 6)
			p.Links = []Link{{Name: "all", Groups: 1, MinBandwidth: 100}}
		}, "link all wants 100 Mbit/s at least: the bandwidth between n0 and n1 is not known"},
		{func(p *Problem) {
			p.group("sea", 6, 6)
			p.Links = []Link{{Name: "all", Groups: 1, MinBandwidth: 100}}
			p.Bandwidth = func(a, b int) int64 { return int64(10 * (a + b)) }
		}, "link all wants 100 Mbit/s at least: n0 and n2 have 20 Mbit/s between them"},
		{func(p *Problem) { p.group("sea", 3, 3).Takes = Amounts{3}; p.group("air", 1, 1).Takes = Amounts{2} },
			"group sea wants 3 workers, 3 nodes fulfil it, with room for 2"},
		{func(p *Problem) {
			p.group("sea", 2, 2).Takes = Amounts{3}
			p.group("air", 2, 2).Takes = Amounts{2}
			p.Groups[1].Min, p.Groups[1].Max = 3, 3
		}, "groups sea and air together want 5 workers, 3 nodes fulfil them, with room for 4"},
		{func(p *Problem) {
			p.group("sea", 2, 2).Takes = Amounts{4, 1}
			p.group("air", 2, 2).Takes = Amounts{1, 4}
			p.Hosts[0].Free, p.Hosts[1].Free = Amounts{5, 4}, Amounts{5, 4}
		}, "groups sea and air together want more than nodes have free"},
		{func(p *Problem) {
			p.group("sea", 4, 4).Clusters = 1
			p.group("air", 4, 4)
			p.Links = []Link{{Name: "all", Groups: 3, MaxRTT: 50 * ms}, {Name: "air", Groups: 2, MaxRTT: 5 * ms}}
		}, "link air wants 5ms at most: n0 and n1 are 10ms apart"},
	} {
		p := offers(5, 3, 2)
		c.change(p)
		if r := p.Solve(); r.Verdict != Infeasible || r.Why != c.want {
			t.Errorf("verdict %d, %q; want %q", r.Verdict, r.Why, c.want)
		} else if strings.ContainsAny(r.Why, "\n") {
			t.Errorf("%q has more than a line", r.Why)
		}
	}
}
