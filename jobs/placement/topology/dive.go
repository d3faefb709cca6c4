package topology

import (
	"cmp"
	"math/bits"
	"slices"
)

// planes is numbers of units by binary digits, so that sums over sets are quick.
type planes []set

func (m *model) planesOf(number func(u int) int32) (p planes) {
	for u := range m.units {
		n := uint32(number(u))
		for len(p) < bits.Len32(n) {
			p = append(p, newSet(len(m.units)))
		}
		for ; n != 0; n &= n - 1 {
			p[bits.TrailingZeros32(n)].add(u)
		}
	}
	return p
}

// sum returns the sum of the numbers of a set.
func (p planes) sum(s set) (sum int) {
	for k, plane := range p {
		sum += s.common(plane) << k
	}
	return sum
}

// makePlanes notes the room of units, and that for each group.
func (m *model) makePlanes() {
	m.all = m.planesOf(func(u int) int32 { return m.root.room[u] })
	for g := range m.p.Groups {
		m.each = append(m.each, m.planesOf(func(u int) int32 { return min(m.root.high[g*len(m.units)+u], m.root.room[u]) }))
	}
}

// pruneRoot takes groups off units around which there is not enough room for all that must be near.
// It returns how many steps that took.
func (m *model) pruneRoot() (steps int) {
	reach := newSet(len(m.units))
	for again := true; again; {
		again = false
		for g := range m.p.Groups {
			for u := m.root.may[g].next(0); u >= 0; u = m.root.may[g].next(u + 1) {
				need := 0
				clear(reach)
				for h, r := range m.pair[g] {
					if least := m.p.Groups[h].Min; r >= 0 && least > 0 {
						need += least
						for w, word := range m.rules[r].near[u] {
							reach[w] |= word & m.root.may[h][w]
						}
						steps += len(reach)
					}
				}
				reach.add(u)
				if need > 1 && m.all.sum(reach) < need {
					m.leave(m.root, g, u)
					again = true
				}
				steps += len(m.all) + 1
			}
		}
	}
	return steps / 2
}

// around returns for how many workers of a group there is room at most if one of them is on a unit.
func (s *search) around(st *state, g, u int) (sum int) {
	r := s.m.pair[g][g]
	near := s.m.rules[r].near[u]
	for k, plane := range s.m.each[g] {
		n := 0
		for w := range near {
			n += bits.OnesCount64(near[w] & st.may[g][w] & plane[w])
		}
		sum += n << k
	}
	if s.left -= len(near) * len(s.m.each[g]) / 2; !s.m.rules[r].self {
		sum++
	}
	return sum
}

// prune takes groups off units around which there is not enough room for them. It reports whether there can be an answer.
func (s *search) prune(st *state, g int) bool {
	if s.m.pair[g][g] < 0 || s.least[g] < 2 {
		return true
	}
	for again := true; again; {
		again = false
		for u := st.may[g].next(0); u >= 0; u = st.may[g].next(u + 1) {
			if s.around(st, g, u) >= s.least[g] {
				continue
			}
			if again = true; !s.m.leave(st, g, u) {
				return false
			}
		}
	}
	return true
}

// dive decides on units for as many workers of each group as it wants at least, without a look back: around
// the k-th best centre for the group with the fewest choices, around the best one for each other group
// after that. It reports whether it got to the end.
func (s *search) dive(st *state, k int) bool {
	units := len(s.m.units)
	room := slices.Clone(st.room)
	done := make([]bool, len(s.least))
	for range s.least {
		g, fewest := -1, 0.0
		for h := range s.least {
			if done[h] || s.least[h] == 0 {
				continue
			}
			if slack := float64(s.reach(st, h)) / float64(s.least[h]); g < 0 || slack < fewest {
				g, fewest = h, slack
			}
		}
		if g < 0 {
			return true
		}
		done[g] = true
		want := s.least[g]
		list := s.centred(st, g, k, room)
		s.byCluster(st, g, k, want, room, list)
		for _, u := range list {
			n := min(int(st.high[g*units+u]), int(room[u]), want)
			if n <= 0 {
				continue
			}
			low := 1
			if s.m.units[u].mixed {
				low = n // so that all that is there fits
			}
			if int(st.low[g*units+u]) < low && !s.m.atLeast(st, g, u, int32(low)) {
				return false
			}
			room[u] -= int32(n)
			if want -= n; want == 0 {
				break
			}
		}
		if want > 0 {
			return false
		}
		k = 0
	}
	return true
}

// byCluster sorts units for a group that is to be in few clusters: those of the k-th smallest
// cluster first that has room for all that it wants; where none has, the largest first.
func (s *search) byCluster(st *state, g, k, want int, room []int32, list []int) {
	if st.in[g] == nil {
		return
	}
	units := len(s.m.units)
	sums := make([]int, len(s.m.cluster))
	for _, u := range list {
		sums[s.m.units[u].cluster] += int(min(st.high[g*units+u], room[u]))
	}
	clusters := make([]int, len(sums))
	for c := range clusters {
		clusters[c] = c
	}
	slices.SortStableFunc(clusters, func(a, b int) int {
		if enough := sums[a] >= want; enough != (sums[b] >= want) {
			if enough {
				return -1
			}
			return 1
		} else if enough {
			return cmp.Compare(sums[a], sums[b])
		}
		return cmp.Compare(sums[b], sums[a])
	})
	rank := make([]int, len(sums))
	for i, c := range clusters {
		rank[c] = i
	}
	rank[clusters[k%len(clusters)]] = -1
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(rank[s.m.units[a].cluster], rank[s.m.units[b].cluster]) })
	s.left -= 8 * len(list)
}

// centred returns the units for a group: those first that have most of the others near that are near
// the k-th best centre.
func (s *search) centred(st *state, g, k int, room []int32) []int {
	units := len(s.m.units)
	r := s.m.pair[g][g]
	var list []int
	for _, u := range s.m.prefer[g] {
		if st.high[g*units+u] > 0 && room[u] > 0 {
			list = append(list, u)
		}
	}
	s.left -= units
	if r < 0 || len(list) == 0 {
		return list
	}
	score := make([]int, units)
	for _, u := range list {
		score[u] = s.around(st, g, u)
	}
	best := func(a, b int) int { return cmp.Compare(score[b], score[a]) }
	slices.SortStableFunc(list, best)
	near := s.m.rules[r].near
	centre := list[k%len(list)]
	for _, u := range list {
		score[u] = 0
		for w, word := range st.may[g] {
			score[u] += bits.OnesCount64(word & near[u][w] & near[centre][w])
		}
	}
	score[centre] = units + 1
	slices.SortStableFunc(list, best)
	s.left -= len(list) * (len(near[centre]) + 8)
	return list
}
