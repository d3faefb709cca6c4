package testnet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// A connection request is repeated after 1, 2, 4, … 64 seconds, as Linux does:
// Dial gives up after 127 seconds.
const (
	firstRepeat = time.Second
	lastRepeat  = 64 * time.Second
)

const firstEphemeral = 49152

// Host is one machine on a Network. It gives out sockets by the methods that a
// node expects of its network.
type Host struct {
	net *Network
	ip  netip.Addr

	// Guarded by net.mu:
	up        bool
	life      int // number of crashes so far
	group     int // of the partition
	nextPort  uint16
	listeners map[uint16]*listener
	sockets   map[uint16]*packetConn
	conns     map[*conn]struct{}
	downlink  int       // bytes per second of streams that it receives; 0 = no limit
	receives  time.Time // until when it is busy with what is under way
}

// Downlink bounds how many bytes a second come to the host in streams from now on; 0 = no
// limit.
func (h *Host) Downlink(bytesPerSecond int) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.downlink = bytesPerSecond
}

// IP returns the host's address.
func (h *Host) IP() netip.Addr { return h.ip }

// String returns the host's address.
func (h *Host) String() string { return h.ip.String() }

// Addr returns "IP:port".
func (h *Host) Addr(port int) string {
	return netip.AddrPortFrom(h.ip, uint16(port)).String()
}

// Listen opens a stream listener. The address is the host's own or
// unspecified; port 0 means a free one. The context ends only the opening,
// which takes no time.
func (h *Host) Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := open(ctx, h, address, h.listeners, newListener)
	if err != nil {
		return nil, fmt.Errorf("listen tcp %s: %w", address, err)
	}
	return l, nil
}

// ListenPacket opens a packet socket; see Listen for the address.
func (h *Host) ListenPacket(ctx context.Context, address string) (net.PacketConn, error) {
	s, err := open(ctx, h, address, h.sockets, newPacketConn)
	if err != nil {
		return nil, fmt.Errorf("listen udp %s: %w", address, err)
	}
	return s, nil
}

// Dial connects to a listener at "IP:port".
func (h *Host) Dial(ctx context.Context, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial tcp %s: %w", address, err)
	}
	c, err := h.dial(ctx, to)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: err}
	}
	return c, nil
}

func (h *Host) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	life, _ := h.state()
	for pause := firstRepeat; pause <= lastRepeat; pause *= 2 {
		sent := time.Now()
		l, err := h.handshake(ctx, to)
		if err != nil {
			return nil, err
		}
		if now, up := h.state(); !up || now != life {
			return nil, net.ErrClosed
		}
		if l != nil {
			return h.connect(l)
		}
		if err := sleep(ctx, time.Until(sent.Add(pause))); err != nil {
			return nil, err
		}
	}
	return nil, syscall.ETIMEDOUT
}

// handshake sends one connection request and waits for the answer. It returns
// the listener, nil if no answer will come, or the refusal.
func (h *Host) handshake(ctx context.Context, to netip.AddrPort) (*listener, error) {
	n := h.net
	n.mu.Lock()
	peer := n.hosts[to.Addr()]
	sent := peer != nil && n.reachLocked(h, peer)
	n.mu.Unlock()
	if !sent {
		return nil, ctx.Err()
	}
	there, asked := n.delay(h, peer)
	if err := sleep(ctx, there); err != nil {
		return nil, err
	}
	n.mu.Lock()
	l, answered := peer.listeners[to.Port()], n.reachLocked(h, peer)
	n.mu.Unlock()
	if !asked || !answered {
		return nil, nil
	}
	back, told := n.delay(peer, h)
	if err := sleep(ctx, back); err != nil {
		return nil, err
	}
	switch {
	case !told || !n.reach(h, peer):
		return nil, nil
	case l == nil:
		return nil, syscall.ECONNREFUSED
	}
	return l, nil
}

// connect makes both ends of a connection and sends the listener its end.
func (h *Host) connect(l *listener) (net.Conn, error) {
	n := h.net
	n.mu.Lock()
	port, err := pick(h, 0, h.listeners)
	if err != nil {
		n.mu.Unlock()
		return nil, err
	}
	local := net.TCPAddrFromAddrPort(netip.AddrPortFrom(h.ip, port))
	near, far := newConn(h, h.life, local, l.addr), newConn(l.host, l.life, l.addr, local)
	near.peer, far.peer = far, near
	h.conns[near] = struct{}{}
	if l.host.life == l.life {
		l.host.conns[far] = struct{}{}
	}
	n.counters.Streams.Count++
	n.mu.Unlock()
	time.AfterFunc(n.streamDelay(h, l.host, 0), func() { l.offer(far) })
	return near, nil
}

// state returns which life of the host this is, and whether it is up.
func (h *Host) state() (life int, up bool) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	return h.life, h.up
}

// localAddr parses an address to listen at.
func (h *Host) localAddr(ctx context.Context, address string) (netip.AddrPort, error) {
	if err := ctx.Err(); err != nil {
		return netip.AddrPort{}, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if host == "" {
		host = h.ip.String()
	}
	a, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	if err != nil {
		return netip.AddrPort{}, err
	}
	if a.Addr() != h.ip && !a.Addr().IsUnspecified() {
		return netip.AddrPort{}, syscall.EADDRNOTAVAIL
	}
	return a, nil
}

// open makes a socket at an address and adds it to the host's.
func open[S any](ctx context.Context, h *Host, address string, taken map[uint16]S, make func(*Host, uint16) S) (s S, err error) {
	want, err := h.localAddr(ctx, address)
	if err != nil {
		return s, err
	}
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	port, err := pick(h, want.Port(), taken)
	if err != nil {
		return s, err
	}
	s = make(h, port)
	taken[port] = s
	return s, nil
}

// free removes a socket that is being closed from the host's.
func free[S comparable](h *Host, taken map[uint16]S, port int, s S) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if taken[uint16(port)] == s {
		delete(taken, uint16(port))
	}
}

// pick returns the wanted port, or a free one for 0. The network is locked.
func pick[S any](h *Host, want uint16, taken map[uint16]S) (uint16, error) {
	if !h.up {
		return 0, net.ErrClosed
	}
	if want != 0 {
		if _, ok := taken[want]; ok {
			return 0, syscall.EADDRINUSE
		}
		return want, nil
	}
	for range 1<<16 - firstEphemeral {
		port := h.nextPort
		if h.nextPort++; h.nextPort < firstEphemeral {
			h.nextPort = firstEphemeral
		}
		if _, ok := taken[port]; !ok {
			return port, nil
		}
	}
	return 0, syscall.EADDRINUSE
}

// sleep waits, or returns why the context ended.
func sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
