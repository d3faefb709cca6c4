package node

import (
	"context"
	"errors"
	"testing"

	"zorilla/node/api"
	"zorilla/vicinity"
)

// acquainted is an overlay that knows every node.
type acquainted struct{ Overlay }

func (acquainted) Member(id vicinity.ID) (vicinity.Member, bool) {
	return vicinity.Member{ID: id}, true
}

// Who measures already says so, and that is not what a node says that cannot be reached.
func TestMeasuringAlready(t *testing.T) {
	o := origin{self: &self{net: &network{self: validID("a"), overlay: acquainted{}}}, measuring: newOneAtATime()}
	ctx := context.WithValue(t.Context(), askerKey{}, validID("b"))
	if _, ok := o.measuring.acquire(validID("b")); !ok {
		t.Fatal("the first is refused")
	}
	if _, err := o.Measure(ctx, "self", string(validID("c")), 1); !errors.Is(err, api.ErrRefused) || errors.Is(err, api.ErrUnavailable) {
		t.Errorf("got %v, want ErrRefused", err)
	}
}
