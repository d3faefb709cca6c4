package topology

// branch is a decision that can be taken, or refused.
type branch struct {
	group   int
	unit    int   // at least n of the group on it, or fewer
	n       int32 //
	cluster int   // -1 = it is about a unit; else the group is in the cluster, or not
}

func (b branch) take(m *model, st *state) bool {
	if b.cluster >= 0 {
		return m.enter(st, b.group, b.cluster)
	}
	return m.atLeast(st, b.group, b.unit, b.n)
}

// refuse decides the opposite, also for all groups that are as that one: had they an answer, it had
// one too.
func (b branch) refuse(s *search, st *state) bool {
	for g := range s.most {
		if g == b.group || !s.same(st, g, b.group) {
			continue
		}
		if !b.avoid(s.m, st, g) {
			return false
		}
	}
	return b.avoid(s.m, st, b.group)
}

func (b branch) avoid(m *model, st *state, g int) bool {
	if b.cluster >= 0 {
		return m.avoid(st, g, b.cluster)
	}
	return m.atMost(st, g, b.unit, min(b.n-1, st.high[g*len(m.units)+b.unit]))
}

// same reports whether two groups can change places in any answer.
func (s *search) same(st *state, g, h int) bool {
	a, b := &s.m.p.Groups[g], &s.m.p.Groups[h]
	if s.least[g] != s.least[h] || s.most[g] != s.most[h] || a.Takes != b.Takes || st.extra[g] != st.extra[h] || s.m.value[g] != s.m.value[h] {
		return false
	}
	if (st.in[g] == nil) != (st.in[h] == nil) {
		return false
	}
	for w := range st.in[g] {
		if st.in[g][w] != st.in[h][w] {
			return false
		}
	}
	for k := range s.m.pair {
		r, t := s.m.pair[g][k], s.m.pair[h][k]
		switch k {
		case g:
			t = s.m.pair[h][h]
		case h:
			t = s.m.pair[g][g]
			r = t // compared above
		}
		if r != t {
			return false
		}
	}
	units := len(s.m.units)
	s.left -= units / 4
	for u := range units {
		if st.low[g*units+u] != st.low[h*units+u] || st.high[g*units+u] != st.high[h*units+u] {
			return false
		}
	}
	return true
}

// choose returns a decision that mends something of what the flow found, if anything is wrong with
// it. Groups with the fewest choices come first.
func (s *search) choose(st *state) (b branch, found bool) {
	least := 0.0
	for g := range s.most {
		if s.most[g] == 0 || s.on[g].next(0) < 0 {
			continue
		}
		slack := float64(s.reach(st, g)) / float64(max(1, s.least[g]))
		if found && slack >= least {
			continue
		}
		if c, ok := s.scattered(st, g); ok {
			b, found, least = c, true, slack
		} else if c, ok := s.apart(st, g); ok {
			b, found, least = c, true, slack
		}
	}
	if found || !s.m.mixed {
		return b, found
	}
	for u := range s.m.units {
		if b, found = s.overfull(st, u); found {
			return b, true
		}
	}
	return b, false
}

// scattered chooses a cluster for a group that is in too many: the one that has most of it.
func (s *search) scattered(st *state, g int) (b branch, found bool) {
	if st.in[g] == nil {
		return b, false
	}
	units := len(s.m.units)
	clear(s.sums)
	more, most := 0, -1
	for u := s.on[g].next(0); u >= 0; u = s.on[g].next(u + 1) {
		c := s.m.units[u].cluster
		if st.in[g].holds(c) {
			continue
		}
		if s.sums[c] == 0 {
			more++
		}
		if s.sums[c] += int(s.workers.x[g*units+u]); most < 0 || s.sums[c] > s.sums[most] {
			most = c
		}
	}
	return branch{group: g, cluster: most}, more > st.extra[g]
}

// apart chooses a unit for a group some of whose units are too far from others: the one that leaves
// most units to all.
func (s *search) apart(st *state, g int) (b branch, found bool) {
	units, most := len(s.m.units), -1
	for _, u := range s.m.prefer[g] {
		if !s.on[g].holds(u) || st.low[g*units+u] > 0 || !s.torn(g, u) {
			continue
		}
		sum := 0
		for g2, r := range s.m.pair[g] {
			if r >= 0 && s.most[g2] > 0 {
				sum += s.m.rules[r].near[u].common(st.may[g2])
			}
		}
		s.left -= len(s.most)
		if sum > most {
			b, found, most = branch{group: g, unit: u, n: 1, cluster: -1}, true, sum
		}
	}
	return b, found
}

// torn reports whether what the flow has of a group on a unit is too far from something else.
func (s *search) torn(g, u int) bool {
	for g2, r := range s.m.pair[g] {
		if r < 0 {
			continue
		}
		near := s.m.rules[r].near[u]
		s.left--
		for w, on := range s.on[g2] {
			if g2 == g && w == u/64 {
				on &^= 1 << (u % 64) // its high is 1 where that would count
			}
			if on&^near[w] != 0 {
				return true
			}
		}
	}
	return false
}

// overfull chooses a number of workers for a mixed unit that has more than it can hold: all of the
// group that takes the largest share of it.
func (s *search) overfull(st *state, u int) (b branch, found bool) {
	if !s.m.units[u].mixed {
		return b, false
	}
	units := len(s.m.units)
	h := &s.m.p.Hosts[s.m.units[u].hosts[0]]
	var sum Amounts
	for g := range s.most {
		n := s.workers.x[g*units+u]
		for r := range sum {
			sum[r] += n * s.m.p.Groups[g].Takes[r]
		}
	}
	over := false // of Workers the flow knows
	for r := range sum {
		over = over || sum[r] > max(0, h.Free[r])
	}
	if !over {
		return b, false
	}
	largest := -1.0
	for g := range s.most {
		n := s.workers.x[g*units+u]
		if n <= int64(st.low[g*units+u]) {
			continue
		}
		share := 0.0
		for r, t := range s.m.p.Groups[g].Takes {
			if t > 0 {
				share = max(share, float64(n*t)/float64(h.Free[r]))
			}
		}
		if share > largest {
			b, largest = branch{group: g, unit: u, n: int32(n), cluster: -1}, share
		}
	}
	return b, true
}
