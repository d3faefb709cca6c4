package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"zorilla/testnet"
)

// Layout is the same for simulated nodes as for whole ones.
type Layout = testnet.Sites

// SixSites lays n hosts out at six sites with the distances of Grid'5000, of
// the same size or, uneven, with 40, 22, 16, 12, 6 and 4 % of them.
func SixSites(n int, uneven bool) Layout {
	shares := []float64{1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6}
	if uneven {
		shares = []float64{0.40, 0.22, 0.16, 0.12, 0.06, 0.04}
	}
	return Layout{Sizes: parts(n, shares), RTT: testnet.Grid5000()}
}

// Plane lays n hosts out at equal sites at random places of a square. Round
// trips are 1 ms and 1 ms for each of its 30 parts of length, with a detour of
// up to 20 %.
func Plane(n, sites int, seed uint64) Layout {
	rnd := rand.New(rand.NewPCG(seed, 0x91a))
	shares, x, y := make([]float64, sites), make([]float64, sites), make([]float64, sites)
	rtt := make([][]time.Duration, sites)
	for i := range sites {
		shares[i], x[i], y[i] = 1/float64(sites), 30*rnd.Float64(), 30*rnd.Float64()
		rtt[i] = make([]time.Duration, sites)
		for k := range i {
			ms := 1 + math.Hypot(x[i]-x[k], y[i]-y[k])*(1+0.2*rnd.Float64())
			rtt[i][k] = time.Duration(ms * float64(time.Millisecond))
			rtt[k][i] = rtt[i][k]
		}
	}
	return Layout{Sizes: parts(n, shares), RTT: rtt}
}

// OneSite lays n hosts out at one site.
func OneSite(n int) Layout { return Layout{Sizes: []int{n}, RTT: [][]time.Duration{{0}}} }

// parts divides n in proportion to the shares, which sum up to 1.
func parts(n int, shares []float64) []int {
	out := make([]int, len(shares))
	sum, given := 0.0, 0
	for i, s := range shares {
		sum += s
		out[i] = int(math.Round(sum*float64(n))) - given
		given += out[i]
	}
	return out
}

// hash spreads a number evenly over 64 bits.
func hash(x uint64) uint64 {
	x = (x + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
