package gossip

import (
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"zorilla/vicinity"
)

const (
	smallFor = 10 * time.Minute // until large packets to an address are tried again
	maxSmall = 4096             // addresses with small packets that are remembered
	maxAt    = 4096             // nodes with another address that are

	// silentFor is how long a connection must have been open without a byte from the other end to
	// count as one whose large packets are dropped. The other end closes such a connection after
	// helloTimeout.
	silentFor = 900 * time.Millisecond
)

// Way is what hinders packets to and from a member.
type Way struct {
	NoUDP bool // it answers by TCP alone
	Small bool // large packets do not get through
}

// paths remembers how members are reached: at which of the addresses that they advertise, which
// addresses large packets do not get through to, and the connections that were made.
type paths struct {
	mu         sync.Mutex             // guards what follows
	at         map[vicinity.ID]string // where a node has answered last, if not at the first address that it advertises
	smallUntil map[string]time.Time   // addresses, and until when only small packets are used
	conns      map[*outbound]struct{} // that are open
}

func newPaths() *paths {
	return &paths{at: map[vicinity.ID]string{}, smallUntil: map[string]time.Time{}, conns: map[*outbound]struct{}{}}
}

// answered notes that a node, "" if it may be any, has proven who it is at an address, and whether
// that is the first that it advertises.
func (p *paths) answered(id vicinity.ID, addr string, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case id == "":
	case first:
		delete(p.at, id)
	case p.at[id] != "" || len(p.at) < maxAt:
		p.at[id] = addr
	}
}

// to returns where to send packets to a node whose first address is addr.
func (p *paths) to(id vicinity.ID, addr string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.at[id]; at != "" {
		return at
	}
	return addr
}

// order returns the addresses of a node in the order in which to try them.
func (p *paths) order(id vicinity.ID, addrs []string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(addrs, p.at[id])
	if i <= 0 {
		return addrs
	}
	return slices.Concat(addrs[i:i+1], addrs[:i], addrs[i+1:])
}

// advertised notes which addresses a member advertises. Connections to it at others are closed: it
// has moved, and requests over them would wait long for an answer.
func (p *paths) advertised(id vicinity.ID, addrs []string) {
	p.mu.Lock()
	if !slices.Contains(addrs, p.at[id]) {
		delete(p.at, id)
	}
	p.mu.Unlock()
	p.close(func(c *outbound) bool { return c.id == id && !slices.Contains(addrs, c.addr) })
}

// gone forgets where a node has answered.
func (p *paths) gone(id vicinity.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.at, id)
}

// noteSmall notes that large packets do not get through to an address, and closes the connections
// that use them.
func (p *paths) noteSmall(addr string, now time.Time) {
	p.mu.Lock()
	if len(p.smallUntil) >= maxSmall {
		maps.DeleteFunc(p.smallUntil, func(_ string, until time.Time) bool { return !until.After(now) })
	}
	if len(p.smallUntil) < maxSmall {
		p.smallUntil[addr] = now.Add(smallFor)
	}
	p.mu.Unlock()
	p.close(func(c *outbound) bool { return c.addr == addr && !c.small })
}

// small reports whether only small packets get through to an address.
func (p *paths) small(addr string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.smallUntil[addr]
	if ok && !until.After(time.Now()) {
		delete(p.smallUntil, addr)
		ok = false
	}
	return ok
}

// opened and closed keep track of the open connections.
func (p *paths) opened(c *outbound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.paths, p.conns[c] = p, struct{}{}
}

func (p *paths) closed(c *outbound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// close closes some connections.
func (p *paths) close(which func(*outbound) bool) {
	p.mu.Lock()
	var list []*outbound
	for c := range p.conns {
		if which(c) {
			list = append(list, c)
		}
	}
	p.mu.Unlock()
	for _, c := range list {
		c.Close()
	}
}

// outbound is a connection that this node has made to another one.
type outbound struct {
	net.Conn
	id    vicinity.ID // "" = any member
	addr  string
	small bool   // it has small packets
	paths *paths // where it is registered; nil during its handshake

	ready chan struct{} // closed when it is open; nil = nobody waits for that
	since time.Time     // when it was opened; set before ready is closed
	heard atomic.Bool   // whether a byte has come from the other end
}

// on sets the TCP connection, which has just been opened.
func (c *outbound) on(raw net.Conn) *outbound {
	c.Conn, c.since = raw, time.Now()
	if c.ready != nil {
		close(c.ready)
	}
	return c
}

// silent reports whether the connection, which has ended, was open for some time without a byte
// from the other end.
func (c *outbound) silent() bool {
	return !c.since.IsZero() && !c.heard.Load() && time.Since(c.since) >= silentFor
}

// Read implements net.Conn.
func (c *outbound) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.heard.Load() {
		c.heard.Store(true)
	}
	return n, err
}

// Close implements net.Conn.
func (c *outbound) Close() error {
	if c.paths != nil {
		c.paths.closed(c)
	}
	return c.Conn.Close()
}
