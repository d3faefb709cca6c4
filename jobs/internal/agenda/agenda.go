// Package agenda orders what wants to be woken by when that is. It has no clock: who
// asks reports what time it is.
package agenda

import (
	"container/heap"
	"slices"
	"time"
)

// Agenda orders what wants to be woken by when that is; who wants that first, or
// has come first, is first. What does not want to be woken by itself comes last.
// The order hangs on nothing but the calls, so that simulations can be repeated.
type Agenda[T Timed] struct {
	List  []T
	count uint64 // of those that were ever added
}

// Timed is what an agenda holds: whatever embeds an entry.
type Timed interface{ at() *Entry }

// Entry is the place of something in an agenda.
type Entry struct {
	wakes  time.Time // zero = not by itself
	Number uint64    // in the order of their coming; 0 = it is in none
	index  int
}

func (e *Entry) at() *Entry { return e }

// Len, Less and Swap are for package heap.
func (a *Agenda[T]) Len() int { return len(a.List) }

func (a *Agenda[T]) Less(i, k int) bool {
	x, y := a.List[i].at(), a.List[k].at()
	switch {
	case x.wakes.IsZero() != y.wakes.IsZero():
		return y.wakes.IsZero()
	case !x.wakes.Equal(y.wakes):
		return x.wakes.Before(y.wakes)
	}
	return x.Number < y.Number
}

func (a *Agenda[T]) Swap(i, k int) {
	a.List[i], a.List[k] = a.List[k], a.List[i]
	a.List[i].at().index, a.List[k].at().index = i, k
}

// Push is for package heap.
func (a *Agenda[T]) Push(x any) {
	t := x.(T)
	t.at().index = len(a.List)
	a.List = append(a.List, t)
}

// Pop is for package heap.
func (a *Agenda[T]) Pop() any {
	last := len(a.List) - 1
	t := a.List[last]
	clear(a.List[last:]) // else what was taken out stays in memory
	if a.List = a.List[:last]; cap(a.List) > 1000 && last < cap(a.List)/4 {
		a.List = slices.Clone(a.List)
	}
	return t
}

// Set says when something wants to be woken, and adds it if it is not there.
func (a *Agenda[T]) Set(t T, wakes time.Time) {
	e := t.at()
	e.wakes = wakes
	if e.Number == 0 {
		a.count++
		e.Number = a.count
		heap.Push(a, t)
		return
	}
	heap.Fix(a, e.index)
}

// Remove takes something out that is there.
func (a *Agenda[T]) Remove(t T) {
	e := t.at()
	heap.Remove(a, e.index)
	*e = Entry{}
}

// Next returns when somebody wants to be woken; zero = nobody by itself.
func (a *Agenda[T]) Next() time.Time {
	if len(a.List) == 0 {
		return time.Time{}
	}
	return a.List[0].at().wakes
}

// Due returns who wants to be woken by now, the first of them.
func (a *Agenda[T]) Due(now time.Time) (t T, ok bool) {
	if at := a.Next(); at.IsZero() || now.Before(at) {
		return t, false
	}
	return a.List[0], true
}
