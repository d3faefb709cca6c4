package node

import (
	"context"
	"sync"
)

// group runs functions that belong together until its context ends or one of
// them fails, and knows when all have returned.
type group struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

func newGroup(parent context.Context) *group {
	g := &group{}
	g.ctx, g.cancel = context.WithCancelCause(parent)
	return g
}

// run starts f. An error of f ends the group.
func (g *group) run(f func(ctx context.Context) error) {
	g.wg.Go(func() {
		if err := f(g.ctx); err != nil && g.ctx.Err() == nil {
			g.cancel(failed{err})
		}
	})
}

// stop ends the group and waits for all of it.
func (g *group) stop() { g.stopBecause(nil) }

// stopBecause is stop with a cause, which those in the group can find in their
// context unless it has ended before.
func (g *group) stopBecause(cause error) {
	g.cancel(because{cause})
	g.wg.Wait()
}

// because is a cause that is not the group's own.
type because struct{ error }

// Unwrap makes errors.Is look at the cause.
func (b because) Unwrap() error { return b.error }

// Error implements error.
func (b because) Error() string {
	if b.error == nil {
		return context.Canceled.Error()
	}
	return b.error.Error()
}

// failed marks an error of the group's own: the context of a parent has a
// cause as well.
type failed struct{ error }

// Unwrap makes errors.Is look at the error.
func (f failed) Unwrap() error { return f.error }

// failure returns the error that ended the group, if one did.
func (g *group) failure() error {
	if own, ok := context.Cause(g.ctx).(failed); ok {
		return own.error
	}
	return nil
}
