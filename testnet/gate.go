package testnet

import (
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

// wait waits for a change. It returns os.ErrDeadlineExceeded at once if the
// deadline has passed. The gate is locked before and after.
func (g *gate) wait() error {
	if g.expired() {
		return os.ErrDeadlineExceeded
	}
	g.changed.Wait()
	return nil
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
