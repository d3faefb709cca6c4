package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"zorilla/jobs/placement/mapping"
)

const (
	byDefault = "default"
	likeQM    = "like QM"
	likeFEC   = "like F-EC"
	byMaheve  = "MAHEVE"
	ours      = "ours"
	nearOnly  = "default map, near replacement"
	mapOnly   = "MAHEVE's map, random replacement"
)

// method decides where tasks run first, and which node replaces that of a task. Both get their own random
// numbers, which most do not need; none of them fails while there are nodes.
type method struct {
	name    string
	place   func(s *state) []mapping.Place
	replace func(s *state, task int) (mapping.Place, bool)
}

func methods() []method {
	return []method{
		{byDefault, asTheyCame, (*state).nextThatCame},
		{likeQM, quickest, (*state).quickestFor},
		{likeFEC, fewestCuts, (*state).besideMost},
		{byMaheve, maheve, (*state).near},
		{ours, local, (*state).nearOrQuickest},
		{nearOnly, asTheyCame, (*state).nearOrNext},
		{mapOnly, maheve, (*state).anyone},
	}
}

// problem is what is to be mapped, and on what.
type problem struct {
	g        *mapping.Graph
	clusters []mapping.Cluster // all nodes
	came     []mapping.Place   // all of them, in the order in which they became known
	wl       mapping.Latency   // in iterations
}

// state is what runs where.
type state struct {
	*problem
	rnd    *rand.Rand
	places []mapping.Place
	free   map[mapping.Place]bool
}

func newState(p *problem, rnd *rand.Rand) *state {
	s := &state{problem: p, rnd: rnd, free: map[mapping.Place]bool{}}
	for _, n := range p.came {
		s.free[n] = true
	}
	return s
}

// take maps all tasks.
func (s *state) take(places []mapping.Place) {
	s.places = slices.Clone(places)
	for _, p := range places {
		delete(s.free, p)
	}
}

// freeNodes returns the free nodes in the order in which they became known.
func (s *state) freeNodes() (list []mapping.Place) {
	for _, n := range s.came {
		if s.free[n] {
			list = append(list, n)
		}
	}
	return list
}

// freeClusters returns them by cluster, with the number of each node.
func (s *state) freeClusters() (list []mapping.Cluster, numbers [][]int) {
	list, numbers = make([]mapping.Cluster, len(s.clusters)), make([][]int, len(s.clusters))
	for c := range s.clusters {
		for n, power := range s.clusters[c].Power {
			if s.free[mapping.Place{Cluster: c, Node: n}] {
				list[c].Power, numbers[c] = append(list[c].Power, power), append(numbers[c], n)
			}
		}
	}
	return list, numbers
}

// asTheyCame is the default: tasks and nodes in the order in which they are known.
func asTheyCame(s *state) []mapping.Place { return slices.Clone(s.came[:len(s.g.Cost)]) }

func (s *state) nextThatCame(int) (mapping.Place, bool) { return first(s.freeNodes()) }

func first(list []mapping.Place) (mapping.Place, bool) {
	if len(list) == 0 {
		return mapping.Place{}, false
	}
	return list[0], true
}

func (s *state) anyone(int) (mapping.Place, bool) {
	list := s.freeNodes()
	if len(list) == 0 {
		return mapping.Place{}, false
	}
	return list[s.rnd.IntN(len(list))], true
}

// maheve is what the program does.
func maheve(s *state) []mapping.Place {
	m, err := mapping.Maheve(s.g, s.clusters, mapping.DefaultSpares)
	if err != nil {
		panic(err) // more nodes than tasks were drawn
	}
	return m.Places
}

func local(s *state) []mapping.Place {
	m, err := mapping.Local(s.g, s.clusters, mapping.DefaultSpares, s.wl)
	if err != nil {
		panic(err)
	}
	return m.Places
}

func (s *state) near(task int) (mapping.Place, bool) {
	free, numbers := s.freeClusters()
	p, ok := mapping.Replacement(s.places[task].Cluster, free)
	if ok {
		p.Node = numbers[p.Cluster][p.Node]
	}
	return p, ok
}

func (s *state) nearOrQuickest(task int) (mapping.Place, bool) {
	free, numbers := s.freeClusters()
	p, ok := s.g.Replace(task, s.places, free, s.wl)
	if ok {
		p.Node = numbers[p.Cluster][p.Node]
	}
	return p, ok
}

// nearOrNext is the default with one change: a free node of the same cluster comes first.
func (s *state) nearOrNext(task int) (mapping.Place, bool) {
	list := s.freeNodes()
	slices.SortStableFunc(list, func(a, b mapping.Place) int {
		own := s.places[task].Cluster
		return cmp.Compare(btoi(a.Cluster != own), btoi(b.Cluster != own))
	})
	return first(list)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// time is ET of the paper (section 3.1) for a task at a place, with those neighbours that have one.
func (s *state) time(task int, at mapping.Place, placed func(int) (mapping.Place, bool)) float64 {
	t := s.g.Cost[task] / s.clusters[at.Cluster].Power[at.Node]
	for _, e := range s.g.Edges[task] {
		if p, ok := placed(e.To); ok {
			t += e.Volume * s.wl(at.Cluster, p.Cluster)
		}
	}
	return t
}

// leastTime returns the node of a list where a task's iterations are shortest.
func (s *state) leastTime(task int, nodes []mapping.Place, placed func(int) (mapping.Place, bool)) (best mapping.Place, least float64) {
	least = math.Inf(1)
	for _, n := range nodes {
		if t := s.time(task, n, placed); t < least {
			best, least = n, t
		}
	}
	return best, least
}

// quickest is in the manner of AIAC-QM, a fast optimisation of execution time: each task, the costliest first, gets the
// node where its iterations are shortest; then those that a free node would make shorter go there, until none is. The
// original chooses partly by chance; this does not.
func quickest(s *state) []mapping.Place {
	n := len(s.g.Cost)
	places, has := make([]mapping.Place, n), make([]bool, n)
	placed := func(i int) (mapping.Place, bool) { return places[i], has[i] }
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.g.Cost[b], s.g.Cost[a]) })
	free := slices.Clone(s.came)
	take := func(task int, node mapping.Place) {
		places[task], has[task] = node, true
		free = slices.DeleteFunc(free, func(f mapping.Place) bool { return f == node })
	}
	for _, i := range order {
		node, _ := s.leastTime(i, free, placed)
		take(i, node)
	}
	for range 20 { // mostly two or three are enough
		better := false
		for _, i := range order {
			if node, least := s.leastTime(i, free, placed); least < s.time(i, places[i], placed) {
				free, better = append(free, places[i]), true
				take(i, node)
			}
		}
		if !better {
			break
		}
	}
	return places
}

// quickestFor applies the same to a task whose node failed.
func (s *state) quickestFor(task int) (mapping.Place, bool) {
	node, least := s.leastTime(task, s.freeNodes(), func(i int) (mapping.Place, bool) { return s.places[i], true })
	return node, !math.IsInf(least, 1)
}

// fewestCuts is in the manner of Farhat's algorithm: clusters are filled, the largest first, with a region of the
// graph that grows from the task with fewest neighbours by the one that has most neighbours in the region.
func fewestCuts(s *state) []mapping.Place {
	order := make([]int, len(s.clusters))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(s.clusters[b].Power), len(s.clusters[a].Power)) })
	places, has := make([]mapping.Place, len(s.g.Cost)), make([]bool, len(s.g.Cost))
	left := len(places)
	for _, c := range order {
		inside := make([]int, len(places)) // neighbours of each task in this cluster
		for node := 0; node < len(s.clusters[c].Power) && left > 0; node++ {
			next := -1
			for i := range places {
				if !has[i] && (next < 0 || inside[i] > inside[next] || inside[i] == inside[next] && len(s.g.Edges[i]) < len(s.g.Edges[next])) {
					next = i
				}
			}
			places[next], has[next] = mapping.Place{Cluster: c, Node: node}, true
			left--
			for _, e := range s.g.Edges[next] {
				inside[e.To]++
			}
		}
	}
	return places
}

// besideMost applies the same to a task whose node failed: a free node where most of its neighbours are.
func (s *state) besideMost(task int) (mapping.Place, bool) {
	beside := make([]int, len(s.clusters))
	for _, e := range s.g.Edges[task] {
		beside[s.places[e.To].Cluster]++
	}
	list := s.freeNodes()
	slices.SortStableFunc(list, func(a, b mapping.Place) int { return cmp.Compare(beside[b.Cluster], beside[a.Cluster]) })
	return first(list)
}
