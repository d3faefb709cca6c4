package testnet

import (
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
