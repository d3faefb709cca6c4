package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/internal/seeds"
)

// shown returns who is where, as "a:1+0 b:0+2", in the order of the names.
func shown(p *Problem, counts [][]int) string {
	var list []string
	for i, row := range counts {
		if slices.Max(row) > 0 {
			list = append(list, p.Hosts[i].Name+":"+strings.ReplaceAll(strings.Trim(fmt.Sprint(row), "[]"), " ", "+"))
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// machines returns hosts, each "name slots clock near", all in one place.
func machines(texts ...string) *Problem {
	p := &Problem{RTT: func(a, b int) time.Duration { return ms }}
	for _, text := range texts {
		h := Host{Fits: ^uint64(0)}
		var near int
		fmt.Sscanf(text, "%s %d %d %d", &h.Name, &h.Free[0], &h.Clock, &near)
		h.Near, h.Power = time.Duration(near)*ms, 10_000-h.Clock
		p.Hosts = append(p.Hosts, h)
	}
	return p
}

func TestWhichOfEqualAnswers(t *testing.T) {
	mixture := []string{"a 2 3000 1", "b 2 3000 2", "c 4 2400 9", "d 4 2400 8", "e 4 2400 7", "f 4 1800 3"}
	for _, c := range []struct {
		name   string
		hosts  []string
		change func(p *Problem)
		want   string
	}{
		{"the nearest", mixture, func(p *Problem) { p.group("g", 6, 6) }, "a:2 b:2 f:2"},
		{"those of known distance", []string{"a 2 0 0", "b 2 0 9"}, func(p *Problem) { p.group("g", 2, 2) }, "b:2"},
		{"by name", []string{"b 2 0 1", "c 2 0 1", "a 2 0 1"}, func(p *Problem) { p.group("g", 3, 3) }, "a:2 b:1"},
		{"the strongest", mixture, func(p *Problem) { p.group("g", 4, 4).Alike = AlikeClock }, "a:2 b:2"},
		{"alike rather than strong", mixture, func(p *Problem) { p.group("g", 8, 8).Alike = AlikeClock }, "d:4 e:4"},
		{"another measure", mixture, func(p *Problem) { p.group("g", 4, 4).Alike = AlikePower }, "f:4"},
		{"many rather than alike", mixture, func(p *Problem) { p.group("g", 1, 14).Alike = AlikeClock }, "a:2 b:2 c:2 d:4 e:4"},
		{"like those that stay", mixture, func(p *Problem) {
			p.group("g", 2, 2).Alike = AlikeClock
			p.Hosts[5].Has = []int{1}
		}, "f:2"},
		{"each group like itself", mixture, func(p *Problem) {
			p.group("g", 4, 4).Alike = AlikeClock
			p.group("h", 4, 4).Alike = AlikeClock
		}, "a:2+0 b:2+0 e:0+4"},
		{"the nearest that hang together", []string{"a 4 0 1", "b 4 0 2", "c 4 0 3", "d 4 0 4", "e 5 0 5", "f 6 0 6"}, func(p *Problem) {
			p.group("g", 8, 8)
			p.Links = []Link{{Name: "l", Groups: 1, MaxRTT: ms}}
			p.RTT = func(a, b int) time.Duration { // a and c are near each other, c and d, and all of b, d, e and f
				if strings.Contains("ac ca cd dc bd db be eb bf fb de ed df fd ef fe", p.Hosts[a].Name+p.Hosts[b].Name) {
					return ms
				}
				return 2 * ms
			}
		}, "a:4 c:4"},
	} {
		p := machines(c.hosts...)
		c.change(p)
		if r := p.Solve(); shown(p, r.Counts) != c.want {
			t.Errorf("%s: %q, want %q: %+v", c.name, shown(p, r.Counts), c.want, r)
		}
	}
}

// shuffled returns a problem with its hosts in another order.
func shuffled(p *Problem, rnd *rand.Rand) *Problem {
	q := *p
	order := rnd.Perm(len(p.Hosts))
	q.Hosts = nil
	for _, i := range order {
		q.Hosts = append(q.Hosts, p.Hosts[i])
	}
	q.RTT = func(a, b int) time.Duration { return p.RTT(order[a], order[b]) }
	if p.Bandwidth != nil {
		q.Bandwidth = func(a, b int) int64 { return p.Bandwidth(order[a], order[b]) }
	}
	return &q
}

func TestOrderOfHostsDoesNotMatter(t *testing.T) {
	same := func(t *testing.T, p *Problem, rnd *rand.Rand) {
		t.Helper()
		q := shuffled(p, rnd)
		a, b := p.Solve(), q.Solve()
		if shown(p, a.Counts) != shown(q, b.Counts) || a.Verdict != b.Verdict || a.Why != b.Why || a.Utility != b.Utility || a.Steps != b.Steps {
			t.Errorf("%q %+v\nin another order %q %+v", shown(p, a.Counts), a, shown(q, b.Counts), b)
		}
	}
	seeds.Random(t, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		for range 300 {
			same(t, draw(rnd), rnd)
		}
		for _, p := range []*Problem{
			paper(4).islands(17, 72, 90, 0, ms), paper(4).islands(16, 72, 90, 1, ms),
			scattered(40, 3, 8, 16, 0.2, 0.6), scattered(40, 1, 30, 50, 0.2, 1), scattered(200, 4, 16, 32, 0.05, 0.4),
		} {
			for g := range p.Groups[:len(p.Groups)/2] {
				p.Groups[g].Alike = AlikeClock
			}
			for i := range p.Hosts {
				p.Hosts[i].Clock = 1000 + 100*int64(p.Hosts[i].Cluster%5)
			}
			same(t, p, rnd)
		}
	})
}
