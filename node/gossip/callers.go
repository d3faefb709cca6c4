package gossip

import (
	"errors"
	"net"
	"sync"
	"time"

	"zorilla/vicinity"
)

const (
	maxConns   = 64 // of one member: more are refused
	maxStreams = 8  // of these for gossip
)

// callers counts the connections that each member has made to this node.
type callers struct {
	mu sync.Mutex // guards what follows
	of map[vicinity.ID]called
}

// called counts the connections of one member.
type called struct{ all, gossip int }

func newCallers() *callers { return &callers{of: map[vicinity.ID]called{}} }

// enter counts a connection of a member until it is closed. It reports false if there are too
// many.
func (c *callers) enter(conn *caller, id vicinity.ID, gossip bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.of[id]
	n.all++
	if gossip {
		n.gossip++
	}
	if n.all > maxConns || n.gossip > maxStreams {
		return false
	}
	c.of[id] = n
	conn.leave = sync.OnceFunc(func() { c.leave(id, gossip) })
	return true
}

func (c *callers) leave(id vicinity.ID, gossip bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.of[id]
	if gossip {
		n.gossip--
	}
	if n.all--; n.all == 0 {
		delete(c.of, id)
		return
	}
	c.of[id] = n
}

// caller is a connection that another node has made.
type caller struct {
	net.Conn
	leave func() // set before anybody else has the connection; nil = it is not counted
}

// Close implements net.Conn.
func (c *caller) Close() error {
	if c.leave != nil {
		c.leave()
	}
	return c.Conn.Close()
}

// errPutOff ends a handshake before it has cost a signature.
var errPutOff = errors.New("too many handshakes of clients that are not known to be members")

// Clients whose ClientHello does not prove that they know the network's secret, strangers and nodes
// of older releases, are admitted at this rate: a handshake costs a millisecond of processor time.
const (
	unprovenRate  = 20 // a second
	unprovenBurst = 100
)

// unproven is the token bucket of such clients.
type unproven struct {
	mu   sync.Mutex // guards what follows
	used float64    // of the burst
	at   time.Time
}

// admit reports whether one may go on with its handshake.
func (u *unproven) admit(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.used = max(0, u.used-now.Sub(u.at).Seconds()*unprovenRate)
	u.at = now
	if u.used > unprovenBurst-1 {
		return false
	}
	u.used++
	return true
}
