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
	maxPreconnects  = 4096
)

// preconnects has the times at which this node last connected to others before it had a request
// for them. It belongs to the loop.
type preconnects map[vicinity.ID]time.Time

// due reports whether a connection has to be made, and notes that it is.
func (a preconnects) due(now time.Time, id vicinity.ID) bool {
	if now.Sub(a[id]) < connectionLasts {
		return false
	}
	if len(a) >= maxPreconnects {
		maps.DeleteFunc(a, func(_ vicinity.ID, at time.Time) bool { return now.Sub(at) >= connectionLasts })
	}
	if len(a) >= maxPreconnects {
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
	_ = peers.Send(ctx, to, peer.PathClock, wire.AskClock{}, &c) // a request that needs the connection tries again, and reports its error
}
