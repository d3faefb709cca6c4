package node

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// group runs functions that belong together until its context ends or one of
// them fails, and knows when all have returned.
type group struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	all    *errgroup.Group
}

func newGroup(parent context.Context) *group {
	parent, cancel := context.WithCancelCause(parent)
	all, ctx := errgroup.WithContext(parent)
	return &group{ctx: ctx, cancel: cancel, all: all}
}

// run starts functions. An error of one ends the group, unless it has ended before: what
// it says then is only that it was told to return.
func (g *group) run(list ...func(ctx context.Context) error) {
	for _, f := range list {
		g.all.Go(func() error {
			if err := f(g.ctx); g.ctx.Err() == nil {
				return err
			}
			return nil
		})
	}
}

// stop ends the group and waits for all of it. Those in the group find the
// cause in their context unless that has ended before. It returns the error
// that ended the group, if one did.
func (g *group) stop(cause error) error {
	g.cancel(cause)
	return g.all.Wait()
}

// inParallel calls f for all of a list, for 32 at the same time.
func inParallel[T any](list []T, f func(*T)) {
	var all errgroup.Group
	all.SetLimit(32)
	for i := range list {
		all.Go(func() error {
			f(&list[i])
			return nil
		})
	}
	_ = all.Wait() // f has no error
}
