// Package mapping decides which task of a program runs on which node, one task to a node, from the
// graph of what tasks tell each other. It is pure: the same input gives the same answer.
//
// Maheve and Replacement are the algorithm of R. Couturier, D. Laiymani and S. Miquée, MAHEVE: An Efficient
// Reliable Mapping of Asynchronous Iterative Applications on Volatile and Heterogeneous Environments; a
// section or a formula that a comment names is one of theirs. It is made for asynchronous iterations: each
// task computes with what it last heard of its neighbours, and the loss of a node costs less if the node that
// takes over is near. Its steps:
//
//   - hd, how unlike nodes are (section 3.1), says what matters: with 0 only how many nodes a cluster
//     has and how many neighbours a task has, with 1 only how strong the nodes are and what a task costs;
//   - clusters are ordered by a mark M, formula (1);
//   - tasks are ordered by Q, formula (2), each followed by some of its neighbours;
//   - clusters are filled in order, but in each some nodes are kept as spares for replacements.
//
// Where the paper is silent, or what is left of it cannot be read, these are the choices:
//
//   - Formula (1) is M = NCP^hd + NCF^(1-hd): only this has the limits that the paper gives, NCF + 1 at
//     hd = 0 and NCP + 1 at hd = 1.
//   - NCP and NCF are normalised by the largest of all clusters. A cluster without a free node is last.
//   - hd is that of all free nodes, and at most 1; with Replacement that of those free then.
//   - Nb, the number of neighbours that follow a task, is rounded to the nearest whole number, and is at
//     least 1 if the task has a neighbour. They are those of highest Q, of equal ones the lowest numbers. A
//     task that is in the list already brings none.
//   - Equal marks, equal Q and equal nodes stay in the order in which they are given.
//   - Within a cluster the strongest free node is taken first.
//   - "Almost all" nodes of a cluster: a share of them, DefaultSpares, is kept, at least one.
//   - If tasks do not fit beside all spares, spares are given up, but as evenly as can be: no cluster
//     keeps two more than one that had to give up some. See keep.
//
// Local and its Replace are not the paper's: see there.
package mapping

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Edge is what a task and its neighbour tell each other in an iteration.
type Edge struct {
	To     int     // the neighbour
	Volume float64 // how much, > 0: c_ij of section 3.1
}

// Graph is a task interaction graph (section 3.1): tasks run at the same time, and have no order.
type Graph struct {
	Cost  []float64 // of each task, for an iteration on a node of power 1, >= 0: e_i
	Edges [][]Edge  // of each task, as many as Cost; each stands at both ends: d_i is their number
}

// NewGraph returns tasks of cost 1 without edges.
func NewGraph(tasks int) *Graph {
	return &Graph{Cost: slices.Repeat([]float64{1}, tasks), Edges: make([][]Edge, tasks)}
}

// Join adds an edge between two tasks.
func (g *Graph) Join(a, b int, volume float64) {
	g.Edges[a] = append(g.Edges[a], Edge{To: b, Volume: volume})
	g.Edges[b] = append(g.Edges[b], Edge{To: a, Volume: volume})
}

// Check returns what is wrong with a graph, in one line.
func (g *Graph) Check() error {
	if len(g.Edges) != len(g.Cost) {
		return fmt.Errorf("a graph of %d tasks has edges of %d", len(g.Cost), len(g.Edges))
	}
	for i, cost := range g.Cost {
		if !(cost >= 0) || math.IsInf(cost, 1) {
			return fmt.Errorf("task %d costs %v: want 0 or more", i, cost)
		}
		for _, e := range g.Edges[i] {
			switch {
			case e.To < 0 || e.To >= len(g.Cost):
				return fmt.Errorf("task %d has the neighbour %d: there are %d tasks, from 0", i, e.To, len(g.Cost))
			case e.To == i:
				return fmt.Errorf("task %d is its own neighbour", i)
			case !(e.Volume > 0) || math.IsInf(e.Volume, 1):
				return fmt.Errorf("tasks %d and %d tell each other %v: want more than 0", i, e.To, e.Volume)
			}
		}
	}
	return g.paired()
}

// paired returns an error unless each edge stands once at either end, with the same volume.
func (g *Graph) paired() error {
	back := make([][]Edge, len(g.Cost)) // what other ends say, in order of their numbers
	for i := range g.Cost {
		for _, e := range g.Edges[i] {
			back[e.To] = append(back[e.To], Edge{To: i, Volume: e.Volume})
		}
	}
	for i := range g.Cost {
		own := slices.SortedFunc(slices.Values(g.Edges[i]), func(a, b Edge) int { return cmp.Compare(a.To, b.To) })
		for k, e := range own {
			if k > 0 && own[k-1].To == e.To {
				return fmt.Errorf("task %d has the neighbour %d twice", i, e.To)
			}
		}
		for k := range max(len(own), len(back[i])) {
			switch {
			case k < len(own) && (k == len(back[i]) || own[k].To < back[i][k].To):
				return fmt.Errorf("task %d has the neighbour %d, which does not have it", i, own[k].To)
			case k == len(own) || own[k].To > back[i][k].To:
				return fmt.Errorf("task %d has the neighbour %d, which does not have it", back[i][k].To, i)
			case own[k].Volume != back[i][k].Volume:
				return fmt.Errorf("the edge of tasks %d and %d has the weight %v at one end, %v at the other", i, own[k].To, own[k].Volume, back[i][k].Volume)
			}
		}
	}
	return nil
}

// Cluster is free nodes at one place.
type Cluster struct {
	Power []float64 // of each free node, > 0: wn of section 3.1
}

// Place is a node: that of Power of a cluster.
type Place struct{ Cluster, Node int }

// Mapping is which node each task gets.
type Mapping struct {
	Places []Place // of each task, all different
	Order  []int   // the clusters as they were filled
	Spares []int   // nodes that were kept free in each cluster for replacements
	Short  int     // spares that had to be given up
}

// DefaultSpares is the share of a cluster that is kept for replacements: the paper uses "almost all"
// nodes. With a quarter of them kept, weak nodes are in use although stronger ones are free.
const DefaultSpares = 0.10

// Heterogeneity is hd of section 3.1: the standard deviation of powers by their mean, at most 1.
func Heterogeneity(powers []float64) float64 {
	if len(powers) == 0 {
		return 0
	}
	mean, squares := 0.0, 0.0
	for _, p := range powers {
		mean += p / float64(len(powers))
	}
	for _, p := range powers {
		squares += (p - mean) * (p - mean) / float64(len(powers))
	}
	if mean <= 0 {
		return 0
	}
	return min(1, math.Sqrt(squares)/mean)
}

// heterogeneity is that of all free nodes.
func heterogeneity(clusters []Cluster) float64 {
	var powers []float64
	for _, c := range clusters {
		powers = append(powers, c.Power...)
	}
	return Heterogeneity(powers)
}

// marks returns M of each cluster, formula (1), and -1 for one without a free node.
func marks(clusters []Cluster, hd float64) []float64 {
	means, most, strongest := make([]float64, len(clusters)), 0, 0.0
	for i, c := range clusters {
		for _, p := range c.Power {
			means[i] += p / float64(len(c.Power))
		}
		most, strongest = max(most, len(c.Power)), max(strongest, means[i])
	}
	list := make([]float64, len(clusters))
	for i, c := range clusters {
		if list[i] = -1; len(c.Power) > 0 {
			list[i] = math.Pow(means[i]/strongest, hd) + math.Pow(float64(len(c.Power))/float64(most), 1-hd)
		}
	}
	return list
}

// falling returns the numbers of values, the highest first, equal ones as they are given.
func falling(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	return order
}

// qualities returns Q of each task, formula (2).
func (g *Graph) qualities(hd float64) []float64 {
	list := make([]float64, len(g.Cost))
	for i, cost := range g.Cost {
		list[i] = math.Pow(cost, hd) * math.Pow(float64(len(g.Edges[i])), 1-hd)
	}
	return list
}

// following is Nb of a task with d neighbours (section 4.1): how many of them follow it in the list.
func following(d int, hd float64) int {
	if d == 0 {
		return 0
	}
	return max(1, int(math.Round(math.Pow(float64(d), 1-hd))))
}

// list returns the tasks in the order in which they are placed (section 4.1, "Sorting tasks").
func (g *Graph) list(hd float64) []int {
	q := g.qualities(hd)
	order, listed := make([]int, 0, len(q)), make([]bool, len(q))
	var others []int
	for _, i := range falling(q) {
		if listed[i] {
			continue
		}
		order, listed[i], others = append(order, i), true, others[:0]
		for _, e := range g.Edges[i] {
			if !listed[e.To] {
				others = append(others, e.To)
			}
		}
		slices.SortFunc(others, func(a, b int) int { return cmp.Or(cmp.Compare(q[b], q[a]), cmp.Compare(a, b)) })
		for _, j := range others[:min(len(others), following(len(g.Edges[i]), hd))] {
			order, listed[j] = append(order, j), true
		}
	}
	return order
}

// keep returns how many nodes of each cluster stay free, and how many fewer that are than wanted. Of
// sizes a share is wanted, at least one of each that has a node, if share > 0. If that leaves too few
// for the tasks, the clusters with most spares give up theirs first, and among equals those last in
// order.
func keep(order []int, clusters []Cluster, tasks int, share float64) (spares []int, short int) {
	spares = make([]int, len(clusters))
	room, wanted, most := -tasks, 0, 0
	for i, c := range clusters {
		n := len(c.Power)
		room += n
		if share > 0 && n > 0 {
			spares[i] = min(n, max(1, int(math.Ceil(share*float64(n)-1e-9)))) // 0.07 x 100 is above 7
		}
		wanted, most = wanted+spares[i], max(most, spares[i])
	}
	if wanted <= room {
		return spares, 0
	}
	of := func(level int) (sum int) {
		for _, n := range spares {
			sum += min(n, level)
		}
		return sum
	}
	// The highest level that all can have is found by halves, since clusters may be large.
	low, high := 0, most // of(low) <= room < of(high)
	for low+1 < high {
		if middle := (low + high) / 2; of(middle) <= room {
			low = middle
		} else {
			high = middle
		}
	}
	left := room - of(low)
	for _, i := range order {
		if spares[i] > low {
			if spares[i] = low; left > 0 {
				spares[i], left = low+1, left-1
			}
		}
	}
	return spares, wanted - room
}

// Maheve maps a graph on free nodes, of which a share stays spare in each cluster (section 4.1). It is
// O((V + E) log V + N log N) for V tasks, E edges and N nodes.
func Maheve(g *Graph, clusters []Cluster, share float64) (Mapping, error) {
	if err := check(g, clusters, share); err != nil {
		return Mapping{}, err
	}
	hd := heterogeneity(clusters)
	return fill(g.list(hd), falling(marks(clusters, hd)), clusters, share), nil
}

// check returns why a graph cannot be mapped.
func check(g *Graph, clusters []Cluster, share float64) error {
	if err := g.Check(); err != nil {
		return err
	}
	if !(share >= 0 && share <= 1) {
		return fmt.Errorf("the share of spares is %v: want 0 to 1", share)
	}
	nodes := 0
	for i, c := range clusters {
		nodes += len(c.Power)
		for _, p := range c.Power {
			if !(p > 0) || math.IsInf(p, 1) {
				return fmt.Errorf("a node of cluster %d has the power %v: want more than 0", i, p)
			}
		}
	}
	if len(g.Cost) > nodes {
		return fmt.Errorf("%w: %d tasks, %d free nodes", ErrTooFew, len(g.Cost), nodes)
	}
	return nil
}

// ErrTooFew is that there are more tasks than nodes.
var ErrTooFew = errors.New("each task wants a node of its own")

// fill places tasks on clusters, both in order (section 4.1, "Mapping method").
func fill(tasks, order []int, clusters []Cluster, share float64) Mapping {
	m := Mapping{Places: make([]Place, len(tasks)), Order: order}
	m.Spares, m.Short = keep(order, clusters, len(tasks), share)
	for _, c := range order {
		strongest := falling(clusters[c].Power)
		for _, node := range strongest[:min(len(tasks), len(strongest)-m.Spares[c])] {
			m.Places[tasks[0]], tasks = Place{c, node}, tasks[1:]
		}
	}
	return m
}

// Replacement returns the node that takes over a task of a cluster whose node has failed (section 4.2):
// the strongest that is free there; if none is, the strongest of the best cluster, by what is free now.
// It returns false if no node is free.
func Replacement(cluster int, free []Cluster) (Place, bool) {
	if cluster < 0 || cluster >= len(free) || len(free[cluster].Power) == 0 {
		order := falling(marks(free, heterogeneity(free)))
		if len(order) == 0 || len(free[order[0]].Power) == 0 {
			return Place{}, false
		}
		cluster = order[0]
	}
	return Place{cluster, falling(free[cluster].Power)[0]}, true
}
