package topology

import "math/bits"

// copyTo makes another state equal to this one.
func (s *state) copyTo(t *state) {
	copy(t.low, s.low)
	copy(t.high, s.high)
	copy(t.room, s.room)
	copy(t.extra, s.extra)
	for g := range s.may {
		copy(t.may[g], s.may[g])
		copy(t.in[g], s.in[g])
	}
}

// clone returns a copy of its own.
func (s *state) clone() *state {
	t := &state{low: make([]int32, len(s.low)), high: make([]int32, len(s.high)), room: make([]int32, len(s.room)),
		may: make([]set, len(s.may)), in: make([]set, len(s.in)), extra: make([]int, len(s.extra))}
	for g := range s.may {
		t.may[g] = make(set, len(s.may[g]))
		if s.in[g] != nil {
			t.in[g] = make(set, len(s.in[g]))
		}
	}
	s.copyTo(t)
	return t
}

// leave decides that a group is not on a unit. It reports whether that can be.
func (m *model) leave(s *state, g, u int) bool {
	i := g*len(m.units) + u
	s.high[i] = 0
	s.may[g].remove(u)
	return s.low[i] == 0
}

// atMost decides that a group has no more workers on a unit.
func (m *model) atMost(s *state, g, u int, n int32) bool {
	if n == 0 {
		return m.leave(s, g, u)
	}
	s.high[g*len(m.units)+u] = n
	return s.low[g*len(m.units)+u] <= n
}

// atLeast decides that a group has so many workers on a unit, and all that follows from the first of them.
func (m *model) atLeast(s *state, g, u int, n int32) bool {
	i := g*len(m.units) + u
	first := s.low[i] == 0
	if s.low[i] = n; n > s.high[i] {
		return false
	}
	if m.units[u].mixed && !m.tighten(s, u) {
		return false
	}
	if !first {
		return true
	}
	for g2, r := range m.pair[g] {
		if r < 0 {
			continue
		}
		near := m.rules[r].near[u]
		for w := range near {
			for apart := s.may[g2][w] &^ near[w]; apart != 0; apart &= apart - 1 {
				v := bits.TrailingZeros64(apart) + w*64
				if v == u && g2 == g {
					continue // its high is 1 then
				}
				if !m.leave(s, g2, v) {
					return false
				}
			}
		}
	}
	return s.in[g] == nil || m.enter(s, g, m.units[u].cluster)
}

// enter decides that a group is in a cluster.
func (m *model) enter(s *state, g, cluster int) bool {
	if s.in[g].holds(cluster) {
		return true
	}
	s.in[g].add(cluster)
	if s.extra[g]--; s.extra[g] > 0 {
		return true
	}
	return s.extra[g] == 0 && m.leaveOthers(s, g)
}

// leaveOthers decides that a group is in no other clusters than those that are decided on.
func (m *model) leaveOthers(s *state, g int) bool {
	for u := s.may[g].next(0); u >= 0; u = s.may[g].next(u + 1) {
		if !s.in[g].holds(m.units[u].cluster) && !m.leave(s, g, u) {
			return false
		}
	}
	return true
}

// avoid decides that a group is not in a cluster.
func (m *model) avoid(s *state, g, cluster int) bool {
	for u := s.may[g].next(0); u >= 0; u = s.may[g].next(u + 1) {
		if m.units[u].cluster == cluster && !m.leave(s, g, u) {
			return false
		}
	}
	return true
}

// tighten computes what there is room for on a mixed unit beside what is decided.
func (m *model) tighten(s *state, u int) bool {
	h := &m.p.Hosts[m.units[u].hosts[0]]
	free, sum := h.Free, int32(0)
	for r := range free {
		free[r] = max(0, free[r])
	}
	for g := range m.p.Groups {
		low := s.low[g*len(m.units)+u]
		sum += low
		for r := range free {
			free[r] -= int64(low) * m.p.Groups[g].Takes[r]
		}
	}
	for _, f := range free {
		if f < 0 {
			return false
		}
	}
	left := int64(many)
	if h.Workers > 0 {
		left = int64(h.Workers) - int64(sum)
	}
	if left < 0 {
		return false
	}
	most := int64(0)
	least := Amounts{-1, -1, -1, -1}
	for g := range m.p.Groups {
		i := g*len(m.units) + u
		if s.high[i] == 0 {
			continue
		}
		more := min(left, fit(free, m.p.Groups[g].Takes), int64(s.high[i]-s.low[i]))
		if s.high[i] = s.low[i] + int32(more); s.high[i] == 0 {
			s.may[g].remove(u)
		}
		if more > 0 {
			most += more
			for r := range least {
				if t := m.p.Groups[g].Takes[r]; least[r] < 0 || t < least[r] {
					least[r] = t
				}
			}
		}
	}
	s.room[u] = min(s.room[u], sum+int32(min(most, left, fit(free, least))))
	return true
}
