// Package loop has the one goroutine that owns what a node decides about jobs. Whatever
// changes it is a function that the loop calls; what takes time has a goroutine of its
// own, and posts what came of it.
package loop

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/timers"
)

// Loop calls functions one after the other. Its methods may be called from any
// goroutine; what Post, TryPost and Call are given must not wait for the loop.
type Loop struct {
	// Leaving ends when workers are to be left, with Leave; Stopped when all else is to
	// end, with Stop, and with it the loop.
	Leaving, Stopped context.Context
	Leave, Stop      context.CancelFunc

	inbox    chan func()
	children sync.WaitGroup
	running  chan struct{} // closed when Run was called
	ended    chan struct{} // closed when the loop does not run any more
	failed   chan error    // capacity 1: why the loop cannot go on
	log      zerolog.Logger
	next     time.Time // when the loop wants to wake; zero = only when something comes

	mu      sync.Mutex
	changed chan struct{}
}

// Owner is what a Loop runs for. The loop calls its methods.
type Owner interface {
	// Due does what is due, after each function and whenever Wake says so.
	Due()
	// Wake returns when Due is to be called by itself; zero = never.
	Wake() time.Time
	// Stalled reports that no message could be received for a while, because the process
	// was paused, or has just been started.
	Stalled()
}

// backlog is how many functions may wait before Post does.
const backlog = 1024

// stallLimit is how late the loop may be before it counts as stalled: the machine was too
// busy, or the process was paused.
const stallLimit = time.Second

// New makes a loop that does not run yet.
func New(log zerolog.Logger) *Loop {
	l := &Loop{
		inbox: make(chan func(), backlog), running: make(chan struct{}), ended: make(chan struct{}), failed: make(chan error, 1),
		log: log, changed: make(chan struct{}),
	}
	l.Leaving, l.Leave = context.WithCancel(context.Background())
	l.Stopped, l.Stop = context.WithCancel(context.Background())
	return l
}

// Start runs the loop in a goroutine of its own, until Stop.
func (l *Loop) Start(o Owner) {
	close(l.running)
	go func() {
		defer close(l.ended)
		l.run(o)
	}()
}

// Ready waits until the loop runs. The error is that of ctx, or jobs.ErrStopped.
func (l *Loop) Ready(ctx context.Context) error {
	select {
	case <-l.running:
		return nil
	case <-l.Stopped.Done():
		return jobs.ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wait returns when the loop and all goroutines that it was given have ended.
func (l *Loop) Wait() {
	<-l.ended
	l.children.Wait()
}

// Go calls a function in a goroutine that Wait waits for.
func (l *Loop) Go(f func()) { l.children.Go(f) }

// Fail says why the loop cannot go on. The first error counts.
func (l *Loop) Fail(err error) {
	select {
	case l.failed <- err:
	default:
	}
}

// Failed has the error of Fail.
func (l *Loop) Failed() <-chan error { return l.failed }

// run calls what is sent, and the owner.
func (l *Loop) run(o Owner) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	o.Stalled() // no message could be received before
	for {
		select {
		case f := <-l.inbox:
			l.checkStall(o)
			f()
		case <-timer.C:
		case <-l.Stopped.Done():
			return
		}
		l.checkStall(o)
		o.Due()
		if l.next = o.Wake(); !l.next.IsZero() {
			l.next = timers.Later(l.next, time.Now())
			timer.Reset(max(0, time.Until(l.next)))
		} else {
			timer.Stop()
		}
	}
}

// checkStall reports to the owner if the loop runs too late, before anything else reads the
// clock.
func (l *Loop) checkStall(o Owner) {
	now := time.Now()
	if l.next.IsZero() || now.Before(l.next.Add(stallLimit)) {
		return
	}
	l.log.Warn().Msgf("this node was paused, or too busy to run, for %v", now.Sub(l.next).Round(time.Millisecond))
	l.next = now
	o.Stalled()
}

// Post has f called, unless the loop has ended.
func (l *Loop) Post(f func()) {
	select {
	case l.inbox <- f:
	case <-l.Stopped.Done():
	}
}

// TryPost is Post for those who cannot wait: what does not fit is lost. It reports
// whether it fits.
func (l *Loop) TryPost(f func()) bool {
	select {
	case l.inbox <- f:
		return true
	default:
		return false
	}
}

// Waiting returns how many functions wait to be called.
func (l *Loop) Waiting() int { return len(l.inbox) }

// Call has f called and waits for it. It reports false if the loop has ended.
func (l *Loop) Call(f func()) bool {
	done := make(chan struct{})
	l.Post(func() { f(); close(done) })
	select {
	case <-done:
		return true
	case <-l.Stopped.Done():
	}
	select { // f may be running still
	case <-l.running:
		<-l.ended
	default:
		return false
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Notify tells watchers that something has changed.
func (l *Loop) Notify() {
	l.mu.Lock()
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
}

// Changes returns a channel that is closed at the next Notify.
func (l *Loop) Changes() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}
