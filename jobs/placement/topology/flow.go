package topology

import (
	"cmp"
	"math/bits"
	"slices"
)

// flow gives groups what units have, without a look at links and clusters that are not decided. It
// counts workers, or the amount of one resource that they take: then parts of workers, too.
type flow struct {
	m        *model
	resource int     // -1 = workers
	takes    []int64 // by group, of each worker; 0 = nothing is counted of that group
	greedy   []int   // groups, the first of them the one that gains most with an amount
	x        []int64 // by group and unit
	free     []int64 // by unit
	sent     []int64 // by group
	steps    int

	queue   []int
	seen    uint64 // groups
	visited set    // units
	from    []int  // by unit: the group that looked at it
	via     []int  // by group: the unit that it would give up, or -1
}

func newFlow(m *model, resource int) *flow {
	groups, units := len(m.p.Groups), len(m.units)
	f := &flow{m: m, resource: resource, takes: make([]int64, groups), x: make([]int64, groups*units), free: make([]int64, units),
		sent: make([]int64, groups), visited: newSet(units), from: make([]int, units), via: make([]int, groups)}
	for g := range f.takes {
		f.takes[g] = 1
		if resource >= 0 {
			f.takes[g] = m.p.Groups[g].Takes[resource]
		}
		if f.takes[g] > 0 {
			f.greedy = append(f.greedy, g)
		}
	}
	slices.SortStableFunc(f.greedy, func(a, b int) int {
		return cmp.Compare(m.value[b]/float64(f.takes[b]), m.value[a]/float64(f.takes[a]))
	})
	return f
}

// run finds the most valuable flow with at least and at most so many workers of each group. It
// reports whether there is one; if not, seen and visited are groups that want more than the units
// have that they could be on.
func (f *flow) run(s *state, least, most []int) bool {
	groups, units := len(f.sent), len(f.free)
	for u := range f.free {
		f.free[u] = int64(s.room[u])
		if f.resource >= 0 {
			f.free[u] = f.m.free(u, f.resource)
		}
	}
	for g := range groups {
		f.sent[g] = 0
		for u := range units {
			f.x[g*units+u] = 0
			if low := int64(s.low[g*units+u]) * f.takes[g]; low > 0 {
				f.x[g*units+u] = low
				f.free[u] -= low
				f.sent[g] += low
			}
		}
	}
	f.steps += groups * units
	for u, free := range f.free {
		if free < 0 {
			f.seen = 0
			clear(f.visited)
			f.visited.add(u)
			return false
		}
	}
	for g := range groups {
		if f.takes[g] > 0 && f.send(s, g, int64(least[g])*f.takes[g]) < int64(least[g])*f.takes[g] {
			return false
		}
	}
	for _, g := range f.greedy {
		f.send(s, g, int64(most[g])*f.takes[g])
	}
	return true
}

// worth returns what the flow is worth.
func (f *flow) worth(most []int) (sum float64) {
	for g, sent := range f.sent {
		if f.takes[g] == 0 {
			sum += f.m.value[g] * float64(most[g])
		} else {
			sum += f.m.value[g] * float64(sent) / float64(f.takes[g])
		}
	}
	return sum
}

// send gives a group more until it has that much, if it can be, and returns what it has then.
func (f *flow) send(s *state, g int, want int64) int64 {
	units := len(f.free)
	for pass := range 2 { // units first where it is anyway
		for _, u := range f.m.prefer[g] {
			if f.sent[g] >= want {
				return f.sent[g]
			}
			i := g*units + u
			if f.free[u] == 0 || s.high[i] == 0 || pass == 0 && f.x[i] == 0 {
				continue
			}
			n := min(want-f.sent[g], f.free[u], int64(s.high[i])*f.takes[g]-f.x[i])
			f.x[i] += n
			f.free[u] -= n
			f.sent[g] += n
		}
		f.steps += units
	}
	for f.sent[g] < want {
		n := f.augment(s, g, want-f.sent[g])
		if n == 0 {
			break
		}
		f.sent[g] += n
	}
	return f.sent[g]
}

// augment finds room for more of a group by moving others, and returns for how much.
func (f *flow) augment(s *state, g int, want int64) int64 {
	units := len(f.free)
	f.queue = append(f.queue[:0], g)
	f.seen = 1 << g
	f.via[g] = -1
	clear(f.visited)
	for next := 0; next < len(f.queue); next++ {
		q := f.queue[next]
		for w, word := range s.may[q] {
			for word &^= f.visited[w]; word != 0; word &= word - 1 {
				u := bits.TrailingZeros64(word) + w*64
				f.steps++
				if f.x[q*units+u] >= int64(s.high[q*units+u])*f.takes[q] {
					continue
				}
				f.visited.add(u)
				f.from[u] = q
				if f.free[u] > 0 {
					return f.shift(s, g, u, want)
				}
				for other := range f.via {
					if !has(f.seen, other) && f.x[other*units+u] > int64(s.low[other*units+u])*f.takes[other] {
						f.seen |= 1 << other
						f.via[other] = u
						f.queue = append(f.queue, other)
					}
				}
				f.steps += len(f.via)
			}
		}
	}
	return 0
}

// shift moves what augment has found, from its group to a unit with room.
func (f *flow) shift(s *state, g, u int, want int64) int64 {
	units := len(f.free)
	n := min(want, f.free[u])
	for q, v := f.from[u], u; ; q, v = f.from[f.via[q]], f.via[q] {
		n = min(n, int64(s.high[q*units+v])*f.takes[q]-f.x[q*units+v])
		if q == g {
			break
		}
		n = min(n, f.x[q*units+f.via[q]]-int64(s.low[q*units+f.via[q]])*f.takes[q])
	}
	f.free[u] -= n
	for q, v := f.from[u], u; ; q, v = f.from[f.via[q]], f.via[q] {
		f.x[q*units+v] += n
		if q == g {
			return n
		}
		f.x[q*units+f.via[q]] -= n
	}
}

// free returns what a unit has of a resource.
func (m *model) free(u, resource int) (sum int64) {
	for _, i := range m.units[u].hosts {
		sum += max(0, m.p.Hosts[i].Free[resource])
	}
	return sum
}
