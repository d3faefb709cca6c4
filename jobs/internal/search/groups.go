package search

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/placement"
	"zorilla/jobs/placement/topology"
	"zorilla/vicinity"
)

// The choice of nodes for jobs with groups. Nodes hold room for any mix of the groups' workers, and the
// allocator decides which mix each of them gets, by the round trips between nodes as for --strategy compact:
// those that a choice depends on are measured before it is made.

// grouping is the offers as the allocator sees them.
type grouping struct {
	*Search
	near    *nearness     // to where ranks were lost; nil = none were
	nodes   []vicinity.ID // those that offer first, in the order of the offers, then others that the job has
	hoping  bool          // round trips that are not measured count as the shortest that they may be
	guessed bool          // some of them did
	relaxed bool          // nodes may be as near as they like
	problem *topology.Problem
}

// arrange gives offers to a job with groups. An error says why they do not do. Where distances are only
// estimated, they may be shorter: then it is the choice that would do, of which they are to be measured.
func (g *grouping) arrange(d *Demand, offers []placement.Offer) (c *choice, err error) {
	g.group.doubted = nil
	g.pose(d)
	g.addOffers(d, offers)
	g.cluster()
	r := g.problem.Solve()
	why := errors.New(r.Why)
	if r.Verdict != topology.Found && g.spec.Near() {
		r = g.hopefully()
	}
	if r.Verdict != topology.Found {
		g.group.doubted = g.doubted()
		return nil, why
	}
	c = &choice{demand: d, offers: offers, near: g.near, sizes: make([]int, len(d.Groups.Most))}
	for group := range c.sizes {
		for i := range offers {
			n := r.Counts[i][group]
			c.sizes[group] += n
			c.assign = append(c.assign, slices.Repeat([]int{i}, n)...)
		}
	}
	c.worst = farthest(offers, c.assign)
	c.any = len(c.assign) < d.Wanted && !g.everybodyAnswered()
	g.group.matters = g.matters(d, r.Counts)
	if c.hoped = g.hoping && g.unmeasured(c); g.relaxed && !c.hoped {
		return nil, why
	}
	return c, nil
}

// judge finds out whether the nodes that have answered could do what is wanted if they were idle, as far as
// they have said. It costs as much as a choice, and is done again only when they say something else, or something
// else is wanted.
func (s *Search) judge(d *Demand) {
	if d.Groups == nil || s.judged == s.told+s.learnt && s.judgedFor.equal(d.Groups) {
		return
	}
	s.judged, s.judgedFor, s.infeasible, s.tooFew = s.told+s.learnt, *d.Groups, "", ""
	g := &grouping{Search: s}
	g.pose(d)
	_, kindOf := s.spec.Kinds()
	for _, id := range slices.Sorted(maps.Keys(s.room)) {
		c := s.room[id]
		if c.workers == 0 || s.spec.OnePerNode && d.Groups.Has[id] != nil { // which it keeps
			continue
		}
		host := g.host(id, d)
		host.Free = topology.Amounts{int64(c.most.slots), cmp.Or(c.most.memory, math.MaxInt64/4), math.MaxInt64 / 4, int64(c.most.gpus)}
		host.Workers, host.Fits = c.workers, groupsOf(c.fits, kindOf)
		g.add(id, host)
	}
	g.addOthers(d)
	r := g.hopefully()
	if r.Verdict != topology.Infeasible || len(g.doubted()) > 0 {
		return
	}
	s.infeasible = r.Why
	g.problem.Links = nil
	g.anyClusters()
	if r = g.problem.Solve(); r.Verdict == topology.Infeasible {
		s.tooFew = r.Why
	}
}

// hopefully solves the problem with round trips that are not measured as short as they may be, and if that
// does not do, as long as lower bounds want.
func (g *grouping) hopefully() topology.Result {
	g.hoping = true
	g.cluster()
	r := g.problem.Solve()
	if r.Verdict == topology.Found || !g.guessed {
		return r
	}
	for i := range g.problem.Links {
		g.relaxed = g.relaxed || g.problem.Links[i].MinRTT > 0
		g.problem.Links[i].MinRTT = 0
	}
	return g.problem.Solve()
}

// doubted lists nodes of a problem that hope has not solved, if what round trips were guessed may be why: a guess that
// is too short puts a node into one cluster, and so out of another, which no choice shows. It is where any clusters
// would do that this is worth to measure.
func (g *grouping) doubted() (list []vicinity.ID) {
	if !g.guessed || !g.clustered() {
		return nil
	}
	for _, a := range g.nodes {
		if slices.ContainsFunc(g.nodes, func(b vicinity.ID) bool { return g.doubtful(a, b) }) {
			list = append(list, a)
		}
	}
	if g.anyClusters(); len(list) > 0 && g.problem.Solve().Verdict != topology.Found {
		return nil
	}
	return list
}

// doubtful reports whether two nodes are one place by a guess.
func (g *grouping) doubtful(a, b vicinity.ID) bool {
	_, sure := g.Between(a, b)
	return !sure && g.maybeOnePlace(a, b)
}

// anyClusters makes it a problem of groups that may be in any number of clusters.
func (g *grouping) anyClusters() {
	for i := range g.problem.Groups {
		g.problem.Groups[i].Clusters = 0
	}
}

// unmeasured reports whether round trips that count for a choice are not measured.
func (g *grouping) unmeasured(c *choice) bool {
	nodes := chosen(c.offers, c.assign, c.demand)
	for i, a := range nodes {
		for _, b := range nodes[:i] {
			if _, sure := g.Between(a, b); !sure && g.group.matters(a, b) {
				return true
			}
		}
	}
	return false
}

// pose makes a problem of what is wanted.
func (g *grouping) pose(d *Demand) {
	g.problem = g.spec.Request(d.Groups.Least, d.Groups.Most, d.Groups.Split)
	g.problem.RTT, g.problem.Bandwidth = g.rtt, g.bandwidth
}

// addOffers adds the nodes that offer, and others that the job has.
func (g *grouping) addOffers(d *Demand, offers []placement.Offer) {
	_, kindOf := g.spec.Kinds()
	for _, o := range offers {
		id := vicinity.ID(o.Node)
		hold, host := g.Offers[id].hold, g.host(id, d)
		host.Free = topology.Amounts{int64(hold.room.Slots), hold.room.Memory, hold.room.Disk, int64(hold.room.GPUs)}
		host.Workers, host.Near, host.Fits = o.Workers, o.RTT, groupsOf(hold.fits, kindOf)
		if g.near != nil {
			host.Near = g.near.least(id)
		}
		g.add(id, host)
	}
	g.addOthers(d)
}

// groupsOf has a bit for each group of one of the kinds.
func groupsOf(kinds uint16, kindOf []int) (fits uint64) {
	for i, k := range kindOf {
		if kinds&(1<<k) != 0 {
			fits |= 1 << i
		}
	}
	return fits
}

// addOthers adds the nodes that the job has and that offer nothing.
func (g *grouping) addOthers(d *Demand) {
	for _, id := range d.Nodes {
		if d.Groups.Has[id] != nil && !slices.Contains(g.nodes, id) {
			g.add(id, g.host(id, d))
		}
	}
}

func (g *grouping) add(id vicinity.ID, host topology.Host) {
	g.nodes, g.problem.Hosts = append(g.nodes, id), append(g.problem.Hosts, host)
}

func (g *grouping) host(id vicinity.ID, d *Demand) topology.Host {
	h, about := topology.Host{Name: jobs.Label(g.Answers[id].Name, id), Has: d.Groups.Has[id]}, g.Search.about[id]
	h.Clock, h.Power = g.spec.Strength(about.Clock, about.Power)
	return h
}

// rtt is the round trip between two nodes, or the shortest that it may be by how far both are from here.
func (g *grouping) rtt(a, b int) time.Duration {
	rtt, sure := g.Between(g.nodes[a], g.nodes[b])
	if sure || !g.hoping {
		return rtt
	}
	g.guessed = true
	return min(rtt, g.least(g.nodes[a], g.nodes[b]))
}

// least is the shortest that the round trip between two nodes may be by how far both are from here.
func (s *distances) least(a, b vicinity.ID) time.Duration { return (s.far(a) - s.far(b)).Abs() * 3 / 4 }

// maybeOnePlace reports whether two nodes may be in one cluster by that.
func (s *distances) maybeOnePlace(a, b vicinity.ID) bool { return s.least(a, b) <= vicinity.TwoPlaces }

// bandwidth is the smaller of what both nodes say of their networks; 0 = one of them says nothing.
func (g *grouping) bandwidth(a, b int) int64 {
	return min(g.Search.about[g.nodes[a]].Bandwidth, g.Search.about[g.nodes[b]].Bandwidth)
}

// clustered reports whether it matters in which clusters nodes are.
func (g *grouping) clustered() bool {
	return slices.ContainsFunc(g.problem.Groups, func(t topology.Group) bool { return t.Clusters > 0 })
}

// cluster puts the nodes into clusters, if that matters.
func (g *grouping) cluster() {
	if !g.clustered() {
		return
	}
	p := g.problem
	for number, list := range vicinity.Group(len(p.Hosts), g.rtt) {
		for _, i := range list {
			p.Hosts[i].Cluster = number
		}
	}
}

// matters returns between which nodes of a choice the round trip counts.
func (g *grouping) matters(d *Demand, counts [][]int) func(a, b vicinity.ID) bool {
	t := &g.spec.Topology
	n := len(t.Groups)
	count := make([]bool, n*n) // pairs of groups
	for a := range n {
		for b := range n {
			link := t.Ruling(a, b)
			count[a*n+b] = link >= 0 && (t.Links[link].MinRTT > 0 || t.Links[link].MaxRTT > 0) || a == b && g.problem.Groups[a].Clusters > 0
		}
	}
	has := map[vicinity.ID][]int{}
	for i, id := range g.nodes {
		for group := range n {
			if counts[i][group] > 0 || d.Groups.Has[id] != nil && d.Groups.Has[id][group] > 0 {
				has[id] = append(has[id], group)
			}
		}
	}
	return func(a, b vicinity.ID) bool {
		for _, x := range has[a] {
			for _, y := range has[b] {
				if count[x*n+y] {
					return true
				}
			}
		}
		return false
	}
}
