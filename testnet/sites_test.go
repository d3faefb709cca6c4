package testnet

import (
	"slices"
	"testing"
	"time"
)

func TestSites(t *testing.T) {
	for _, tc := range []struct {
		sizes []int
		rtt   [][]time.Duration
	}{
		{[]int{17, 17, 16}, threeSites()},
		{[]int{300, 2, 2, 2, 2, 2}, Grid5000()},
	} {
		s := &Sites{tc.sizes, tc.rtt}
		n := NewNetwork(Config{Latency: s.Latency})
		hosts := s.Hosts(n)
		sum := 0
		for _, size := range tc.sizes {
			sum += size
		}
		if len(hosts) != sum || len(n.hosts) != sum {
			t.Fatalf("%d hosts, %d different ones, want %d", len(hosts), len(n.hosts), sum)
		}
		least, most := time.Hour, time.Duration(0)
		for _, a := range hosts {
			for _, b := range hosts {
				got, base := n.RTT(a, b), time.Duration(0)
				if a == b {
					continue
				}
				if s.Site(a) != s.Site(b) {
					base = tc.rtt[s.Site(a)][s.Site(b)]
				} else {
					least, most = min(least, got), max(most, got)
				}
				if got < base+100*time.Microsecond || got > base+300*time.Microsecond {
					t.Fatalf("%v to %v: RTT %v, want %v and 0.1 to 0.3 ms", a, b, got, base)
				}
				if got != n.RTT(b, a) {
					t.Fatalf("%v to %v: not the same back", a, b)
				}
			}
		}
		if most-least < 80*time.Microsecond {
			t.Errorf("round trips within a site are %v to %v: too much alike", least, most)
		}
	}
}

// threeSites returns the distances of three sites, two of them near each other.
func threeSites() [][]time.Duration {
	return milliseconds([][]float64{{0, 8, 20}, {8, 0, 16}, {20, 16, 0}})
}

func TestInternetIsWideAndUneven(t *testing.T) {
	const seed = 1
	s := Internet(100, seed)
	n := NewNetwork(Config{Latency: s.Latency})
	hosts := s.Hosts(n)
	var all []time.Duration
	uneven, detours, triples := 0, 0, 0
	for i, a := range hosts {
		for k, b := range hosts[:i] {
			d := n.RTT(a, b)
			all = append(all, d)
			uneven += one(s.Latency(a, b) > d*6/10 || s.Latency(a, b) < d*4/10)
			for _, c := range hosts[:k] {
				triples++
				detours += one(n.RTT(a, c)+n.RTT(c, b) < d || n.RTT(a, b)+n.RTT(b, c) < n.RTT(a, c) || n.RTT(c, a)+d < n.RTT(b, c))
			}
		}
	}
	slices.Sort(all)
	median, share := all[len(all)/2], float64(detours)/float64(triples)
	t.Logf("seed %d: median %v, %v to %v; %.2f of the pairs uneven; a detour is shorter in %.3f of the triples", seed, median, all[0], all[len(all)-1], float64(uneven)/float64(len(all)), share)
	if median < 100*time.Millisecond || median > 140*time.Millisecond || uneven < len(all)/3 || share < 0.03 || share > 0.3 {
		t.Error("these are not the distances of the internet")
	}
}
