package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"zorilla/jobs/placement/mapping"
)

// kind is a row of table 1: an architecture, and what the paper found there.
type kind struct {
	hd                     float64
	nodes, clusters, sites int
	paper                  map[string][2]float64 // seconds by method, without failures and with
}

func kinds() []kind {
	row := func(list ...float64) map[string][2]float64 {
		m := map[string][2]float64{}
		for i, name := range []string{byDefault, likeQM, likeFEC, byMaheve} {
			m[name] = [2]float64{list[2*i], list[2*i+1]}
		}
		return m
	}
	return []kind{
		{0.08, 106, 4, 4, row(80, 229, 63, 178, 61, 154, 60, 113)},
		{0.50, 110, 4, 3, row(67, 242, 61, 118, 63, 133, 54, 85)},
		{0.72, 115, 5, 4, row(67, 192, 59, 99, 65, 121, 52, 86)},
	}
}

// The paper says neither how large nor how strong its clusters were. Each has ten nodes at least, all
// alike, and none is more than ten times as strong as another.
const (
	leastNodes    = 10
	mostUnlike    = 10.0
	leastDistance = 0.3 // of two sites, by the mean
)

// shape is an architecture.
type shape struct {
	site     []int     // of each cluster
	nodes    []int     // of each cluster
	power    []float64 // of a node of each cluster; the mean of all nodes is 1
	distance []float64 // of two sites, by the mean of all pairs; a*sites + b
	sites    int
}

// drawShape returns a random architecture that has the hd of its kind.
func drawShape(rnd *rand.Rand, k *kind) *shape {
	for {
		s := &shape{sites: k.sites, nodes: slices.Repeat([]int{leastNodes}, k.clusters)}
		weights, all := make([]float64, k.clusters), 0.0
		z := make([]float64, k.clusters)
		for i := range k.clusters {
			weights[i], z[i] = 0.2+rnd.Float64(), 2*rnd.Float64()-1
			all += weights[i]
			s.site = append(s.site, i%k.sites)
		}
		spare := k.nodes - leastNodes*k.clusters
		left := spare
		for i, w := range weights {
			n := int(float64(spare) * w / all)
			s.nodes[i], left = s.nodes[i]+n, left-n
		}
		s.nodes[rnd.IntN(k.clusters)] += left
		if s.spread(z, k.hd) {
			s.settle(rnd)
			return s
		}
	}
}

// spread gives clusters powers e^(f z), with the f for which hd is as wanted, and reports whether
// there is one that does not make them too unlike.
func (s *shape) spread(z []float64, hd float64) bool {
	of := func(f float64) float64 {
		mean, n := 0.0, 0
		s.power = s.power[:0]
		for i, v := range z {
			s.power = append(s.power, math.Exp(f*v))
			mean, n = mean+s.power[i]*float64(s.nodes[i]), n+s.nodes[i]
		}
		for i := range s.power {
			s.power[i] *= float64(n) / mean
		}
		return s.hd()
	}
	low, high := 0.0, math.Log(mostUnlike)/(slices.Max(z)-slices.Min(z))
	if of(high) < hd {
		return false
	}
	for range 60 {
		if middle := (low + high) / 2; of(middle) < hd {
			low = middle
		} else {
			high = middle
		}
	}
	return true
}

func (s *shape) hd() float64 {
	var powers []float64
	for _, c := range s.all() {
		powers = append(powers, c.Power...)
	}
	return mapping.Heterogeneity(powers)
}

// settle puts the sites somewhere on a plane.
func (s *shape) settle(rnd *rand.Rand) {
	at := make([][2]float64, s.sites)
	for i := range at {
		at[i] = [2]float64{rnd.Float64(), rnd.Float64()}
	}
	s.distance = make([]float64, s.sites*s.sites)
	sum := 0.0
	for a := range at {
		for b := range at {
			s.distance[a*s.sites+b] = math.Hypot(at[a][0]-at[b][0], at[a][1]-at[b][1])
			sum += s.distance[a*s.sites+b]
		}
	}
	mean := sum / float64(s.sites*(s.sites-1))
	for i := range s.distance {
		if i%(s.sites+1) != 0 {
			s.distance[i] = max(leastDistance, s.distance[i]/mean)
		}
	}
}

// all returns all nodes.
func (s *shape) all() (list []mapping.Cluster) {
	for i, n := range s.nodes {
		list = append(list, mapping.Cluster{Power: slices.Repeat([]float64{s.power[i]}, n)})
	}
	return list
}

// delay is how long a message takes between nodes of two clusters.
func (s *shape) delay(m *measured, a, b int) float64 {
	if s.site[a] == s.site[b] {
		return m.MessageNear.Seconds
	}
	return m.MessageFar.Seconds * s.distance[s.site[a]*s.sites+s.site[b]]
}

// The tasks of the paper: the parts of a matrix of low bandwidth, each with 8 to 20 neighbours.
const (
	tasks          = 64
	fewest, most   = 8, 20
	meanNeighbours = 14
	reach          = 12 // how far from a task a neighbour is, counted in tasks, since the bandwidth is low
)

// drawGraph returns tasks whose costs differ by up to a quarter from their mean, 1.
func drawGraph(rnd *rand.Rand) *mapping.Graph {
	g := mapping.NewGraph(tasks)
	sum := 0.0
	for i := range g.Cost {
		g.Cost[i] = 0.75 + rnd.Float64()/2
		sum += g.Cost[i]
		for k := 1; k <= fewest/2; k++ {
			g.Join(i, (i+k)%tasks, 1)
		}
	}
	for i := range g.Cost {
		g.Cost[i] *= tasks / sum
	}
	for edges := tasks * fewest / 2; edges < tasks*meanNeighbours/2; {
		a := rnd.IntN(tasks)
		b := (a + fewest/2 + 1 + rnd.IntN(reach-fewest/2)) % tasks
		taken := slices.ContainsFunc(g.Edges[a], func(e mapping.Edge) bool { return e.To == b })
		if !taken && len(g.Edges[a]) < most && len(g.Edges[b]) < most {
			g.Join(a, b, 1)
			edges++
		}
	}
	return g
}
