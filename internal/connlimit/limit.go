// Package connlimit bounds connections whose other end has not proven yet who it is: in all
// and of one address. Where there are too many the oldest one is closed, never the newest, so
// that nobody can keep others out by coming first and saying nothing.
package connlimit

import (
	"net/netip"
	"slices"
	"sync"
)

// Limiter holds the connections. Its methods may be called from any goroutine.
type Limiter struct {
	all, each int

	mu    sync.Mutex // guards what follows
	conns []*Conn    // in the order in which they came
	from  map[netip.Addr]int
}

// Conn is one connection that a limiter holds.
type Conn struct {
	limiter *Limiter
	from    netip.Addr
	close   func()
	spoke   bool // guarded by limiter.mu
}

// New returns a limiter for so many connections in all, and of each address.
func New(all, each int) *Limiter { return &Limiter{all: all, each: each, from: map[netip.Addr]int{}} }

// Add adds a connection. If there are too many then, one is removed and its close is called.
// It is one of the same address if that has too many, else one of the address that has most;
// of these one that has said nothing yet, if there is one, and the oldest of these.
func (l *Limiter) Add(from netip.Addr, close func()) *Conn {
	c := &Conn{limiter: l, from: source(from), close: close}
	if out := l.admit(c); out != nil {
		out.close()
	}
	return c
}

func (l *Limiter) admit(c *Conn) (out *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	addr := c.from
	if l.from[addr] < l.each {
		if len(l.conns) < l.all {
			l.add(c)
			return nil
		}
		addr = l.largest(c.from)
	}
	for _, other := range l.conns {
		if other.from != addr || out != nil && (out.spoke == other.spoke || other.spoke) {
			continue
		}
		out = other
	}
	l.remove(out)
	l.add(c)
	return out
}

// largest returns the address that has most connections, with one more of the address
// that is coming; of several the one that came first.
func (l *Limiter) largest(coming netip.Addr) (addr netip.Addr) {
	most := 0
	for _, c := range l.conns {
		n := l.from[c.from]
		if c.from == coming {
			n++
		}
		if n > most {
			addr, most = c.from, n
		}
	}
	return addr
}

func (l *Limiter) add(c *Conn) {
	l.conns = append(l.conns, c)
	l.from[c.from]++
}

func (l *Limiter) remove(c *Conn) {
	i := slices.Index(l.conns, c)
	if i < 0 {
		return
	}
	l.conns = slices.Delete(l.conns, i, i+1)
	if l.from[c.from]--; l.from[c.from] == 0 {
		delete(l.from, c.from)
	}
}

// Len returns how many connections there are.
func (l *Limiter) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// Spoke says that the other end has begun to say who it is: connections that have said
// nothing are closed before it.
func (c *Conn) Spoke() {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	c.spoke = true
}

// Done removes the connection: its other end is known, or gone. It may be called again.
func (c *Conn) Done() {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	c.limiter.remove(c)
}

// source returns what counts as one address: of IPv6 the network, in which one
// machine may have any address.
func source(a netip.Addr) netip.Addr {
	if a = a.Unmap(); a.Is6() {
		if p, err := a.WithZone("").Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}
