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

// Line lays n hosts out at sites in a row, neighbours of which are a step apart.
func Line(n, sites int, step time.Duration) Layout {
	shares, rtt := make([]float64, sites), make([][]time.Duration, sites)
	for i := range sites {
		shares[i], rtt[i] = 1/float64(sites), make([]time.Duration, sites)
		for k := range i {
			rtt[i][k] = time.Duration(i-k) * step
			rtt[k][i] = rtt[i][k]
		}
	}
	return Layout{Sizes: parts(n, shares), RTT: rtt}
}

// Home lays n hosts out at two data centres 0.2 ms apart, with 15 % of them each, and at
// home, each behind a line of 5 to 60 ms to one of five providers, which are 2 to 20 ms
// from each other and from the data centres.
func Home(n int, seed uint64) Layout {
	const centres, providers = 2, 5
	rnd := rand.New(rand.NewPCG(seed, 0x407e))
	between := func(least, most float64) time.Duration {
		return time.Duration((least + (most-least)*rnd.Float64()) * float64(time.Millisecond))
	}
	var core [centres + providers][centres + providers]time.Duration
	for i := range core {
		for k := range i {
			core[i][k] = between(2, 20)
			if i < centres {
				core[i][k] = 200 * time.Microsecond
			}
			core[k][i] = core[i][k]
		}
	}
	sizes, at, line := []int{n * 15 / 100, n * 15 / 100}, []int{0, 1}, []time.Duration{0, 0}
	for range n - sizes[0] - sizes[1] {
		sizes, at, line = append(sizes, 1), append(at, centres+rnd.IntN(providers)), append(line, between(5, 60))
	}
	rtt := make([][]time.Duration, len(sizes))
	for i := range rtt {
		rtt[i] = make([]time.Duration, len(sizes))
		for k := range i {
			rtt[i][k] = line[i] + line[k] + core[at[i]][at[k]]
			rtt[k][i] = rtt[i][k]
		}
	}
	return Layout{Sizes: sizes, RTT: rtt}
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
