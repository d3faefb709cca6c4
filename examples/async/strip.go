package main

import (
	"math"
	"sync"
)

// The problem: -Δu = f in the unit square, u = 0 at its edge, with f such that u is sin πx
// sin πy but for what a grid of n by n points makes of it, which is known too.

// source is f at a point of the grid, numbered from 1.
func source(n, row, column int) float64 {
	h := 1 / float64(n+1)
	return 2 * math.Pi * math.Pi * math.Sin(math.Pi*h*float64(row)) * math.Sin(math.Pi*h*float64(column))
}

// solution is what the iteration comes to.
func solution(n, row, column int) float64 {
	h := 1 / float64(n+1)
	eigenvalue := 8 / (h * h) * math.Pow(math.Sin(math.Pi*h/2), 2)
	return source(n, row, column) / eigenvalue
}

// strip is the rows of the grid that one rank has, and what it knows of those beside them.
// Its methods may be called from any goroutine.
type strip struct {
	n, first, rows int // first row, from 1

	mu         sync.Mutex
	u, next    [][]float64 // with one row more above and below, and one column at both sides
	beside     [2]beside   // above, below
	iterations int
	change     float64 // the largest since the last report
	changed    chan struct{}
}

// beside is the newest row of a neighbour.
type beside struct {
	there  bool // this strip has a neighbour there
	fresh  bool // since the last report
	values []float64
}

const (
	above = 0
	below = 1
)

// newStrip returns the part of a rank, of so many.
func newStrip(n, rank, size int) *strip {
	s := &strip{n: n, first: rank*n/size + 1, changed: make(chan struct{})}
	s.rows = (rank+1)*n/size + 1 - s.first
	for range s.rows + 2 {
		s.u, s.next = append(s.u, make([]float64, n+2)), append(s.next, make([]float64, n+2))
	}
	s.beside[above].there, s.beside[below].there = rank > 0, rank < size-1
	return s
}

// sweep does one iteration, with whatever is known of the neighbours by now.
func (s *strip) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for side, row := range map[int][]float64{above: s.u[0], below: s.u[s.rows+1]} {
		copy(row, s.beside[side].values)
	}
	h := 1 / float64(s.n+1)
	for i := 1; i <= s.rows; i++ {
		for j := 1; j <= s.n; j++ {
			v := (s.u[i-1][j] + s.u[i+1][j] + s.u[i][j-1] + s.u[i][j+1] + h*h*source(s.n, s.first+i-1, j)) / 4
			s.change = max(s.change, math.Abs(v-s.u[i][j]))
			s.next[i][j] = v
		}
	}
	s.u, s.next = s.next, s.u
	s.iterations++
	close(s.changed)
	s.changed = make(chan struct{})
}

// row returns this rank's row that is beside a neighbour's, and a channel that is closed
// when there is a newer one.
func (s *strip) row(side int) (values []float64, iteration int, newer <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := 1
	if side == below {
		i = s.rows
	}
	return append([]float64{}, s.u[i]...), s.iterations, s.changed
}

// learn takes a neighbour's row. One of another length is none.
func (s *strip) learn(side int, values []float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := &s.beside[side]; b.there && len(values) == s.n+2 {
		b.values, b.fresh = values, true
	}
}

// report reports whether nothing has changed by more than so much since the last report,
// though each neighbour was heard meanwhile.
func (s *strip) report(limit float64) (settled bool, iterations int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	settled = s.change < limit && s.iterations > 0
	for side := range s.beside {
		b := &s.beside[side]
		settled = settled && (b.fresh || !b.there)
		b.fresh = false
	}
	s.change = 0
	return settled, s.iterations
}

// wrong is how far this strip is from the solution.
func (s *strip) wrong() (most float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 1; i <= s.rows; i++ {
		for j := 1; j <= s.n; j++ {
			most = max(most, math.Abs(s.u[i][j]-solution(s.n, s.first+i-1, j)))
		}
	}
	return most
}
