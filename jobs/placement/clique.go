package placement

import (
	"math/bits"
	"time"
)

// set is a set of hosts by their numbers.
type set []uint64

func newSet(n int) set         { return make(set, (n+63)/64) }
func (s set) add(i int)        { s[i/64] |= 1 << (i % 64) }
func (s set) remove(i int)     { s[i/64] &^= 1 << (i % 64) }
func (s set) both(a, b set)    { each(s, func(w int) { s[w] = a[w] & b[w] }) }
func (s set) without(a, b set) { each(s, func(w int) { s[w] = a[w] &^ b[w] }) }

func each(s set, f func(word int)) {
	for w := range s {
		f(w)
	}
}

// common returns how many are in both.
func (s set) common(t set) (n int) {
	for w := range s {
		n += bits.OnesCount64(s[w] & t[w])
	}
	return n
}

// next returns the first one from i on, or -1.
func (s set) next(i int) int {
	for w := i / 64; w < len(s); w++ {
		word := s[w]
		if w == i/64 {
			word &= ^uint64(0) << (i % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// graph joins hosts that are near enough to each other.
type graph struct {
	near []set
	all  set
}

func (f *field) graph(within time.Duration) *graph {
	n := len(f.hosts)
	g := &graph{near: make([]set, n), all: newSet(n)}
	for i := range n {
		g.near[i] = newSet(n)
		if f.rtt[i][i] > within {
			continue
		}
		g.all.add(i)
		for k := range n {
			if k != i && f.rtt[i][k] <= within && f.rtt[k][k] <= within {
				g.near[i].add(k)
			}
		}
	}
	return g
}

// leave takes a host out.
func (g *graph) leave(i int) {
	g.all.remove(i)
	for k := range g.near {
		g.near[k].remove(i)
	}
	clear(g.near[i])
}

// groups calls visit with sets of hosts of which each is joined to all others,
// and to which no host could be added, until it returns true. First come those
// around a centre, nearest to the origin first; then, as far as the effort
// goes, all that could hold the job (the algorithm of Bron and Kerbosch with
// pivots).
func (f *field) groups(g *graph, visit func(hosts []int) (stop bool)) {
	n := len(f.hosts)
	centres, left := 0, newSet(n)
	for c := g.all.next(0); c >= 0 && centres < maxCentres; c = g.all.next(c + 1) {
		centres++
		hosts := []int{c}
		copy(left, g.near[c])
		for i := left.next(0); i >= 0; i = left.next(i + 1) {
			hosts = append(hosts, i)
			left.both(left, g.near[i])
		}
		if visit(hosts) {
			return
		}
	}
	f.left = effort
	f.expand(g, nil, 0, append(set(nil), g.all...), newSet(n), visit)
}

// expand visits the groups that hold all of the hosts, any of may and none of
// seen, which has been looked at. It reports whether the search is over.
func (f *field) expand(g *graph, hosts []int, room int, may, seen set, visit func([]int) bool) (over bool) {
	pivot, most, could, n := -1, -1, room, 0
	for i := may.next(0); i >= 0; i = may.next(i + 1) {
		could += f.hosts[i].capacity
		n++
		if c := may.common(g.near[i]); c > most {
			pivot, most = i, c
		}
	}
	if f.left -= n + 1; f.left < 0 {
		return true
	}
	if could < f.places || len(hosts)+n < f.Replicas {
		return false
	}
	if pivot < 0 {
		f.left -= visitEffort * len(hosts)
		return seen.next(0) < 0 && visit(hosts)
	}
	size := len(f.hosts)
	branch := newSet(size)
	branch.without(may, g.near[pivot])
	for i := branch.next(0); i >= 0; i = branch.next(i + 1) {
		mayToo, seenToo := newSet(size), newSet(size)
		mayToo.both(may, g.near[i])
		seenToo.both(seen, g.near[i])
		if f.expand(g, append(hosts[:len(hosts):len(hosts)], i), room+f.hosts[i].capacity, mayToo, seenToo, visit) {
			return true
		}
		may.remove(i)
		seen.add(i)
	}
	return false
}
