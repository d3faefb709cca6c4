package topology

import (
	"encoding/binary"
	"math"
	"slices"
)

// model is a problem made ready for the search. Its units and clusters have an order that does not
// depend on the order of the hosts.
type model struct {
	p       *Problem
	order   []int // of all hosts, the nearest first
	live    []int // those of order that have room for anything
	settled []int // those where workers are that stay
	units   []unit
	rules   []rule
	pair    [][]int // by two groups: the rule for them, or -1
	value   []float64
	prefer  [][]int // by group, units in the order in which they are filled
	root    *state
	all     planes   // room of units
	each    []planes // by group, room of units for it
	mixed   bool     // some unit is
	cluster map[int]int
	states  []*state // for the search, by depth
}

// unit is one host, or several that no bound can tell apart.
type unit struct {
	hosts   []int // indices of the problem, the nearest first
	each    int   // workers that one of its hosts can hold at most
	room    int32 // of all its hosts
	mixed   bool  // whether workers fit depends on which groups they are of
	cluster int
	clock   int64
	power   int64
}

// rule is what links with the same bounds allow.
type rule struct {
	link *Link
	self bool  // two workers on one host
	near []set // by unit, the units that it allows with it
}

// state is what was decided so far, in one branch of the search.
type state struct {
	low, high []int32 // by group and unit: between so many new workers
	may       []set   // by group: units where high is more than 0
	room      []int32 // by unit
	in        []set   // by group: clusters that are decided on; nil = it may be in all
	extra     []int   // by group: clusters that it may have beside those
}

const many = math.MaxInt32 / 4

func newModel(p *Problem) *model {
	m := &model{p: p, value: p.value(), order: make([]int, len(p.Hosts)), cluster: map[int]int{}}
	for i := range m.order {
		m.order[i] = i
	}
	slices.SortStableFunc(m.order, func(a, b int) int { return nearer(&p.Hosts[a], &p.Hosts[b]) })
	m.settled = slices.DeleteFunc(slices.Clone(m.order), func(i int) bool { return len(p.Hosts[i].Has) == 0 })
	m.makeRules()
	workers := 0
	for _, g := range p.Groups {
		workers = min(workers+g.Max, many)
	}
	high := map[int][]int32{}
	for _, i := range m.order {
		h := &p.Hosts[i]
		if _, ok := m.cluster[h.Cluster]; !ok {
			m.cluster[h.Cluster] = len(m.cluster)
		}
		if list, ok := m.highOf(i, workers); ok {
			high[i] = list
			m.live = append(m.live, i)
		}
	}
	m.makeUnits(m.rows(), high, workers)
	m.makeRoot(high)
	m.makeOrders()
	m.makePlanes()
	return m
}

// makeRules finds the rule of each two groups: links with the same bounds make one.
func (m *model) makeRules() {
	m.pair = make([][]int, len(m.p.Groups))
	for g := range m.pair {
		m.pair[g] = make([]int, len(m.p.Groups))
		for g2 := range m.pair[g] {
			m.pair[g][g2] = -1
			l := m.p.link(g, g2)
			if l == nil || !l.bounded() {
				continue
			}
			r := slices.IndexFunc(m.rules, func(r rule) bool {
				return r.link.MinRTT == l.MinRTT && r.link.MaxRTT == l.MaxRTT &&
					r.link.MinBandwidth == l.MinBandwidth && r.link.MaxBandwidth == l.MaxBandwidth
			})
			if r < 0 {
				r = len(m.rules)
				m.rules = append(m.rules, rule{link: l, self: m.p.holds(l, 0, 0)})
			}
			m.pair[g][g2] = r
		}
	}
}

// fit returns how many times a worker's needs go into what is free.
func fit(free, takes Amounts) int64 {
	n := int64(many)
	for r := range free {
		if takes[r] > 0 {
			n = min(n, max(0, free[r])/takes[r])
		}
	}
	return n
}

// highOf returns how many new workers of each group a host can take at most, beside what is there already.
func (m *model) highOf(i, workers int) (list []int32, any bool) {
	p := m.p
	h := &p.Hosts[i]
	list = make([]int32, len(p.Groups))
	for g := range p.Groups {
		if group := &p.Groups[g]; has(h.Fits, g) && group.Max > 0 {
			list[g] = int32(min(m.alone(i, g), int64(workers)))
			if list[g] > 0 && m.barred(i, g) {
				list[g] = 0
			}
		}
		any = any || list[g] > 0
	}
	return list, any
}

// alone returns how many workers of a group a host has room for, if it has no other.
func (m *model) alone(i, g int) int64 {
	h := &m.p.Hosts[i]
	n := fit(h.Free, m.p.Groups[g].Takes)
	if h.Workers > 0 {
		n = min(n, int64(h.Workers))
	}
	return n
}

// barred reports whether workers that stay forbid one of a group on a host.
func (m *model) barred(i, g int) bool {
	for _, k := range m.settled {
		for g2, n := range m.p.Hosts[k].Has {
			if n == 0 || g2 >= len(m.p.Groups) {
				continue
			}
			if r := m.pair[g][g2]; r >= 0 && !m.p.holds(m.rules[r].link, i, k) {
				return true
			}
		}
	}
	return false
}

// rows returns by rule and live host the live hosts that are allowed with it, itself included.
func (m *model) rows() [][]set {
	rows := make([][]set, len(m.rules))
	for r := range rows {
		rows[r] = make([]set, len(m.live))
		for a := range m.live {
			rows[r][a] = newSet(len(m.live))
			rows[r][a].add(a)
		}
		for a := range m.live {
			for b := range a {
				if m.p.holds(m.rules[r].link, m.live[a], m.live[b]) {
					rows[r][a].add(b)
					rows[r][b].add(a)
				}
			}
		}
	}
	return rows
}

// makeUnits puts hosts together that are twins: any mix of workers fits, two of them may be on one
// or on both, and to all others they are as far.
func (m *model) makeUnits(rows [][]set, high map[int][]int32, workers int) {
	var clock, power, clusters, apart bool
	for _, g := range m.p.Groups {
		clock = clock || g.Alike == AlikeClock
		power = power || g.Alike == AlikePower
		clusters = clusters || g.Clusters > 0
	}
	for _, r := range m.rules {
		apart = apart || !r.self
	}
	known := map[string]int{}
	var first []int // by unit, the index in live of its first host
	for a, i := range m.live {
		h := &m.p.Hosts[i]
		u := unit{hosts: []int{i}, cluster: m.cluster[h.Cluster], clock: h.Clock, power: h.Power}
		u.room, u.mixed = m.roomOf(i, high[i], workers)
		m.mixed = m.mixed || u.mixed
		if !u.mixed && !apart {
			key := twinKey(u, high[i], [3]bool{clusters, clock, power})
			for r := range rows {
				for _, w := range rows[r][a] {
					key = binary.LittleEndian.AppendUint64(key, w)
				}
			}
			if k, ok := known[string(key)]; ok {
				m.units[k].hosts = append(m.units[k].hosts, i)
				continue
			}
			known[string(key)] = len(m.units)
		}
		m.units = append(m.units, u)
		first = append(first, a)
	}
	for r := range m.rules {
		near := rows[r]
		if len(m.units) < len(m.live) {
			near = smaller(rows[r], first)
		}
		for u := range near {
			if !m.rules[r].self {
				near[u].remove(u)
			}
		}
		m.rules[r].near = near
	}
}

// smaller returns the rows and columns that are chosen.
func smaller(rows []set, chosen []int) []set {
	list := make([]set, len(chosen))
	for u, a := range chosen {
		list[u] = newSet(len(chosen))
		for v, b := range chosen {
			if rows[a].holds(b) {
				list[u].add(v)
			}
		}
	}
	return list
}

// twinKey is equal for hosts that may be twins.
func twinKey(u unit, high []int32, with [3]bool) (key []byte) {
	mask := uint64(0)
	for g, n := range high {
		if n > 0 {
			mask |= 1 << g
		}
	}
	list := []uint64{mask, uint64(u.room), 0, 0, 0}
	for k, v := range []int64{int64(u.cluster), u.clock, u.power} {
		if with[k] {
			list[2+k] = uint64(v)
		}
	}
	for _, v := range list {
		key = binary.LittleEndian.AppendUint64(key, v)
	}
	return key
}

// roomOf returns how many workers of any groups a host can hold at most, and whether that is not
// reached by each mix of them.
func (m *model) roomOf(i int, high []int32, workers int) (room int32, mixed bool) {
	h := &m.p.Hosts[i]
	least := Amounts{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}
	fewest := int64(many)
	for g, n := range high {
		if n == 0 {
			continue
		}
		for r := range least {
			least[r] = min(least[r], m.p.Groups[g].Takes[r])
		}
		fewest = min(fewest, m.alone(i, g), int64(workers))
	}
	most := min(fit(h.Free, least), int64(workers))
	if h.Workers > 0 {
		most = min(most, int64(h.Workers))
	}
	return int32(most), fewest < most
}

// makeRoot makes the state in which nothing is decided.
func (m *model) makeRoot(high map[int][]int32) {
	groups, units := len(m.p.Groups), len(m.units)
	s := &state{low: make([]int32, groups*units), high: make([]int32, groups*units), room: make([]int32, units),
		may: make([]set, groups), in: make([]set, groups), extra: make([]int, groups)}
	for u := range m.units {
		m.units[u].each = int(m.units[u].room)
		m.units[u].room = int32(min(int64(m.units[u].room)*int64(len(m.units[u].hosts)), many))
		s.room[u] = m.units[u].room
	}
	for g := range m.p.Groups {
		s.may[g] = newSet(units)
		most := int64(min(m.p.Groups[g].Max, many))
		for u := range m.units {
			hosts := m.units[u].hosts
			n := int32(min(int64(high[hosts[0]][g])*int64(len(hosts)), most))
			if r := m.pair[g][g]; r >= 0 && !m.rules[r].self {
				n = min(n, 1)
			}
			if s.high[g*units+u] = n; n > 0 {
				s.may[g].add(u)
			}
		}
	}
	m.root = s
	for g := range m.p.Groups {
		if c := m.p.Groups[g].Clusters; c == 0 || c >= len(m.cluster) {
			continue
		}
		s.in[g] = newSet(len(m.cluster))
		for i := range m.p.Hosts {
			if h := &m.p.Hosts[i]; h.has(g) > 0 {
				s.in[g].add(m.cluster[h.Cluster])
			}
		}
		if s.extra[g] = max(0, m.p.Groups[g].Clusters-s.in[g].len()); s.extra[g] == 0 {
			m.leaveOthers(s, g)
		}
	}
}

// makeOrders says in which order units are filled: the nearest first; for groups that are to be
// alike the strongest first.
func (m *model) makeOrders() {
	m.prefer = make([][]int, len(m.p.Groups))
	for g := range m.prefer {
		list := make([]int, len(m.units))
		for u := range list {
			list[u] = u
		}
		if alike := m.p.Groups[g].Alike; alike != AlikeNot {
			slices.SortStableFunc(list, func(a, b int) int {
				return int(max(-1, min(1, m.units[b].strength(alike)-m.units[a].strength(alike))))
			})
		}
		m.prefer[g] = list
	}
}

func (u *unit) strength(alike Alike) int64 {
	if alike == AlikeClock {
		return u.clock
	}
	return u.power
}
