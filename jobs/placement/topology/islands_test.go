package topology

import (
	"fmt"
	"testing"
	"time"
)

// paperSites is the clusters of the paper's offer, 1596 cores, by their sites. Their sizes are not given there.
var paperSites = [][]int{{372, 248, 60}, {512, 132, 64}, {168, 40}}

// paper returns the paper's offer as hosts of so many cores, or as one for each cluster (0).
func paper(cores int) *Problem {
	p := new(Problem)
	var site []int
	for s, clusters := range paperSites {
		for _, size := range clusters {
			number := len(p.Hosts)
			for n := 0; n < size; {
				more := size
				if cores > 0 {
					more = min(cores, size-n)
				}
				p.Hosts = append(p.Hosts, Host{Name: fmt.Sprintf("c%d-%d", number, n), Free: Amounts{int64(more)}, Fits: ^uint64(0),
					Cluster: number, Near: time.Duration(1+s) * time.Millisecond})
				site = append(site, s)
				n += more
			}
		}
	}
	p.RTT = func(a, b int) time.Duration {
		switch {
		case p.Hosts[a].Cluster == p.Hosts[b].Cluster:
			return 100 * time.Microsecond
		case site[a] == site[b]:
			return 500 * time.Microsecond
		}
		return 9 * time.Millisecond
	}
	return p
}

// islands adds so many groups to a problem, each of them within a distance.
func (p *Problem) islands(groups, least, most, clusters int, within time.Duration) *Problem {
	for g := range groups {
		p.Groups = append(p.Groups, Group{Name: fmt.Sprint("island", g), Min: least, Max: most, Takes: Amounts{1}, Clusters: clusters})
		if within > 0 {
			p.Links = append(p.Links, Link{Name: fmt.Sprint("inside", g), Groups: 1 << g, MaxRTT: within})
		}
	}
	if within > 0 {
		p.Links = append(p.Links, Link{Name: "all", Groups: 1<<groups - 1, MaxRTT: 10 * time.Millisecond})
	}
	return p
}

// large is a problem of the size that is to be solved within 50 ms.
type large struct {
	name       string
	p          *Problem
	impossible bool
}

func largeCases() (list []large) {
	add := func(name string, p *Problem) { list = append(list, large{name: name, p: p}) }
	for _, cores := range []int{0, 4} {
		add(fmt.Sprintf("cores=%d/17x72..90", cores), paper(cores).islands(17, 72, 90, 0, time.Millisecond))
		add(fmt.Sprintf("cores=%d/17x90-lan", cores), paper(cores).islands(17, 60, 90, 0, 200*time.Microsecond))
		add(fmt.Sprintf("cores=%d/17x64..96-unsplit", cores), paper(cores).islands(17, 64, 96, 1, time.Millisecond))
		add(fmt.Sprintf("cores=%d/16x72..90-unsplit", cores), paper(cores).islands(16, 72, 90, 1, time.Millisecond))
		add(fmt.Sprintf("cores=%d/16x72..90-unsplit-free", cores), paper(cores).islands(16, 72, 90, 1, 0))
		add(fmt.Sprintf("cores=%d/12x80..120-two", cores), paper(cores).islands(12, 80, 120, 2, 0))
		add(fmt.Sprintf("cores=%d/1x64", cores), paper(cores).islands(1, 64, 64, 0, 200*time.Microsecond))
		add(fmt.Sprintf("cores=%d/19x72..90-unsplit", cores), paper(cores).islands(19, 72, 90, 1, 0))
		list[len(list)-1].impossible = true
	}
	two := unlike(4, 1)
	two.Groups[0].Min, two.Groups[0].Max = 200, 200
	two.Groups[1].Min, two.Groups[1].Max = 700, 796
	add("cores=8/4-and-1-slots", two)
	four := unlike(1, 2, 3, 4)
	for g := range four.Groups {
		four.Groups[g].Clusters = 1
	}
	add("cores=8/1-to-4-slots-unsplit", four)
	return list
}

// unlike returns the paper's offer as hosts of 8 cores and 16 GB, and groups of 30 to 60 workers that
// take so many of those, and 2 GB for each.
func unlike(slots ...int64) *Problem {
	p := paper(8)
	for i := range p.Hosts {
		p.Hosts[i].Free[1] = 16
	}
	for g, n := range slots {
		p.group(fmt.Sprint("g", g), 30, 60).Takes = Amounts{n, 2 * n}
	}
	return p
}

func TestLargeProblems(t *testing.T) {
	for _, c := range largeCases() {
		r := c.p.Solve()
		if c.impossible {
			if r.Verdict != Infeasible || r.Why == "" {
				t.Errorf("%s: %+v", c.name, r)
			}
			continue
		}
		if r.Verdict != Found || r.Utility < 0.99*r.Bound {
			t.Errorf("%s: verdict %d, utility %v of %v at most, in %d steps", c.name, r.Verdict, r.Utility, r.Bound, r.Steps)
		} else if err := c.p.Check(r.Counts); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// BenchmarkIslands reports by how much an answer may be below the best one, and the steps.
func BenchmarkIslands(b *testing.B) {
	for _, c := range largeCases() {
		b.Run(c.name, func(b *testing.B) {
			var r Result
			for b.Loop() {
				r = c.p.Solve()
			}
			if r.Verdict == Found {
				b.ReportMetric(100*(1-r.Utility/r.Bound), "%gap")
			}
			b.ReportMetric(float64(r.Steps), "steps/op")
		})
	}
}
