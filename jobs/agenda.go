package jobs

import (
	"container/heap"
	"time"
)

// agenda orders what wants to be woken by when that is; who wants that first, or
// has come first, is first. What does not want to be woken by itself comes last.
// The order hangs on nothing but the calls, so that simulations can be repeated.
type agenda[T timed] struct {
	list  []T
	count uint64 // of those that were ever added
}

// timed is what an agenda holds: whatever embeds an entry.
type timed interface{ at() *entry }

// entry is the place of something in an agenda.
type entry struct {
	wakes  time.Time // zero = not by itself
	number uint64    // in the order of their coming; 0 = it is in none
	index  int
}

func (e *entry) at() *entry { return e }

func (a *agenda[T]) Len() int { return len(a.list) }

func (a *agenda[T]) Less(i, k int) bool {
	x, y := a.list[i].at(), a.list[k].at()
	switch {
	case x.wakes.IsZero() != y.wakes.IsZero():
		return y.wakes.IsZero()
	case !x.wakes.Equal(y.wakes):
		return x.wakes.Before(y.wakes)
	}
	return x.number < y.number
}

func (a *agenda[T]) Swap(i, k int) {
	a.list[i], a.list[k] = a.list[k], a.list[i]
	a.list[i].at().index, a.list[k].at().index = i, k
}

// Push is for package heap.
func (a *agenda[T]) Push(x any) {
	t := x.(T)
	t.at().index = len(a.list)
	a.list = append(a.list, t)
}

// Pop is for package heap.
func (a *agenda[T]) Pop() any {
	last := len(a.list) - 1
	t := a.list[last]
	a.list = a.list[:last]
	return t
}

// set says when something wants to be woken, and adds it if it is not there.
func (a *agenda[T]) set(t T, wakes time.Time) {
	e := t.at()
	e.wakes = wakes
	if e.number == 0 {
		a.count++
		e.number = a.count
		heap.Push(a, t)
		return
	}
	heap.Fix(a, e.index)
}

// remove takes something out that is there.
func (a *agenda[T]) remove(t T) {
	e := t.at()
	heap.Remove(a, e.index)
	*e = entry{}
}

// next returns when somebody wants to be woken; zero = nobody by itself.
func (a *agenda[T]) next() time.Time {
	if len(a.list) == 0 {
		return time.Time{}
	}
	return a.list[0].at().wakes
}

// due returns who wants to be woken by now, the first of them.
func (a *agenda[T]) due(now time.Time) (t T, ok bool) {
	if at := a.next(); at.IsZero() || now.Before(at) {
		return t, false
	}
	return a.list[0], true
}
