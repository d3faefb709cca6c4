package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"zorilla/jobs/placement/mapping"
)

const (
	every     = 20.0 // seconds between failures
	atATime   = 2    // nodes in use that fail then
	reduction = 0.9  // of the error by an iteration of all tasks, see step
	longest   = 3600.0
)

// outcome is how a run ended.
type outcome struct {
	seconds float64 // +Inf: it did not converge, for want of nodes or within an hour
	failed  int     // nodes in use that failed
	far     int     // replacements at another site
	error   float64 // the largest of all tasks at the end
}

// sample is the error of a task after an iteration.
type sample struct{ at, error float64 }

// simulation is asynchronous iterations in virtual time. What each task knows is an error, 1 at the
// beginning. An iteration makes it reduction times the mean of its neighbours', as the task last
// heard of them: x = Bx for a matrix B without negative elements whose rows have the sum reduction, which is
// what an asynchronous multisplitting does to its error in the worst case. Nothing waits for a message.
type simulation struct {
	*state
	m     *measured
	shape *shape

	history [][]sample // of each task, what it sent
	now     []float64  // error of each task
	coming  []float64  // its error after the iteration that runs
	saved   []float64  // in its last checkpoint
	save    []float64  // when the next one is due
	next    []float64  // when its iteration ends, or its node is chosen, or it is restored
	doing   []activity
}

type activity uint8

const (
	iterating activity = iota
	undetected
	restoring
)

// trouble is failures of nodes: as many tasks in use lose theirs at the same time, as regularly, as in the
// paper, or one at a time and at random moments, as many in all. They are the same for all methods.
type trouble struct {
	rnd    *rand.Rand
	random bool
}

// pause is the time to the next failure.
func (f *trouble) pause() float64 {
	if f.random {
		return f.rnd.ExpFloat64() * every / atATime
	}
	return every
}

func (f *trouble) nodes() int {
	if f.random {
		return 1
	}
	return atATime
}

// limits say when a run is over.
type limits struct {
	error   float64 // all tasks are below that
	seconds float64
}

// simulate runs to a limit. Without failures these are nil.
func simulate(p *problem, sh *shape, m *measured, how *method, failures *trouble, rnd *rand.Rand, end limits) (o outcome) {
	s := &simulation{state: newState(p, rnd), m: m, shape: sh}
	s.take(how.place(s.state))
	s.begin()
	failing := math.Inf(1)
	if failures != nil {
		failing = failures.pause()
	}
	for {
		task := 0
		for i, t := range s.next {
			if t < s.next[task] {
				task = i
			}
		}
		now := min(s.next[task], failing)
		switch {
		case now > end.seconds:
			o.seconds, o.error = math.Inf(1), slices.Max(s.now)
			return o
		case now == failing:
			o.failed += s.fail(now, failures)
			failing += failures.pause()
			continue
		case s.doing[task] == undetected:
			node, ok := how.replace(s.state, task)
			if !ok {
				o.seconds, o.error = math.Inf(1), slices.Max(s.now)
				return o
			}
			if !s.replace(task, node, now) {
				o.far++
			}
			continue
		}
		s.step(task, now)
		if s.now[task] <= end.error && s.converged(end.error) {
			o.seconds, o.error = now, slices.Max(s.now)
			return o
		}
	}
}

func (s *simulation) begin() {
	n := len(s.places)
	s.history, s.coming, s.next, s.doing = make([][]sample, n), make([]float64, n), make([]float64, n), make([]activity, n)
	s.now, s.saved, s.save = slices.Repeat([]float64{1}, n), slices.Repeat([]float64{1}, n), slices.Repeat([]float64{s.m.Checkpoint.Seconds}, n)
	for i := range n {
		s.history[i] = []sample{{math.Inf(-1), 1}}
	}
	for i := range n {
		s.start(i, 0)
	}
}

// converged reports whether all tasks have a small error, and none is away.
func (s *simulation) converged(error float64) bool {
	for i, e := range s.now {
		if e > error || s.doing[i] != iterating {
			return false
		}
	}
	return true
}

// step ends the iteration of a task, or its restore, and starts the next iteration.
func (s *simulation) step(i int, now float64) {
	if s.doing[i] == iterating {
		s.now[i] = s.coming[i]
		s.history[i] = append(s.history[i], sample{now, s.now[i]})
		if now >= s.save[i] {
			s.saved[i], s.save[i] = s.now[i], now+s.m.Checkpoint.Seconds
		}
	}
	s.doing[i] = iterating
	s.start(i, now)
}

// start starts an iteration, with what has arrived.
func (s *simulation) start(i int, now float64) {
	sum, own := 0.0, s.places[i].Cluster
	for _, e := range s.g.Edges[i] {
		sent := now - s.shape.delay(s.m, own, s.places[e.To].Cluster)
		h := s.history[e.To]
		k := len(h) - 1
		for h[k].at > sent {
			k--
		}
		sum += h[k].error
	}
	s.coming[i] = reduction * sum / float64(len(s.g.Edges[i]))
	s.next[i] = now + s.m.Iteration.Seconds*s.g.Cost[i]/s.clusters[own].Power[s.places[i].Node]
}

// fail ends the nodes of some tasks that are iterating, and returns how many. Those nodes never return.
func (s *simulation) fail(now float64, failures *trouble) (n int) {
	for _, i := range failures.rnd.Perm(len(s.places)) {
		if n < failures.nodes() && s.doing[i] == iterating {
			s.doing[i], s.next[i] = undetected, now+s.m.Detection.Seconds
			n++
		}
	}
	return n
}

// replace has a task restored on a node, from its last checkpoint, which is kept at the site where it ran. It
// reports whether that is near.
func (s *simulation) replace(i int, node mapping.Place, now float64) (near bool) {
	restore := s.m.RestoreFar.Seconds
	if near = s.shape.site[node.Cluster] == s.shape.site[s.places[i].Cluster]; near {
		restore = s.m.RestoreNear.Seconds
	}
	delete(s.free, node)
	s.places[i], s.doing[i], s.next[i] = node, restoring, now+restore
	s.now[i], s.save[i] = s.saved[i], now+restore+s.m.Checkpoint.Seconds
	return near
}
