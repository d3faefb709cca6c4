package topology

// search looks at all answers between least and most workers of each group, as far as its effort goes.
type search struct {
	m           *model
	least, most []int
	first       bool // any answer will do
	left        int  // steps
	cut         bool // not everything was looked at
	full        bool // there can be no better answer than the best

	workers *flow
	amounts []*flow // of the resources, if some unit is mixed
	want    []int   // scratch: most that the clusters allow
	sums    []int
	on      []set // scratch: by group, units that have some of it

	best  []int64 // by group and unit; nil = none yet
	worth float64
	bound float64 // of everything, once node was called
}

const epsilon = 1e-9

func newSearch(m *model, least, most []int, effort int) *search {
	s := &search{m: m, least: least, most: most, left: effort, workers: newFlow(m, -1),
		want: make([]int, len(most)), sums: make([]int, len(m.cluster)), bound: -1}
	if m.mixed {
		for r := range len(Amounts{}) {
			if f := newFlow(m, r); len(f.greedy) > 0 {
				s.amounts = append(s.amounts, f)
			}
		}
	}
	for range most {
		s.on = append(s.on, newSet(len(m.units)))
	}
	return s
}

// run looks at all below a state, which it does not change.
func (s *search) run(from *state) {
	s.cut, s.full = false, false
	st := from.clone()
	for g := range s.least {
		if !s.prune(st, g) {
			return
		}
	}
	s.node(st, 0)
}

// node looks at a state and all below it, and changes it. It uses states from depth on.
func (s *search) node(st *state, depth int) {
	if depth == len(s.m.states) {
		s.m.states = append(s.m.states, st.clone())
	}
	next := s.m.states[depth]
	for !s.full {
		if s.left < 0 {
			s.cut = true
			return
		}
		worth, ok := s.relax(st)
		if !ok || s.best != nil && (s.first || worth <= s.worth+epsilon) {
			return
		}
		if s.bound < 0 {
			s.bound = worth
		}
		s.spread()
		b, found := s.choose(st)
		if !found {
			s.keep(worth)
			return
		}
		st.copyTo(next)
		s.left -= len(st.low) / 4
		if b.take(s.m, next) && s.prune(next, b.group) {
			s.node(next, depth+1)
		}
		if !b.refuse(s, st) {
			return
		}
	}
}

// keep makes what the flow found the best answer.
func (s *search) keep(worth float64) {
	s.best = append(make([]int64, 0, len(s.workers.x)), s.workers.x...)
	s.worth = worth
	s.full = s.first || worth >= s.bound-epsilon
}

// relax returns what a state can be worth at most, with the flow for it; ok is false if there is
// nothing in it.
func (s *search) relax(st *state) (worth float64, ok bool) {
	for g := range s.want {
		s.want[g] = min(s.most[g], s.reach(st, g))
		if s.want[g] < s.least[g] {
			return 0, false
		}
	}
	ok = s.workers.run(st, s.least, s.want)
	s.left -= s.workers.steps
	s.workers.steps = 0
	if !ok {
		return 0, false
	}
	worth = s.workers.worth(s.want)
	for _, f := range s.amounts {
		ok := f.run(st, s.least, s.want)
		s.left -= f.steps
		f.steps = 0
		if !ok {
			return 0, false
		}
		worth = min(worth, f.worth(s.want))
	}
	return worth, true
}

// reach returns how many workers of a group the units hold at most that it may be on, in as many
// clusters as it may have.
func (s *search) reach(st *state, g int) (sum int) {
	units := len(s.m.units)
	s.left -= units / 8
	if st.in[g] == nil || st.extra[g] == 0 {
		for u := st.may[g].next(0); u >= 0; u = st.may[g].next(u + 1) {
			sum += int(min(st.high[g*units+u], st.room[u]))
		}
		return sum
	}
	clear(s.sums)
	for u := st.may[g].next(0); u >= 0; u = st.may[g].next(u + 1) {
		n := int(min(st.high[g*units+u], st.room[u]))
		if c := s.m.units[u].cluster; st.in[g].holds(c) {
			sum += n
		} else {
			s.sums[c] += n
		}
	}
	for range st.extra[g] {
		most := 0
		for c, n := range s.sums {
			if n > s.sums[most] {
				most = c
			}
		}
		sum += s.sums[most]
		s.sums[most] = 0
	}
	return sum
}

// spread notes which units have some of each group in the flow.
func (s *search) spread() {
	units := len(s.m.units)
	s.left -= len(s.workers.x) / 4
	for g := range s.on {
		clear(s.on[g])
		for u := range units {
			if s.workers.x[g*units+u] > 0 {
				s.on[g].add(u)
			}
		}
	}
}
