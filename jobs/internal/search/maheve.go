package search

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/placement"
	"zorilla/jobs/placement/mapping"
	"zorilla/vicinity"
)

// The choice for jobs that are placed by a task graph (--strategy maheve): all that is offered is put into
// clusters, and package mapping says which task, which is a rank, each node gets. A lost rank gets the node that
// package mapping has for it.

// maxMapped bounds how many nodes, the nearest, are put into clusters: that costs the square of it.
const maxMapped = 1024

// network is offers by clusters.
type network struct {
	clusters []mapping.Cluster
	offers   [][]int             // of each cluster, by the place in Power
	of       map[vicinity.ID]int // the cluster of each node
}

// newNetwork puts the nodes that offer, of these at most so many, and others into clusters. Power is 0 where it is not known.
func newNetwork(offers []placement.Offer, most int, others []vicinity.ID, power func(vicinity.ID) int64, between apartOf) *network {
	order := make([]int, 0, len(offers))
	for i, o := range offers {
		if o.Workers > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(offers[a].RTT, offers[b].RTT) })
	order = order[:min(len(order), most)]
	ids := make([]vicinity.ID, 0, len(order)+len(others))
	for _, i := range order {
		ids = append(ids, vicinity.ID(offers[i].Node))
	}
	for _, id := range others {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	n := &network{of: map[vicinity.ID]int{}}
	for number, group := range vicinity.Group(len(ids), func(a, b int) time.Duration { return between(ids[a], ids[b]) }) {
		var c mapping.Cluster
		var list []int
		for _, i := range group {
			n.of[ids[i]] = number
			if i < len(order) {
				c.Power = append(c.Power, float64(cmp.Or(power(ids[i]), vicinity.UsualPower)))
				list = append(list, order[i])
			}
		}
		n.clusters, n.offers = append(n.clusters, c), append(n.offers, list)
	}
	return n
}

// take takes a node out of what is free, and returns its offer.
func (n *network) take(p mapping.Place) int {
	i := n.offers[p.Cluster][p.Node]
	n.offers[p.Cluster] = slices.Delete(slices.Clone(n.offers[p.Cluster]), p.Node, p.Node+1)
	n.clusters[p.Cluster].Power = slices.Delete(slices.Clone(n.clusters[p.Cluster].Power), p.Node, p.Node+1)
	return i
}

// place is where a node is among what is free.
func (n *network) place(offers []placement.Offer, id vicinity.ID) (p mapping.Place, ok bool) {
	cluster, ok := n.of[id]
	if !ok {
		return p, false
	}
	node := slices.IndexFunc(n.offers[cluster], func(i int) bool { return offers[i].Node == string(id) })
	return mapping.Place{Cluster: cluster, Node: node}, node >= 0
}

// mapped gives offers to a job by its graph: to all of its ranks, or to some that are looked for again, near where
// they were lost or at the nodes that are named for them.
func mapped(spec *jobs.Spec, d *Demand, offers []placement.Offer, power func(vicinity.ID) int64, between apartOf) ([]int, error) {
	n := newNetwork(offers, maxMapped, d.Lost.nodes(), power, between)
	assign := make([]int, d.Wanted)
	if d.Wanted < spec.Max || len(d.Lost) > 0 {
		for place := range assign {
			near := d.Lost.at(place)
			cluster, known := n.of[near]
			if !known {
				cluster = -1
			}
			p, ok := n.place(offers, near)
			if !ok || !slices.Contains(d.To, near) {
				p, ok = mapping.Replacement(cluster, n.clusters)
			}
			if !ok {
				return nil, fmt.Errorf("%w: %d workers wanted, %d nodes offered", placement.ErrInfeasible, d.Wanted, place)
			}
			assign[place] = n.take(p)
		}
		return assign, nil
	}
	graph, err := spec.Graph.Graph()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", placement.ErrInvalid, err)
	}
	m, err := mapping.Maheve(graph, n.clusters, mapping.DefaultSpares)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", placement.ErrInfeasible, err)
	}
	for rank, p := range m.Places {
		assign[rank] = n.offers[p.Cluster][p.Node]
	}
	return assign, nil
}

// Spares are offers that a job keeps for ranks that it may lose. A rank goes on near where it was lost, so each
// cluster has spares for its share of the ranks.

// maxSpread bounds how many offers, the nearest, are put into clusters for spares.
const maxSpread = 256

// spread gives offers to spares, one after the other: to the cluster that has the most ranks for each of its spares,
// with the new one. In a cluster the strongest node comes first, of equal ones the nearest.
func (k *Spares) spread(wanted int, offers []placement.Offer, power func(vicinity.ID) int64, between apartOf) (assign []int) {
	n := newNetwork(offers, maxSpread, k.nodes(), power, between)
	ranks, has := make([]int, len(n.clusters)), make([]int, len(n.clusters))
	for id, count := range k.Ranks {
		ranks[n.of[id]] += count
	}
	for id, count := range k.Has {
		has[n.of[id]] += count
	}
	left := slices.Clone(offers)
	for len(assign) < wanted {
		best := -1
		for c := range n.clusters {
			n.offers[c] = slices.DeleteFunc(n.offers[c], func(i int) bool { return left[i].Workers == 0 })
			if len(n.offers[c]) > 0 && (best < 0 || ranks[c]*(has[best]+1) > ranks[best]*(has[c]+1)) {
				best = c
			}
		}
		if best < 0 {
			break
		}
		at := slices.MaxFunc(n.offers[best], func(a, b int) int {
			return cmp.Compare(power(vicinity.ID(offers[a].Node)), power(vicinity.ID(offers[b].Node)))
		})
		assign = append(assign, at)
		left[at].Workers--
		has[best]++
	}
	return assign
}

// nodes lists the nodes of ranks and spares.
func (k *Spares) nodes() []vicinity.ID {
	all := map[vicinity.ID]int{}
	maps.Copy(all, k.Ranks)
	maps.Copy(all, k.Has)
	return slices.Sorted(maps.Keys(all))
}

// alike is the power of nodes where it does not count.
func alike(vicinity.ID) int64 { return 0 }
