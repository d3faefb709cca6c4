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
	if err := g.stop(nil); err != nil {
		t.Errorf("the end of its parent is a failure: %v", err)
	}

	g = newGroup(t.Context())
	g.run(func(context.Context) error { return sorry })
	<-g.ctx.Done()
	if err := g.stop(nil); err != sorry {
		t.Errorf("got %v, want %v", err, sorry)
	}
}

// Those that are told to end may ask why, and what they answer is no failure.
func TestGroupTellsWhyItEnds(t *testing.T) {
	why, told := errors.New("why"), error(nil)
	g := newGroup(t.Context())
	g.run(func(ctx context.Context) error {
		<-ctx.Done()
		told = context.Cause(ctx)
		return told
	})
	if err := g.stop(why); err != nil || told != why {
		t.Errorf("told %v, and it failed with %v", told, err)
	}
}
