package node

import (
	"context"
	"errors"
	"testing"
)

func TestGroupTellsItsOwnFailureOnly(t *testing.T) {
	sorry := errors.New("sorry")
	ctx, cancel := context.WithCancelCause(t.Context())
	g := newGroup(ctx)
	g.run(func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	cancel(errors.New("terminated signal received"))
	g.stop()
	if err := g.failure(); err != nil {
		t.Errorf("the end of its parent is a failure: %v", err)
	}

	g = newGroup(t.Context())
	g.run(func(context.Context) error { return sorry })
	<-g.ctx.Done()
	g.stop()
	if err := g.failure(); err != sorry {
		t.Errorf("got %v, want %v", err, sorry)
	}
}
