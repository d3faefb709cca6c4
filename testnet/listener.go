package testnet

import (
	"net"
	"net/netip"
	"sync"
)

const backlog = 1024 // connections that wait to be accepted

// listener is a host's stream listener: a net.Listener.
type listener struct {
	host *Host
	life int // of the host
	addr *net.TCPAddr

	mu     sync.Mutex // guards what follows
	ready  sync.Cond
	queue  []*conn
	closed bool
}

func newListener(h *Host, port uint16) *listener {
	l := &listener{host: h, life: h.life, addr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(h.ip, port))}
	l.ready.L = &l.mu
	return l
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.closed {
		l.ready.Wait()
	}
	if l.closed {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
	c := l.queue[0]
	l.queue = l.queue[1:]
	return c, nil
}

// offer hands over a new connection, or resets it.
func (l *listener) offer(c *conn) {
	l.mu.Lock()
	ok := !l.closed && len(l.queue) < backlog
	if ok {
		l.queue = append(l.queue, c)
		l.ready.Signal()
	}
	l.mu.Unlock()
	if !ok {
		c.refuse()
	}
}

// Close implements net.Listener. Connections not yet accepted are reset.
func (l *listener) Close() error {
	h := l.host
	h.net.mu.Lock()
	if port := uint16(l.addr.Port); h.listeners[port] == l {
		delete(h.listeners, port)
	}
	h.net.mu.Unlock()
	queue, was := l.shut()
	for _, c := range queue {
		c.refuse()
	}
	if !was {
		return &net.OpError{Op: "close", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
	return nil
}

// shut closes the listener itself. It returns the connections not accepted and
// whether it was open.
func (l *listener) shut() ([]*conn, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue, was := l.queue, !l.closed
	l.queue, l.closed = nil, true
	l.ready.Broadcast()
	return queue, was
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.addr }
