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
	maxSmall = 4096             // addresses that are remembered

	// A connection on which nothing has been heard for so long after it was opened may be one
	// whose packets are dropped. The other end closes it after helloTimeout if it is.
	silentFor = 900 * time.Millisecond
)

// Way is what hinders packets to and from a member.
type Way struct {
	NoUDP bool // it answers by TCP alone
	Small bool // large packets do not get through
}

// paths remembers how members are reached: at which of the addresses that they tell, to which
// addresses large packets do not get through, and the connections that were made.
type paths struct {
	mu     sync.Mutex             // guards what follows
	at     map[vicinity.ID]string // where a member has answered last, if that is not the first address that it tells
	narrow map[string]time.Time   // addresses, and until when only small packets are used
	conns  map[*outbound]struct{} // that are open
}

func newPaths() *paths {
	return &paths{at: map[vicinity.ID]string{}, narrow: map[string]time.Time{}, conns: map[*outbound]struct{}{}}
}

// answered says that a node, "" if it may be any, has proven who it is at an address, and whether
// that is the first that it tells.
func (p *paths) answered(id vicinity.ID, addr string, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case id == "":
	case first:
		delete(p.at, id)
	default:
		p.at[id] = addr
	}
}

// to returns where to send packets to a node that is told to be at addr.
func (p *paths) to(id vicinity.ID, addr string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.at[id]; at != "" {
		return at
	}
	return addr
}

// order returns the addresses of a node in the order in which they are to be tried.
func (p *paths) order(id vicinity.ID, addrs []string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(addrs, p.at[id])
	if i <= 0 {
		return addrs
	}
	return slices.Concat(addrs[i:i+1], addrs[:i], addrs[i+1:])
}

// tells says which addresses a member tells. Connections to it at others are closed: it has moved,
// and whoever waits for an answer there would wait for long.
func (p *paths) tells(id vicinity.ID, addrs []string) {
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

// noteSmall says that large packets do not get through to an address: connections with such are
// closed.
func (p *paths) noteSmall(addr string, now time.Time) {
	p.mu.Lock()
	if len(p.narrow) >= maxSmall {
		maps.DeleteFunc(p.narrow, func(_ string, until time.Time) bool { return !until.After(now) })
	}
	if len(p.narrow) < maxSmall {
		p.narrow[addr] = now.Add(smallFor)
	}
	p.mu.Unlock()
	p.close(func(c *outbound) bool { return c.addr == addr && !c.small })
}

// small reports whether only small packets get through to an address.
func (p *paths) small(addr string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.narrow[addr]
	if ok && !until.After(time.Now()) {
		delete(p.narrow, addr)
		ok = false
	}
	return ok
}

// opened and closed say which connections there are.
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
	paths *paths // that it is known to; nil during its handshake

	ready chan struct{} // closed when the other end has accepted it; nil = nobody waits for that
	since time.Time     // when it was; set before that
	heard atomic.Bool   // something
}

// on returns it with the connection that has been accepted.
func (c *outbound) on(raw net.Conn) *outbound {
	c.Conn, c.since = raw, time.Now()
	if c.ready != nil {
		close(c.ready)
	}
	return c
}

// deaf reports whether the connection, which has ended, was there for some time without a word.
func (c *outbound) deaf() bool {
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
