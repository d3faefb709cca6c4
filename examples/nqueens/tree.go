package main

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// The work as a tree: a task is the placement of the first rows, its children those of one
// row more. Counting them is divided until so many rows are placed, and then done.
//
// Whoever has a task is answerable for it: to the task above it, or to the rank that it was
// taken from. A task that was taken by a rank which is lost is put back, and done again
// here. What was done for a rank that is lost is not lost: all are told.
const dividedRows = 3

// placement is the columns of the queens of the first rows.
type placement []int

func (p placement) key() string { return fmt.Sprint([]int(p)) }

// fits reports whether a placement is one on a board of n columns, without an attack.
func (p placement) fits(n int) bool {
	if len(p) > dividedRows || len(p) > n {
		return false
	}
	for row, column := range p {
		if column < 0 || column >= n {
			return false
		}
		for above := range row {
			if d := column - p[above]; d == 0 || d == row-above || d == above-row {
				return false
			}
		}
	}
	return true
}

// solutions counts what follows from a placement.
func (p placement) solutions(n int) uint64 {
	all := uint32(1)<<n - 1
	var columns, left, right uint32
	for _, column := range p {
		queen := uint32(1) << column
		columns, left, right = columns|queen, (left|queen)<<1, (right|queen)>>1
	}
	return solve(all, columns, left&all, right)
}

// children are the placements of one row more.
func (p placement) children(n int) (list []placement) {
	for column := range n {
		if c := append(slices.Clone(p), column); c.fits(n) {
			list = append(list, c)
		}
	}
	return list
}

// task is a placement whose solutions are to be counted.
type task struct {
	at      placement
	above   *task        // nil: tell is called
	tell    func(uint64) // what becomes of it
	missing int          // children that are not counted
	sum     uint64
}

// tree is the work that a rank has. Its methods may be called from any goroutine.
type tree struct {
	n    int
	mu   sync.Mutex
	open []*task            // the last is the deepest
	done map[string]counted // for ranks that are lost
	owed int                // tasks that somebody wants to be told of
	stat statistics
}

// counted is a task that was counted.
type counted struct {
	at  placement
	sum uint64
}

// statistics is what a rank tells at its end.
type statistics struct {
	Counted int // tasks that were not divided
	Taken   int // from others
	Redone  int // put back, since who had taken them was lost
	Spared  int // not done again, since somebody had done them for a rank that was lost
}

func newTree(n int) *tree { return &tree{n: n, done: map[string]counted{}} }

// add adds a task, of which tell is told.
func (t *tree) add(at placement, tell func(uint64)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = append(t.open, &task{at: at, tell: tell})
	t.owed++
}

// load returns how many tasks wait, and how many others wait for.
func (t *tree) load() (open, owed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open), t.owed
}

// took adds a task of another rank, and reports whether it is the first.
func (t *tree) took(at placement, tell func(uint64)) (first bool) {
	t.add(at, tell)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stat.Taken++
	return t.stat.Taken == 1
}

// again puts back a task that somebody had taken.
func (t *tree) again(k *task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stat.Redone++
	t.open = append(t.open, k)
}

// know notes what was counted for a rank that is lost.
func (t *tree) know(at placement, sum uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done[at.key()] = counted{at, sum}
}

// knows lists what was counted for ranks that are lost.
func (t *tree) knows() []counted {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.done))
}

// give takes the largest task out, for another rank; nil = there is none to give.
func (t *tree) give() *task {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open) < 2 {
		return nil
	}
	k := t.open[0]
	t.open = t.open[1:]
	return k
}

// step does one task, or divides it. It reports whether there was one.
func (t *tree) step() bool {
	t.mu.Lock()
	if len(t.open) == 0 {
		t.mu.Unlock()
		return false
	}
	k := t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	if known, found := t.done[k.at.key()]; found {
		t.stat.Spared++
		t.mu.Unlock()
		t.counted(k, known.sum)
		return true
	}
	if len(k.at) < min(dividedRows, t.n) {
		children := k.at.children(t.n)
		k.missing = len(children)
		for _, at := range children {
			t.open = append(t.open, &task{at: at, above: k})
		}
		t.mu.Unlock()
		if len(children) == 0 {
			t.counted(k, 0)
		}
		return true
	}
	t.stat.Counted++
	t.mu.Unlock()
	t.counted(k, k.at.solutions(t.n))
	return true
}

// counted says how many solutions a task has.
func (t *tree) counted(k *task, sum uint64) {
	for {
		if k.above == nil {
			k.tell(sum)
			t.mu.Lock()
			t.owed--
			t.mu.Unlock()
			return
		}
		t.mu.Lock()
		k.above.sum += sum
		k.above.missing--
		whole := k.above.missing == 0
		t.mu.Unlock()
		if !whole {
			return
		}
		k, sum = k.above, k.above.sum
	}
}

func (t *tree) statistics() statistics {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stat
}
