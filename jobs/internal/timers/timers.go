// Package timers orders what wants to be woken by when that is. It has no clock: who
// asks says what time it is.
package timers

import (
	"container/heap"
	"slices"
	"time"
)

// Queue orders what wants to be woken by when that is; who wants that first, or
// has come first, is first. What does not want to be woken by itself comes last.
// The order hangs on nothing but the calls, so that simulations can be repeated.
type Queue[T Timed] struct {
	List  []T
	count uint64 // of those that were ever added
}

// Timed is what a queue holds: whatever embeds an entry.
type Timed interface{ at() *Entry }

// Entry is the place of something in a Queue.
type Entry struct {
	wakes  time.Time // zero = not by itself
	Number uint64    // in the order of their coming; 0 = it is in none
	index  int
}

func (e *Entry) at() *Entry { return e }

// Len, Less and Swap are for package heap.
func (q *Queue[T]) Len() int { return len(q.List) }

func (q *Queue[T]) Less(i, k int) bool {
	x, y := q.List[i].at(), q.List[k].at()
	switch {
	case x.wakes.IsZero() != y.wakes.IsZero():
		return y.wakes.IsZero()
	case !x.wakes.Equal(y.wakes):
		return x.wakes.Before(y.wakes)
	}
	return x.Number < y.Number
}

func (q *Queue[T]) Swap(i, k int) {
	q.List[i], q.List[k] = q.List[k], q.List[i]
	q.List[i].at().index, q.List[k].at().index = i, k
}

// Push is for package heap.
func (q *Queue[T]) Push(x any) {
	t := x.(T)
	t.at().index = len(q.List)
	q.List = append(q.List, t)
}

// Pop is for package heap.
func (q *Queue[T]) Pop() any {
	last := len(q.List) - 1
	t := q.List[last]
	clear(q.List[last:]) // else what was taken out stays in memory
	if q.List = q.List[:last]; cap(q.List) > 1000 && last < cap(q.List)/4 {
		q.List = slices.Clone(q.List)
	}
	return t
}

// Set says when something wants to be woken, and adds it if it is not there.
func (q *Queue[T]) Set(t T, wakes time.Time) {
	e := t.at()
	e.wakes = wakes
	if e.Number == 0 {
		q.count++
		e.Number = q.count
		heap.Push(q, t)
		return
	}
	heap.Fix(q, e.index)
}

// Remove takes something out that is there.
func (q *Queue[T]) Remove(t T) {
	e := t.at()
	heap.Remove(q, e.index)
	*e = Entry{}
}

// Next returns when somebody wants to be woken; zero = nobody by itself.
func (q *Queue[T]) Next() time.Time {
	if len(q.List) == 0 {
		return time.Time{}
	}
	return q.List[0].at().wakes
}

// Due returns who wants to be woken by now, the first of them.
func (q *Queue[T]) Due(now time.Time) (t T, ok bool) {
	if at := q.Next(); at.IsZero() || now.Before(at) {
		return t, false
	}
	return q.List[0], true
}
