package agent

import (
	"context"
	"maps"
	"time"

	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

const (
	// connectionLasts is how long a connection that is not used stays open, less some time.
	connectionLasts = 90 * time.Second
	maxAhead        = 4096
)

// ahead is when this node last connected to others before it had something to tell them. It
// belongs to the loop.
type ahead map[vicinity.ID]time.Time

// due reports whether a connection has to be made, and takes it that it is.
func (a ahead) due(now time.Time, id vicinity.ID) bool {
	if now.Sub(a[id]) < connectionLasts {
		return false
	}
	if len(a) >= maxAhead {
		maps.DeleteFunc(a, func(_ vicinity.ID, at time.Time) bool { return now.Sub(at) >= connectionLasts })
	}
	if len(a) >= maxAhead {
		return false
	}
	a[id] = now
	return true
}

// connect has a connection made, by a question whose answer nobody needs.
func connect(ctx context.Context, peers *peer.Client, to vicinity.ID) {
	ctx, cancel := context.WithTimeout(ctx, clockTimeout)
	defer cancel()
	var c wire.Clock
	_ = peers.Send(ctx, to, peer.PathClock, wire.AskClock{}, &c) // whoever has something to tell tries again, and says so
}
