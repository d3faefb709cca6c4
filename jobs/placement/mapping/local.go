package mapping

import (
	"math"
	"slices"
)

// Latency is how long a unit of volume takes between a node of either cluster, in the unit in which a
// cost of 1 takes a node of power 1 one: wl of section 3.1. It is the same both ways, and of a cluster
// with itself between two of its nodes.
type Latency func(a, b int) float64

// Times are ET(V_i) of section 3.1, the estimated time of an iteration of each task: its cost by the power of
// its node, and what it tells each neighbour. That of the program is the largest.
func (g *Graph) Times(clusters []Cluster, places []Place, wl Latency) []float64 {
	times := make([]float64, len(g.Cost))
	for i := range times {
		times[i] = g.time(i, places[i], clusters, places, wl)
	}
	return times
}

// time is that of a task if it was at a place.
func (g *Graph) time(i int, at Place, clusters []Cluster, places []Place, wl Latency) float64 {
	t := g.Cost[i] / clusters[at.Cluster].Power[at.Node]
	for _, e := range g.Edges[i] {
		t += e.Volume * wl(at.Cluster, places[e.To].Cluster)
	}
	return t
}

// nearMark is how much lower a mark may be and still count as equal, as a share of the best: where
// marks hardly differ distance matters more.
const nearMark = 0.05

// effort bounds the exchanges of Local, in looks at an edge: about 200 ms.
const effort = 4_000_000

// Local maps as Maheve does, and then goes on where the paper ends: its conclusion says that clusters
// should be marked by where they are, too, and leaves that open. This is not the paper's algorithm.
//
//   - After the first, the next cluster is the nearest to those that were taken, weighted by their nodes, of
//     all whose mark is at most nearMark below the best that is left.
//   - When all tasks have nodes, two tasks exchange theirs as long as that makes iterations shorter: the sum
//     of squares of Times falls, and none of those that change gets longer than the longest of them was.
//     Slow tasks look first, at all others. It is O(V² d) for V tasks of d neighbours, and stops after a bounded
//     effort: with more than some hundred tasks only the slowest look.
//
// As many spares stay as with Maheve.
func Local(g *Graph, clusters []Cluster, share float64, wl Latency) (Mapping, error) {
	if err := check(g, clusters, share); err != nil {
		return Mapping{}, err
	}
	hd := heterogeneity(clusters)
	m := fill(g.list(hd), nearest(marks(clusters, hd), clusters, wl), clusters, share)
	newExchange(g, clusters, m.Places, wl).run(effort)
	return m, nil
}

// nearest orders clusters by mark, and those of about equal marks by the distance to those before.
func nearest(marks []float64, clusters []Cluster, wl Latency) []int {
	left := falling(marks)
	order := make([]int, 0, len(left))
	for len(left) > 0 {
		best, least := 0, math.Inf(1)
		for k, c := range left {
			if len(order) == 0 || marks[c] < marks[left[0]]*(1-nearMark) || marks[c] < 0 {
				break
			}
			sum := 0.0
			for _, taken := range order {
				sum += float64(len(clusters[taken].Power)) * wl(c, taken)
			}
			if sum < least {
				best, least = k, sum
			}
		}
		order = append(order, left[best])
		left = slices.Delete(left, best, best+1)
	}
	return order
}

// Replace returns the node that takes over a task whose node has failed, in the manner of Local: as
// Replacement while one is free in the same cluster; if none is, the free node with which the task's
// iterations are shortest, which weighs power against distance to its neighbours. Only the clusters of
// places count.
func (g *Graph) Replace(task int, places []Place, free []Cluster, wl Latency) (Place, bool) {
	own := places[task].Cluster
	if len(free[own].Power) > 0 {
		return Replacement(own, free)
	}
	best, least, found := Place{}, math.Inf(1), false
	for c := range free {
		for _, node := range falling(free[c].Power)[:min(1, len(free[c].Power))] {
			if t := g.time(task, Place{c, node}, free, places, wl); t < least {
				best, least, found = Place{c, node}, t, true
			}
		}
	}
	return best, found
}

// exchange has tasks exchange their nodes.
type exchange struct {
	g        *Graph
	clusters []Cluster
	places   []Place
	wl       Latency
	times    []float64
	change   []float64 // scratch: of the times of tasks that an exchange touches
	touched  []int     // scratch: those tasks
	marked   []bool    // scratch: whether they are in touched
	left     int       // of the effort
}

func newExchange(g *Graph, clusters []Cluster, places []Place, wl Latency) *exchange {
	n := len(places)
	return &exchange{g: g, clusters: clusters, places: places, wl: wl, times: g.Times(clusters, places, wl),
		change: make([]float64, n), marked: make([]bool, n)}
}

// run exchanges until nothing helps any more, or the effort is used up.
func (x *exchange) run(effort int) {
	x.left = effort
	for better := true; better && x.left > 0; {
		better = false
		for _, i := range falling(x.times) {
			if x.improve(i) {
				better = true
			}
		}
	}
}

// improve makes the best exchange of a task, and reports whether there was one.
func (x *exchange) improve(i int) bool {
	with, best := -1, 0.0
	for j := range x.places {
		if x.left <= 0 {
			break
		}
		if x.places[i].Cluster == x.places[j].Cluster && x.power(i) == x.power(j) {
			continue // nothing would be another
		}
		if gain := x.gain(i, j); gain > best+1e-9*x.times[i]*x.times[i] {
			with, best = j, gain
		}
	}
	if with < 0 {
		return false
	}
	x.try(i, with)
	for _, k := range x.touched {
		x.times[k] += x.change[k]
	}
	x.clear()
	x.places[i], x.places[with] = x.places[with], x.places[i]
	return true
}

func (x *exchange) power(i int) float64 {
	return x.clusters[x.places[i].Cluster].Power[x.places[i].Node]
}

// gain returns by how much the sum of squares falls if two tasks exchange their nodes, and 0 if one
// that changes would take longer than any of them does.
func (x *exchange) gain(i, j int) (gain float64) {
	x.try(i, j)
	before, after := 0.0, 0.0
	for _, k := range x.touched {
		old, now := x.times[k], x.times[k]+x.change[k]
		before, after, gain = max(before, old), max(after, now), gain+old*old-now*now
	}
	x.clear()
	if after > before*(1+1e-12) {
		return 0
	}
	return gain
}

// try notes how times change if two tasks exchange their nodes.
func (x *exchange) try(i, j int) {
	x.touch(i, x.g.Cost[i]*(1/x.power(j)-1/x.power(i)))
	x.touch(j, x.g.Cost[j]*(1/x.power(i)-1/x.power(j)))
	x.left -= 2
	if x.places[i].Cluster != x.places[j].Cluster {
		x.move(i, j)
		x.move(j, i)
	}
}

// move notes what the way to a task's neighbours changes if it goes to the cluster of another, which
// comes to its own.
func (x *exchange) move(i, j int) {
	from, to := x.places[i].Cluster, x.places[j].Cluster
	for _, e := range x.g.Edges[i] {
		if e.To == j {
			continue // as far as before, the other way round
		}
		at := x.places[e.To].Cluster
		change := e.Volume * (x.wl(to, at) - x.wl(from, at))
		x.touch(i, change)
		x.touch(e.To, change)
	}
	x.left -= len(x.g.Edges[i])
}

func (x *exchange) touch(i int, change float64) {
	if !x.marked[i] {
		x.marked[i] = true
		x.touched = append(x.touched, i)
	}
	x.change[i] += change
}

func (x *exchange) clear() {
	for _, i := range x.touched {
		x.change[i], x.marked[i] = 0, false
	}
	x.touched = x.touched[:0]
}
