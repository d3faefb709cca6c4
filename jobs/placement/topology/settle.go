package topology

import (
	"cmp"
	"slices"
)

// window is the strengths that hosts of a group may have.
type window struct {
	weak, strong int64
	spread       int64 // also with the hosts where it is already
}

// maxWindows bounds how many windows are tried for a group.
const maxWindows = 24

// settle looks for a better place of as many workers as an answer has: alike first, then near. It has
// so many steps for that.
func (x *solver) settle(best []int64, steps int) []int64 {
	units, end := len(x.m.units), x.left-steps
	n := make([]int, len(x.least))
	for i, k := range best {
		n[i/units] += int(k)
	}
	try := func(from *state) []int64 {
		if x.left <= end {
			return nil
		}
		better, _ := x.exactly(from, n, min(steps/8, x.left-end))
		return better
	}
	from := x.m.root.clone()
	for g := range n {
		if x.m.p.Groups[g].Alike == AlikeNot || n[g] == 0 {
			continue
		}
		for _, w := range x.windows(g, n[g]) {
			within := from.clone()
			x.restrict(within, g, w)
			if better := try(within); better != nil {
				best, from = better, within
				break
			}
		}
	}
	if better := try(from); better != nil {
		best = better
	}
	low, high := 0, units // the nearest units, as few as do
	for low < high {
		mid := (low + high) / 2
		within := from.clone()
		for u := mid; u < units; u++ {
			for g := range n {
				x.m.leave(within, g, u)
			}
		}
		if better := try(within); better != nil {
			best, high = better, mid
		} else {
			low = mid + 1
		}
	}
	return best
}

// restrict keeps a group on units of a window.
func (x *solver) restrict(s *state, g int, w window) {
	for u := range x.m.units {
		if v := x.m.units[u].strength(x.m.p.Groups[g].Alike); v < w.weak || v > w.strong {
			x.m.leave(s, g, u)
		}
	}
}

// windows returns the windows that have room for so many workers of a group, the narrowest first,
// of these the strongest; then some with more room.
func (x *solver) windows(g, n int) (list []window) {
	alike := x.m.p.Groups[g].Alike
	type step struct {
		strength int64
		room     int
	}
	var steps []step // the strongest first, each strength once
	for _, u := range x.m.prefer[g] {
		high := int(x.m.root.high[g*len(x.m.units)+u])
		if high == 0 {
			continue
		}
		v := x.m.units[u].strength(alike)
		if k := len(steps) - 1; k >= 0 && steps[k].strength == v {
			steps[k].room += high
		} else {
			steps = append(steps, step{v, high})
		}
	}
	weak, strong, any := x.there(g)
	for _, want := range []int{n, 2 * n} {
		sum, to := 0, 0
		for from := range steps {
			for ; to < len(steps) && sum < want; to++ {
				sum += steps[to].room
			}
			if sum < want {
				break
			}
			w := window{weak: steps[to-1].strength, strong: steps[from].strength}
			if w.spread = w.strong - w.weak; any {
				w.spread = max(w.strong, strong) - min(w.weak, weak)
			}
			if !slices.Contains(list, w) {
				list = append(list, w)
			}
			sum -= steps[from].room
		}
	}
	slices.SortStableFunc(list, func(a, b window) int {
		return cmp.Or(cmp.Compare(a.spread, b.spread), cmp.Compare(b.strong, a.strong), cmp.Compare(b.weak, a.weak))
	})
	return list[:min(len(list), maxWindows)]
}

// there returns between which strengths the hosts are where a group is already.
func (x *solver) there(g int) (weak, strong int64, any bool) {
	for i := range x.m.p.Hosts {
		h := &x.m.p.Hosts[i]
		if h.has(g) == 0 {
			continue
		}
		u := unit{clock: h.Clock, power: h.Power}
		v := u.strength(x.m.p.Groups[g].Alike)
		if !any {
			weak, strong, any = v, v, true
		}
		weak, strong = min(weak, v), max(strong, v)
	}
	return weak, strong, any
}

// counts turns an answer for units into one for hosts, the nearest of a unit filled first.
func (m *model) counts(best []int64) [][]int {
	list := make([][]int, len(m.p.Hosts))
	for i := range list {
		list[i] = make([]int, len(m.p.Groups))
	}
	for u := range m.units {
		hosts := m.units[u].hosts
		each := m.units[u].each
		at, free := 0, each
		for g := range m.p.Groups {
			for left := int(best[g*len(m.units)+u]); left > 0; {
				if free == 0 {
					at, free = at+1, each
				}
				n := min(left, free)
				list[hosts[at]][g] += n
				left -= n
				free -= n
			}
		}
	}
	return list
}
