package topology

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// doubt is an infeasible problem, and how much may be spent to say why.
type doubt struct {
	*Problem
	effort int
}

// why returns the constraint that cannot hold: first those of one group, then room for all, then links and
// clusters that are impossible alone, then what is in the way of the others.
func (p *Problem) why(effort int) string {
	d := doubt{p, max(1, effort/50)}
	for g := range p.Groups {
		if text := d.tooFew(g); text != "" {
			return text
		}
	}
	if text := d.together(); text != "" {
		return text
	}
	for i := range p.Links {
		if alone := d.link(i); p.Links[i].bounded() && alone.impossible() {
			return alone.loosen(i)
		}
	}
	for g := range p.Groups {
		if text := d.scattered(g); text != "" {
			return text
		}
	}
	for i := range p.Links {
		without := d.copy()
		without.Links[i] = Link{Name: p.Links[i].Name, Groups: p.Links[i].Groups}
		if p.Links[i].bounded() && without.possible() {
			return d.loosen(i)
		}
	}
	for g := range p.Groups {
		without := d.copy()
		without.Groups[g].Clusters = 0
		if p.Groups[g].Clusters > 0 && without.possible() {
			return fmt.Sprintf("group %s wants %s, which the links and other groups leave no room for", p.Groups[g].Name, inClusters(p.Groups[g].Clusters))
		}
	}
	return "the links, clusters and room that the groups want cannot hold together"
}

func (d doubt) copy() doubt {
	p := *d.Problem
	p.Links, p.Groups = slices.Clone(p.Links), slices.Clone(p.Groups)
	return doubt{&p, d.effort}
}

// least looks for an answer with as few workers as groups want.
func (d doubt) least() (found, maybe bool) {
	x := newSolver(newModel(d.Problem), d.effort)
	best, maybe := x.exactly(x.m.root, x.least, x.left)
	return best != nil, maybe
}

func (d doubt) possible() bool   { found, _ := d.least(); return found }
func (d doubt) impossible() bool { _, maybe := d.least(); return !maybe }

// tooFew says whether a group has not enough hosts, whatever the others want.
func (d doubt) tooFew(g int) string {
	group := &d.Groups[g]
	m := model{p: d.Problem}
	nodes, room := 0, int64(0)
	for i := range d.Hosts {
		if has(d.Hosts[i].Fits, g) {
			nodes++
			room += m.alone(i, g)
		}
	}
	switch {
	case room >= int64(group.Min):
		return ""
	case nodes == 0:
		return fmt.Sprintf("group %s wants %s, no node fulfils it", group.Name, workers(group.Min))
	}
	return fmt.Sprintf("group %s wants %s, %s it, with room for %d", group.Name, workers(group.Min), fulfil(nodes), room)
}

func workers(n int) string {
	if n == 1 {
		return "1 worker"
	}
	return fmt.Sprintf("%d workers", n)
}

func fulfil(nodes int) string {
	if nodes == 1 {
		return "1 node fulfils"
	}
	return fmt.Sprintf("%d nodes fulfil", nodes)
}

func inClusters(n int) string {
	if n == 1 {
		return "to be in one cluster"
	}
	return fmt.Sprintf("to be in %d clusters at most", n)
}

// link returns the problem of one link and its groups alone.
func (d doubt) link(i int) doubt {
	alone := d.copy()
	for k := range alone.Links {
		if l := &alone.Links[k]; k != i {
			*l = Link{Name: l.Name, Groups: l.Groups}
		}
	}
	for g := range alone.Groups {
		alone.Groups[g].Clusters = 0
		if !has(d.Links[i].Groups, g) {
			alone.Groups[g].Min, alone.Groups[g].Max = 0, 0
		}
	}
	return alone
}

// scattered says whether a group has not enough room in as many clusters as it may have.
func (d doubt) scattered(g int) string {
	alone := d.copy()
	alone.Links = nil
	for k := range alone.Groups {
		if k != g {
			alone.Groups[k].Min, alone.Groups[k].Max = 0, 0
		}
	}
	group := &d.Groups[g]
	if group.Clusters == 0 || !alone.impossible() {
		return ""
	}
	alone.Groups[g].Max = max(1, group.Min)
	x := newSolver(newModel(alone.Problem), d.effort)
	s := newSearch(x.m, x.least, x.most, x.left)
	room := s.reach(x.m.root, g)
	if group.Clusters == 1 {
		return fmt.Sprintf("group %s wants %s in one cluster, the largest has room for %d", group.Name, workers(group.Min), room)
	}
	return fmt.Sprintf("group %s wants %s in %d clusters at most, the largest have room for %d", group.Name, workers(group.Min), group.Clusters, room)
}

// together says whether groups have not enough room beside each other, links and clusters left out.
func (d doubt) together() string {
	free := d.copy()
	free.Links = nil
	for g := range free.Groups {
		free.Groups[g].Clusters = 0
	}
	x := newSolver(newModel(free.Problem), d.effort)
	f := newFlow(x.m, -1)
	if !f.run(x.m.root, x.least, x.least) {
		want, room, nodes := 0, 0, 0
		var names []string
		for g := range d.Groups {
			if has(f.seen, g) && d.Groups[g].Min > 0 {
				want += d.Groups[g].Min
				names = append(names, d.Groups[g].Name)
			}
		}
		for u := range x.m.units {
			any, high := false, 0
			for g := range d.Groups {
				if has(f.seen, g) && x.m.root.may[g].holds(u) {
					any = true
					high += int(x.m.root.high[g*len(x.m.units)+u])
				}
			}
			if any {
				nodes += len(x.m.units[u].hosts)
				room += min(high, int(x.m.units[u].room))
			}
		}
		return fmt.Sprintf("groups %s together want %s, %s them, with room for %d", and(names), workers(want), fulfil(nodes), room)
	}
	if !free.impossible() {
		return ""
	}
	var names []string
	for g := range d.Groups {
		if d.Groups[g].Min > 0 {
			names = append(names, d.Groups[g].Name)
		}
	}
	return fmt.Sprintf("groups %s together want more than nodes have free", and(names))
}

// and joins names as people do.
func and(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// loosen says what of a link cannot hold, with the hosts that would do if it allowed a little more.
func (d doubt) loosen(i int) string {
	l := d.Links[i]
	for _, b := range d.bounds(i) {
		low, high := 0, len(b.values) // the last is no bound at all
		at := func(k int) doubt {
			looser := d.copy()
			value := int64(0)
			if k < len(b.values) {
				value = b.values[k]
			}
			b.set(&looser.Links[i], value)
			return looser
		}
		if !at(high).possible() {
			continue
		}
		for low < high {
			if mid := (low + high) / 2; at(mid).possible() {
				high = mid
			} else {
				low = mid + 1
			}
		}
		a, c := d.worst(&l, &at(low).Links[i])
		return fmt.Sprintf("link %s wants %s: %s", l.Name, l.wants(), d.pair(&l, a, c))
	}
	return fmt.Sprintf("link %s wants %s, which no choice of nodes keeps", l.Name, l.wants())
}

// bound is one of a link's, with values that are looser and looser.
type bound struct {
	values []int64
	set    func(*Link, int64)
}

// maxTried bounds the values of a bound.
const maxTried = 127

// bounds returns the bounds of a link, each with those values that hosts have between them.
func (d doubt) bounds(i int) (list []bound) {
	l := d.Links[i]
	var rtts, widths []int64
	for _, pair := range d.pairs(l.Groups) {
		rtts = append(rtts, int64(d.rtt(pair[0], pair[1])))
		widths = append(widths, d.bandwidth(pair[0], pair[1]))
	}
	above := func(values []int64, than int64) []int64 {
		values = slices.DeleteFunc(slices.Clone(values), func(v int64) bool { return v <= than })
		slices.Sort(values)
		return slices.Compact(values)
	}
	below := func(values []int64, than int64) []int64 {
		values = slices.DeleteFunc(slices.Clone(values), func(v int64) bool { return v <= 0 || v >= than })
		slices.Sort(values)
		slices.Reverse(values)
		return slices.Compact(values)
	}
	// Many values are thinned out: each that is tried takes some milliseconds.
	thin := func(values []int64) (some []int64) {
		for k := range min(len(values), maxTried) {
			some = append(some, values[k*len(values)/min(len(values), maxTried)])
		}
		return some
	}
	if l.MaxRTT > 0 {
		list = append(list, bound{thin(above(rtts, int64(l.MaxRTT))), func(l *Link, v int64) { l.MaxRTT = time.Duration(v) }})
	}
	if l.MinRTT > 0 {
		list = append(list, bound{thin(below(rtts, int64(l.MinRTT))), func(l *Link, v int64) { l.MinRTT = time.Duration(v) }})
	}
	if l.MinBandwidth > 0 {
		list = append(list, bound{thin(below(widths, l.MinBandwidth)), func(l *Link, v int64) { l.MinBandwidth = v }})
	}
	if l.MaxBandwidth > 0 {
		list = append(list, bound{thin(above(widths, l.MaxBandwidth)), func(l *Link, v int64) { l.MaxBandwidth = v }})
	}
	return list
}

// pairs returns each two hosts that any of the groups fit or are on, in the order of their names.
func (d doubt) pairs(groups uint64) (list [][2]int) {
	var hosts []int
	for i := range d.Hosts {
		h := &d.Hosts[i]
		any := h.Fits&groups != 0
		for g := range d.Groups {
			any = any || has(groups, g) && h.has(g) > 0
		}
		if any {
			hosts = append(hosts, i)
		}
	}
	slices.SortStableFunc(hosts, func(a, b int) int { return strings.Compare(d.Hosts[a].Name, d.Hosts[b].Name) })
	for k, a := range hosts {
		for _, b := range hosts[k+1:] {
			list = append(list, [2]int{a, b})
		}
	}
	return list
}

// worst returns hosts that a looser link allows, and the strict one does not: of those, a pair that
// is farthest from what that wants; or one host, if two workers on it are what it does not allow.
func (d doubt) worst(strict, loose *Link) (a, b int) {
	a, b = -1, -1
	var far time.Duration
	var slow int64
	for _, p := range d.pairs(strict.Groups) {
		if d.holds(strict, p[0], p[1]) || !d.holds(loose, p[0], p[1]) {
			continue
		}
		rtt, width := d.rtt(p[0], p[1]), d.bandwidth(p[0], p[1])
		if loose.MaxRTT == strict.MaxRTT {
			rtt = -rtt
		}
		if loose.MaxBandwidth == strict.MaxBandwidth {
			width = -width
		}
		if a < 0 || rtt > far || rtt == far && width > slow {
			a, b, far, slow = p[0], p[1], rtt, width
		}
	}
	if a < 0 {
		for i := range d.Hosts {
			if d.Hosts[i].Fits&strict.Groups != 0 && (a < 0 || d.Hosts[i].Name < d.Hosts[a].Name) {
				a, b = i, i
			}
		}
	}
	return max(0, a), max(0, b)
}
