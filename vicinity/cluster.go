package vicinity

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// What is less than onePlace apart is one place, a machine or a network of
	// its own; what is more than TwoPlaces apart never is. Where between them
	// the line runs is read from the network.
	onePlace  = time.Millisecond
	TwoPlaces = 4 * time.Millisecond
)

// Cluster is a group of nodes that are near each other, such as a site.
type Cluster struct {
	Name    string `json:"name"`
	Members []ID   `json:"members"` // sorted
}

// Group divides n things, called by numbers from 0, into groups that are near
// each other; distance must be symmetric. Both the groups and the numbers in
// them come in ascending order. The same distances give the same groups. It
// takes memory for n*n/2 numbers and time in proportion to n*n.
//
// Groups are joined by the mean distance of their members, nearest first, up
// to a line between 1 and 4 ms: there where the next join would be farthest,
// in proportion, from the one before.
func Group(n int, distance func(a, b int) time.Duration) [][]int {
	if n == 0 {
		return nil
	}
	joins := newLinkage(n, distance).run()
	slices.SortStableFunc(joins, func(a, b join) int { return cmp.Compare(a.at, b.at) })
	line := cut(joins)
	root := make([]int, n)
	for i := range root {
		root[i] = i
	}
	var find func(int) int
	find = func(i int) int {
		if root[i] != i {
			root[i] = find(root[i])
		}
		return root[i]
	}
	for _, j := range joins {
		if j.at > line {
			break
		}
		a, b := find(j.a), find(j.b)
		root[max(a, b)] = min(a, b)
	}
	groups := make(map[int]int)
	var out [][]int
	for i := range n {
		r := find(i)
		if r == i {
			groups[r] = len(out)
			out = append(out, nil)
		}
		out[groups[r]] = append(out[groups[r]], i)
	}
	return out
}

// cut returns the distance up to which sorted joins are made: the lower end
// of the widest gap in proportion.
func cut(joins []join) float32 {
	low, high := float32(onePlace), float32(TwoPlaces)
	best, line := float32(0), low
	last := low
	for _, j := range joins {
		at := min(max(j.at, low), high)
		if gap := at / last; gap > best {
			best, line = gap, last
		}
		last = at
		if at == high {
			return line
		}
	}
	if high/last > best {
		return last
	}
	return line
}

// join says that the groups of a and b are so far apart on average.
type join struct {
	a, b int
	at   float32
}

// linkage joins groups by their mean distance. It follows chains of nearest
// groups, so that each join costs time in proportion to n only.
type linkage struct {
	far  []float32 // distances, of a > b at a*(a-1)/2+b
	size []float32 // of the group that has this number; 0 = joined to another
}

func newLinkage(n int, distance func(a, b int) time.Duration) *linkage {
	l := &linkage{far: make([]float32, 0, n*(n-1)/2), size: make([]float32, n)}
	for a := range n {
		l.size[a] = 1
		for b := range a {
			l.far = append(l.far, float32(distance(a, b)))
		}
	}
	return l
}

func (l *linkage) between(a, b int) *float32 {
	if a < b {
		a, b = b, a
	}
	return &l.far[a*(a-1)/2+b]
}

func (l *linkage) run() []join {
	n := len(l.size)
	joins := make([]join, 0, n-1)
	var chain []int
	for start := 0; len(joins) < n-1; {
		if len(chain) == 0 {
			for l.size[start] == 0 {
				start++
			}
			chain = append(chain, start)
		}
		top := chain[len(chain)-1]
		near, at := -1, float32(math.Inf(1))
		if len(chain) > 1 { // who came before wins a tie, so that chains end
			near = chain[len(chain)-2]
			at = *l.between(top, near)
		}
		for i := range n {
			if i == top || l.size[i] == 0 {
				continue
			}
			if d := *l.between(top, i); d < at || near < 0 {
				near, at = i, d
			}
		}
		if len(chain) > 1 && near == chain[len(chain)-2] {
			chain = chain[:len(chain)-2]
			l.merge(top, near)
			joins = append(joins, join{top, near, at})
			continue
		}
		chain = append(chain, near)
	}
	return joins
}

// merge puts the group of the higher number into that of the lower.
func (l *linkage) merge(a, b int) {
	a, b = min(a, b), max(a, b)
	all := l.size[a] + l.size[b]
	for i, size := range l.size {
		if size > 0 && i != a && i != b {
			d := l.between(a, i)
			*d = (*d*l.size[a] + *l.between(b, i)*l.size[b]) / all
		}
	}
	l.size[a], l.size[b] = all, 0
}

// Clusters returns groups of nodes that are near each other, this node's own
// first, then by distance from here. Every member with a known place is in one
// of them, and so is this node; the others are in none.
//
// A cluster is named after the site that most of its members with a site are
// at, else "near" its member with the smallest ID. It takes time in proportion
// to the square of the members, 0.2 s for 2000, so that an answer is given
// again for some time: 5 ms for each member.
func (t *Table) Clusters() []Cluster {
	t.mu.Lock()
	now := time.Now()
	if t.clusters != nil && now.Before(t.regroup) {
		defer t.mu.Unlock()
		return cloneClusters(t.clusters)
	}
	places, members := t.placesLocked()
	t.mu.Unlock()

	list := nameClusters(groupPlaces(places), members)

	t.mu.Lock()
	defer t.mu.Unlock()
	t.clusters, t.regroup = list, now.Add(time.Duration(len(places))*5*time.Millisecond)
	return cloneClusters(list)
}

func cloneClusters(list []Cluster) []Cluster {
	out := slices.Clone(list)
	for i := range out {
		out[i].Members = slices.Clone(out[i].Members)
	}
	return out
}

// placed is a node with its coordinate and its distance from this node.
type placed struct {
	id   ID
	at   Coordinate
	seen bearings
	from time.Duration
}

// placesLocked returns the members with a known place, and this node, sorted
// by ID, and what the members say of themselves.
func (t *Table) placesLocked() ([]placed, map[ID]Member) {
	list := make([]placed, 0, len(t.members)+1)
	members := make(map[ID]Member, len(t.members))
	add := func(id ID) {
		if at, ok := t.core.Coordinate(id); ok || id == t.cfg.Self {
			rtt, _ := t.core.Estimate(id)
			list = append(list, placed{id, at, t.core.where.bearingsOf(id), rtt})
		}
	}
	add(t.cfg.Self)
	for id, m := range t.members {
		members[id] = m
		if id != t.cfg.Self {
			add(id)
		}
	}
	slices.SortFunc(list, func(a, b placed) int { return cmp.Compare(a.id, b.id) })
	return list, members
}

// groupPlaces groups nodes, those of the group nearest to this node first.
func groupPlaces(list []placed) [][]placed {
	var out [][]placed
	for _, g := range Group(len(list), func(a, b int) time.Duration { return predict(list[a].at, list[b].at, list[a].seen, list[b].seen) }) {
		group := make([]placed, len(g))
		for i, k := range g {
			group[i] = list[k]
		}
		out = append(out, group)
	}
	// This node is at distance 0 from itself, whom else would be nearer?
	nearest := func(g []placed) time.Duration {
		return slices.MinFunc(g, func(a, b placed) int { return cmp.Compare(a.from, b.from) }).from
	}
	slices.SortStableFunc(out, func(a, b []placed) int { return cmp.Compare(nearest(a), nearest(b)) })
	return out
}

// nameClusters names each group after a site or a member. Of two groups at one
// site the farther one gets the name of a member too.
func nameClusters(groups [][]placed, members map[ID]Member) []Cluster {
	list := make([]Cluster, len(groups))
	used := make(map[string]bool)
	for i, g := range groups {
		near := g[0].id.Short()
		if m := members[g[0].id]; m.Name != "" {
			near = m.Name
		}
		votes := make(map[string]int)
		all := 0
		for _, p := range g {
			list[i].Members = append(list[i].Members, p.id)
			if site := members[p.id].Site; site != "" {
				votes[site]++
				all++
			}
		}
		list[i].Name = "near " + near
		for site, n := range votes {
			switch {
			case 2*n <= all:
			case used[site]:
				list[i].Name = site + ", near " + near
			default:
				list[i].Name = site
			}
		}
		used[list[i].Name] = true
	}
	return list
}
