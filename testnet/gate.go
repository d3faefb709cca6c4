package testnet

import (
	"net"
	"os"
	"sync"
	"time"
)

// gate is a mutex at which one may wait for a change, at most until a
// deadline. It waits on a condition, never on the mutex, so that a waiting
// goroutine does not stop the clock of a bubble.
type gate struct {
	sync.Mutex
	changed  sync.Cond
	deadline time.Time   // guarded by Mutex
	timer    *time.Timer // wakes the waiters at the deadline; guarded by Mutex
}

func (g *gate) init() { g.changed.L = &g.Mutex }

// expired reports whether the deadline has passed. The gate is locked.
func (g *gate) expired() bool {
	return !g.deadline.IsZero() && !time.Now().Before(g.deadline)
}

// setDeadline wakes the waiters so that they see the new deadline.
func (g *gate) setDeadline(t time.Time) {
	g.Lock()
	defer g.Unlock()
	g.deadline = t
	g.stopLocked()
	if d := time.Until(t); !t.IsZero() && d > 0 {
		g.timer = time.AfterFunc(d, func() {
			g.Lock()
			g.changed.Broadcast()
			g.Unlock()
		})
	}
	g.changed.Broadcast()
}

// stopLocked lets go of the timer.
func (g *gate) stopLocked() {
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
}

// inbox keeps what has arrived at a socket until somebody takes it.
type inbox[T any] struct {
	gate
	queue  []T
	limit  int
	closed bool
}

func newInbox[T any](limit int) *inbox[T] {
	b := &inbox[T]{limit: limit}
	b.init()
	return b
}

// put adds something, unless the inbox is full or closed.
func (b *inbox[T]) put(v T) bool {
	b.Lock()
	defer b.Unlock()
	if b.closed || len(b.queue) >= b.limit {
		return false
	}
	b.queue = append(b.queue, v)
	b.changed.Broadcast()
	return true
}

// take waits for something, until the inbox is closed or the deadline has passed.
func (b *inbox[T]) take() (first T, err error) {
	b.Lock()
	defer b.Unlock()
	for {
		switch {
		case b.closed:
			return first, net.ErrClosed
		case b.expired():
			return first, os.ErrDeadlineExceeded
		case len(b.queue) > 0:
			first = b.queue[0]
			clear(b.queue[:1])
			b.queue = b.queue[1:]
			return first, nil
		}
		b.changed.Wait()
	}
}

// shut closes the inbox. It returns what nobody has taken, and an error if it was
// closed before.
func (b *inbox[T]) shut() (left []T, err error) {
	b.Lock()
	defer b.Unlock()
	if b.closed {
		err = net.ErrClosed
	}
	left, b.queue, b.closed = b.queue, nil, true
	b.changed.Broadcast()
	return left, err
}

func (b *inbox[T]) isClosed() bool {
	b.Lock()
	defer b.Unlock()
	return b.closed
}
