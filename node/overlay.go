package node

import (
	"context"
	"net"

	"zorilla/node/gossip"
	"zorilla/vicinity"
)

// Overlay is a node's way to the other nodes. The real one is
// *gossip.Overlay, whose documentation says what the methods do.
type Overlay interface {
	// Listen binds the node's port; Self and PeerListener can be used then.
	Listen(ctx context.Context) error
	// Run takes part in the network until ctx ends.
	Run(ctx context.Context) error

	Self() vicinity.Member
	Members() []vicinity.Member
	Member(id vicinity.ID) (vicinity.Member, bool)
	Seeds() []string

	Send(to vicinity.ID, kind byte, payload []byte) error
	PeerListener() net.Listener
	DialPeer(ctx context.Context, id vicinity.ID, addrs []string) (net.Conn, error)

	Stats() map[string]int64
}

var _ Overlay = (*gossip.Overlay)(nil)
