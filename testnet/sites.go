package testnet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Sites lays hosts out at sites, at most 256 of up to 50,000 hosts. The round trip of
// two hosts is that of their sites plus what each host adds itself, 50 to 150 µs; so it
// is 0.1 to 0.3 ms within a site. It never changes: Sites knows the truth about distances.
type Sites struct {
	Sizes []int             // hosts of each site
	RTT   [][]time.Duration // between sites, by from and to: twice that way; the diagonal is not used
}

// Grid5000 returns the distances of six sites like those of the Grid'5000
// testbed: Nancy, Lyon, Rennes, Bordeaux, Grenoble, Sophia. The first row was
// published for P2P-MPI (co-allocation on Grid'5000); the others are assumed, in its range.
func Grid5000() [][]time.Duration {
	return milliseconds([][]float64{
		{0, 10.5, 11.6, 12.6, 13.2, 17.1},
		{10.5, 0, 12.1, 11.0, 10.2, 11.3},
		{11.6, 12.1, 0, 10.8, 15.6, 19.4},
		{12.6, 11.0, 10.8, 0, 15.9, 10.9},
		{13.2, 10.2, 15.6, 15.9, 0, 10.4},
		{17.1, 11.3, 19.4, 10.9, 10.4, 0},
	})
}

// Internet lays n hosts, at most 256, out over four parts of the world, each at a place
// of its own. The round trip of half of all pairs is more than some 120 ms, many detours
// are shorter than the direct way, and one way takes 30 to 70 % of a round trip.
func Internet(n int, seed uint64) *Sites {
	type place struct {
		part int
		x, y float64 // ms from a corner of it
	}
	between := [][]float64{{0, 90, 170, 140}, {90, 0, 250, 200}, {170, 250, 0, 300}, {140, 200, 300, 0}}
	shares := []float64{0.4, 0.75, 0.95, 1} // those before included
	rnd := rand.New(rand.NewPCG(seed, 0x1e7))
	places := make([]place, n)
	for i := range places {
		part := slices.IndexFunc(shares, func(s float64) bool { return (float64(i)+0.5)/float64(n) < s })
		places[i] = place{part, 40 * rnd.Float64(), 40 * rnd.Float64()}
	}
	s := &Sites{Sizes: make([]int, n), RTT: milliseconds(slices.Repeat([][]float64{make([]float64, n)}, n))}
	for i, a := range places {
		s.Sizes[i] = 1
		for k, b := range places[:i] {
			ms := (5 + between[a.part][b.part] + math.Hypot(a.x-b.x, a.y-b.y)) * math.Exp(0.1*rnd.NormFloat64())
			way := 0.3 + 0.4*rnd.Float64()
			s.RTT[i][k] = time.Duration(2 * way * ms * float64(time.Millisecond))
			s.RTT[k][i] = time.Duration(2 * (1 - way) * ms * float64(time.Millisecond))
		}
	}
	return s
}

func milliseconds(ms [][]float64) [][]time.Duration {
	out := make([][]time.Duration, len(ms))
	for i, row := range ms {
		out[i] = make([]time.Duration, len(row))
		for j, v := range row {
			out[i][j] = time.Duration(v * float64(time.Millisecond))
		}
	}
	return out
}

// Addr returns the IP address of a site's host: 10.SITE.x.y.
func (s *Sites) Addr(site, host int) string {
	return fmt.Sprintf("10.%d.%d.%d", site, host/250, host%250+1)
}

// Hosts makes all the hosts, in the order of the sites.
func (s *Sites) Hosts(n *Network) []*Host {
	var all []*Host
	for site, size := range s.Sizes {
		for i := range size {
			all = append(all, n.Host(s.Addr(site, i)))
		}
	}
	return all
}

// Site returns the site that a host is at.
func (s *Sites) Site(h *Host) int { return int(h.ip.As4()[1]) }

// Latency is the one-way delay, for Config.Latency. A host reaches itself in
// 10 µs.
func (s *Sites) Latency(a, b *Host) time.Duration {
	if a == b {
		return 10 * time.Microsecond
	}
	d := (access(a) + access(b)) / 2
	if from, to := s.Site(a), s.Site(b); from != to {
		d += s.RTT[from][to] / 2
	}
	return d
}

// access is what a host adds to its round trips: 50 to 150 µs, spread evenly
// by a hash of its address.
func access(h *Host) time.Duration {
	hash := uint32(2166136261)
	for _, b := range h.ip.As4() {
		hash = (hash ^ uint32(b)) * 16777619
	}
	hash ^= hash >> 15
	return 50*time.Microsecond + time.Duration(hash%100_000)*time.Nanosecond
}
