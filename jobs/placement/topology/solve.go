package topology

// Solve looks for the answer with the highest utility. Where several are worth the same it prefers
// hosts that are alike as groups want it, then the nearest ones.
func (p *Problem) Solve() Result {
	effort := p.Effort
	if effort <= 0 {
		effort = DefaultEffort
	}
	p = p.remembered()
	x := newSolver(newModel(p), effort)
	r := x.solve()
	switch r.Verdict {
	case Infeasible:
		r.Why = p.why(effort)
	case NotFound:
		r.Why = "the search ended without an answer: there may be one"
	}
	r.Steps = effort - x.left
	return r
}

// solver is one call of Solve.
type solver struct {
	m           *model
	least, most []int
	left        int // steps
}

func newSolver(m *model, effort int) *solver {
	x := &solver{m: m, left: effort}
	for _, g := range m.p.Groups {
		x.least, x.most = append(x.least, g.Min), append(x.most, g.Max)
	}
	x.left -= m.pruneRoot()
	return x
}

// shares is how many parts the ranges of groups have.
const shares = 32

func (x *solver) solve() Result {
	all := newSearch(x.m, x.least, x.most, x.left)
	bound, ok := all.relax(x.m.root)
	if !ok {
		return Result{Verdict: Infeasible}
	}
	part := max(1, x.left/8)
	best, share, ok := x.level(part)
	if !ok {
		return Result{Verdict: Infeasible}
	}
	if best != nil && share < shares {
		x.fill(all, best, share, part)
	} else if best != nil {
		all.best, all.worth = best, x.worth(best)
	}
	proven := all.best != nil && all.worth >= bound-epsilon
	if !proven {
		all.left = x.left - part // settle needs some, too
		all.bound = -1
		all.run(x.m.root)
		proven = !all.cut
		x.left = all.left + part
	}
	switch {
	case all.best == nil && proven:
		return Result{Verdict: Infeasible}
	case all.best == nil:
		return Result{Verdict: NotFound}
	}
	r := Result{Verdict: Found, Utility: all.worth, Bound: bound, Proven: proven}
	if proven {
		r.Bound = r.Utility
	}
	r.Counts = x.m.counts(x.settle(all.best, part))
	return r
}

// target returns what each group gets with a share of its range.
func (x *solver) target(share int) []int {
	list := make([]int, len(x.least))
	for g := range list {
		list[g] = x.least[g] + (x.most[g]-x.least[g])*share/shares
	}
	return list
}

// dives is how many centres are tried for an answer.
const dives = 16

// exactly looks for an answer with so many workers of each group, for so many steps. It reports
// whether there may be one.
func (x *solver) exactly(from *state, n []int, effort int) (best []int64, maybe bool) {
	s := newSearch(x.m, n, n, effort/2)
	s.first = true
	s.run(from)
	cut := s.cut
	if left := s.left + effort/2; cut {
		for k := 0; k < dives && s.best == nil && left > 0; k++ {
			st := from.clone()
			s.left = min(left, effort/8)
			left -= s.left
			if s.dive(st, k) {
				s.run(st)
			}
			left += s.left
		}
		s.left = left - effort/2
	}
	x.left -= effort/2 - s.left
	return s.best, s.best != nil || cut
}

// level looks for the largest share of their ranges that all groups can have. It reports whether
// there may be an answer at all.
func (x *solver) level(part int) (best []int64, share int, maybe bool) {
	if best, _ = x.exactly(x.m.root, x.target(shares), part/2); best != nil {
		return best, shares, true
	}
	if best, maybe = x.exactly(x.m.root, x.target(0), 2*part); best == nil {
		return nil, 0, maybe
	}
	low, high := 0, shares
	for high-low > 1 {
		mid := (low + high) / 2
		if more, _ := x.exactly(x.m.root, x.target(mid), part/3); more != nil {
			best, low = more, mid
		} else {
			high = mid
		}
	}
	return best, low, true
}

// fill looks for the best answer in which all groups have that share.
func (x *solver) fill(all *search, best []int64, share, part int) {
	s := newSearch(x.m, x.target(share), x.most, part)
	s.best, s.worth = best, x.worth(best)
	around := x.m.root.clone()
	for i, n := range best {
		if n > 0 {
			x.m.atLeast(around, i/len(x.m.units), i%len(x.m.units), 1)
		}
	}
	s.left /= 2
	s.run(around)
	s.left += part - part/2
	s.bound = -1
	s.run(x.m.root)
	x.left -= part - s.left
	all.best, all.worth = s.best, s.worth
}

func (x *solver) worth(counts []int64) (sum float64) {
	units := len(x.m.units)
	for i, n := range counts {
		sum += x.m.value[i/units] * float64(n)
	}
	return sum
}
