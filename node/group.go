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
			g.cancel(err)
		}
	})
}

// stop ends the group and waits for all of it.
func (g *group) stop() {
	g.cancel(nil)
	g.wg.Wait()
}

// failure returns the error that ended the group, if one did.
func (g *group) failure() error {
	if err := context.Cause(g.ctx); err != nil && err != context.Canceled {
		return err
	}
	return nil
}
