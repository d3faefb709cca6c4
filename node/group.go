package node

import (
	"context"
	"errors"
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
func (g *group) stop() {
	g.cancel(nil)
	g.wg.Wait()
}

// failed marks an error of the group's own: the context of a parent has a
// cause as well.
type failed struct{ error }

// failure returns the error that ended the group, if one did.
func (g *group) failure() error {
	if own := (failed{}); errors.As(context.Cause(g.ctx), &own) {
		return own.error
	}
	return nil
}
