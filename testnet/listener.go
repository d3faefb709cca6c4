package testnet

import (
	"net"
	"net/netip"
)

const backlog = 1024 // connections that wait to be accepted

// listener is a host's stream listener: a net.Listener.
type listener struct {
	host  *Host
	life  int // of the host
	addr  *net.TCPAddr
	ready *inbox[*conn]
}

func newListener(h *Host, port uint16) *listener {
	return &listener{host: h, life: h.life, addr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(h.ip, port)), ready: newInbox[*conn](backlog)}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.ready.take()
	if err != nil {
		return nil, l.fail("accept", err)
	}
	return c, nil
}

// offer hands over a new connection, or resets it.
func (l *listener) offer(c *conn) {
	if !l.ready.put(c) {
		c.refuse()
	}
}

// Close implements net.Listener. Connections not yet accepted are reset.
func (l *listener) Close() error {
	free(l.host, l.host.listeners, l.addr.Port, l)
	queue, err := l.ready.shut()
	for _, c := range queue {
		c.refuse()
	}
	return l.fail("close", err)
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.addr }

func (l *listener) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &net.OpError{Op: op, Net: "tcp", Addr: l.addr, Err: err}
}
