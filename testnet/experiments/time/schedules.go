package main

import "slices"

// Schedules of a series of runs that are all there at first, made by who sees everything: what our nodes come to is
// held against them. Times are minutes.

// run is a run of islands, each of which is in one cluster; several may be in the same one.
type run struct {
	islands, size int // and workers of each
	length        int
}

// part is a run that has its place.
type part struct {
	start, end int
	uses       []int // slots of each cluster
}

// schedule is a series of runs on clusters of so many slots.
type schedule struct {
	clusters []int
	parts    []part
}

// ways lists in what ways a run can be placed on empty clusters: the most islands in the first ones first.
func (s *schedule) ways(r run) (list [][]int) {
	uses := make([]int, len(s.clusters))
	var place func(c, left int)
	place = func(c, left int) {
		if c == len(uses) {
			if left == 0 {
				list = append(list, slices.Clone(uses))
			}
			return
		}
		for n := min(left, s.clusters[c]/r.size); n >= 0; n-- {
			uses[c] = n * r.size
			place(c+1, left-n)
		}
		uses[c] = 0
	}
	place(0, r.islands)
	return list
}

// fits reports whether there is room during all of a time.
func (s *schedule) fits(p part) bool {
	for _, at := range s.ends(p.start, true) {
		if at >= p.end {
			continue
		}
		for c, n := range p.uses {
			for _, q := range s.parts {
				if q.start <= at && at < q.end {
					n += q.uses[c]
				}
			}
			if n > s.clusters[c] {
				return false
			}
		}
	}
	return true
}

// ends lists the times from one on at which a part ends, with starts those at which one starts, in order.
func (s *schedule) ends(from int, starts bool) []int {
	list := []int{from}
	for _, q := range s.parts {
		if q.end > from {
			list = append(list, q.end)
		}
		if starts && q.start > from {
			list = append(list, q.start)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// earliest is the first place that a run has from a time on.
func (s *schedule) earliest(r run, from int) part {
	for _, at := range s.ends(from, false) {
		if p, ok := s.now(r, at); ok {
			return p
		}
	}
	panic("a run is larger than all clusters")
}

// now is the place that a run has if it starts at a time.
func (s *schedule) now(r run, at int) (p part, ok bool) {
	for _, uses := range s.ways(r) {
		if p = (part{at, at + r.length, uses}); s.fits(p) {
			return p, true
		}
	}
	return p, false
}

func (s *schedule) add(p part) { s.parts = append(s.parts, p) }

// makespan is when all have ended.
func (s *schedule) makespan() (end int) {
	for _, p := range s.parts {
		end = max(end, p.end)
	}
	return end
}

// inOrder starts each run as early as it can, but none before those that stand before it: first come, first served.
func inOrder(clusters []int, runs []run) int {
	s, at := schedule{clusters: clusters}, 0
	for _, r := range runs {
		p := s.earliest(r, at)
		at = p.start
		s.add(p)
	}
	return s.makespan()
}

// easy is EASY backfilling (Lifka, 1995): the first run that waits has its start promised, others go before it if
// that start remains possible.
func easy(clusters []int, runs []run) int {
	s, queue, at := schedule{clusters: clusters}, slices.Clone(runs), 0
	for len(queue) > 0 {
		for len(queue) > 0 {
			p, ok := s.now(queue[0], at)
			if !ok {
				break
			}
			s.add(p)
			queue = queue[1:]
		}
		if len(queue) == 0 {
			break
		}
		promised := s.earliest(queue[0], at)
		rest := queue[:1:1]
		for _, r := range queue[1:] {
			s.add(promised)
			p, ok := s.now(r, at)
			if s.parts = s.parts[:len(s.parts)-1]; ok {
				s.add(p)
			} else {
				rest = append(rest, r)
			}
		}
		queue, at = rest, s.ends(at, false)[1]
	}
	return s.makespan()
}

// optimal is the least makespan of all schedules. In one of these each run starts as early as those allow that start
// before it, so all orders of starts are tried, with all places of each run.
func optimal(clusters []int, runs []run) int {
	s := schedule{clusters: clusters}
	best, slots, area := easy(clusters, runs), 0, 0
	for _, n := range clusters {
		slots += n
	}
	for _, r := range runs {
		area += r.islands * r.size * r.length
	}
	left := slices.Clone(runs)
	var try func(from int)
	try = func(from int) {
		if len(left) == 0 {
			best = min(best, s.makespan())
			return
		}
		if s.least(from, left, area, slots) >= best {
			return
		}
		for i, r := range left {
			if slices.Contains(left[:i], r) {
				continue
			}
			left = slices.Delete(slices.Clone(left), i, i+1)
			for _, uses := range s.ways(r) {
				for _, at := range s.ends(from, false) {
					p := part{at, at + r.length, uses}
					if p.end >= best {
						break
					}
					if s.fits(p) {
						s.add(p)
						try(at)
						s.parts = s.parts[:len(s.parts)-1]
						break
					}
				}
			}
			left = slices.Insert(left, i, r)
		}
	}
	try(0)
	return best
}

// least bounds what a schedule can come to in which no further run starts before a time.
func (s *schedule) least(from int, left []run, area, slots int) int {
	end := max(s.makespan(), (area+slots-1)/slots)
	work := 0 // from then on
	for _, p := range s.parts {
		for _, n := range p.uses {
			work += n * max(0, p.end-from)
		}
	}
	for _, r := range left {
		end = max(end, from+r.length)
		work += r.islands * r.size * r.length
	}
	return max(end, from+(work+slots-1)/slots)
}
