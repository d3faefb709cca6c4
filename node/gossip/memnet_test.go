package gossip

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// fabric is an in-memory network of hosts with one latency between all of
// them. It works inside and outside of a bubble.
type fabric struct {
	mu      sync.Mutex
	latency time.Duration
	hosts   map[netip.Addr]*memHost
	side    map[netip.Addr]int // hosts on different sides do not reach each other
	lose    func() bool        // whether the next packet is lost; nil = never
	noUDP   map[netip.Addr]bool
	// What these hosts send in more than smallSegment bytes at once is dropped.
	narrow map[netip.Addr]bool
	dials  int
}

type memHost struct {
	f         *fabric
	ip        netip.Addr
	down      bool
	port      uint16
	listeners map[uint16]*memListener
	sockets   map[uint16]*memPacket
	conns     map[*memConn]struct{}
}

func newFabric(latency time.Duration) *fabric {
	return &fabric{latency: latency, hosts: map[netip.Addr]*memHost{}, side: map[netip.Addr]int{}, noUDP: map[netip.Addr]bool{}, narrow: map[netip.Addr]bool{}}
}

func (f *fabric) host(n int) *memHost {
	f.mu.Lock()
	defer f.mu.Unlock()
	ip := netip.MustParseAddr(fmt.Sprintf("10.0.%d.%d", n/250, n%250+1))
	if f.hosts[ip] == nil {
		f.hosts[ip] = &memHost{f: f, ip: ip, port: 40000, listeners: map[uint16]*memListener{}, sockets: map[uint16]*memPacket{}, conns: map[*memConn]struct{}{}}
	}
	return f.hosts[ip]
}

func (f *fabric) reachLocked(a, b netip.Addr) bool {
	return f.hosts[a] != nil && f.hosts[b] != nil && !f.hosts[a].down && !f.hosts[b].down && f.side[a] == f.side[b]
}

// split puts hosts on another side; 0 heals.
func (f *fabric) split(side int, hosts ...*memHost) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range hosts {
		f.side[h.ip] = side
	}
}

// crash takes the host off the network for good.
func (h *memHost) crash() {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	h.down = true
}

func (h *memHost) bind(addr string) (uint16, error) {
	a, err := netip.ParseAddrPort(addr)
	if err != nil {
		return 0, err
	}
	if a.Port() == 0 {
		h.port++
		return h.port, nil
	}
	return a.Port(), nil
}

func (h *memHost) Listen(_ context.Context, addr string) (net.Listener, error) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	port, err := h.bind(addr)
	if err != nil || h.listeners[port] != nil {
		return nil, syscall.EADDRINUSE
	}
	l := &memListener{h: h, port: port, queue: make(chan *memConn, 1000), done: make(chan struct{})}
	h.listeners[port] = l
	return l, nil
}

func (h *memHost) ListenPacket(_ context.Context, addr string) (net.PacketConn, error) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	port, err := h.bind(addr)
	if err != nil || h.sockets[port] != nil {
		return nil, syscall.EADDRINUSE
	}
	p := &memPacket{h: h, port: port, queue: make(chan memDatagram, 4096), done: make(chan struct{})}
	h.sockets[port] = p
	return p, nil
}

func (h *memHost) ListenBeacon(ctx context.Context) (net.PacketConn, error) {
	return h.ListenPacket(ctx, "0.0.0.0:5445")
}

func (h *memHost) BroadcastAddrs() []netip.AddrPort {
	return []netip.AddrPort{netip.MustParseAddrPort("255.255.255.255:5445")}
}

// delay is how long a packet takes.
func (f *fabric) delay() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latency
}

// set changes what a host can do.
func (h *memHost) set(of map[netip.Addr]bool, on bool) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	of[h.ip] = on
}

func (h *memHost) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return h.dial(ctx, addr, false)
}

func (h *memHost) DialSmall(ctx context.Context, addr string) (net.Conn, error) {
	return h.dial(ctx, addr, true)
}

func (h *memHost) dial(ctx context.Context, addr string, small bool) (net.Conn, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	h.f.mu.Lock()
	reach := h.f.reachLocked(h.ip, to.Addr())
	var l *memListener
	if reach {
		l = h.f.hosts[to.Addr()].listeners[to.Port()]
	}
	h.port++
	h.f.dials++
	from := netip.AddrPortFrom(h.ip, h.port)
	h.f.mu.Unlock()
	if !reach {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if !pause(ctx, 2*h.f.delay()) {
		return nil, ctx.Err()
	}
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	a, b := newMemConn(h.f, from, to), newMemConn(h.f, to, from)
	a.peer, b.peer = b, a
	a.small, b.small = small, small
	select {
	case l.queue <- b:
		return a, nil
	case <-l.done:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
}

type memListener struct {
	h     *memHost
	port  uint16
	queue chan *memConn
	done  chan struct{}
	once  sync.Once
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.h.f.mu.Lock()
		delete(l.h.listeners, l.port)
		l.h.f.mu.Unlock()
	})
	return nil
}

func (l *memListener) Addr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(l.h.ip, l.port))
}

type memDatagram struct {
	data []byte
	from netip.AddrPort
}

type memPacket struct {
	net.PacketConn // deadlines are not used
	h              *memHost
	port           uint16
	queue          chan memDatagram
	done           chan struct{}
	once           sync.Once
}

func (p *memPacket) LocalAddr() net.Addr {
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.h.ip, p.port))
}

func (p *memPacket) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case d := <-p.queue:
		return copy(b, d.data), net.UDPAddrFromAddrPort(d.from), nil
	case <-p.done:
		return 0, nil, net.ErrClosed
	}
}

func (p *memPacket) WriteTo(b []byte, to net.Addr) (int, error) {
	dest := to.(*net.UDPAddr).AddrPort()
	d := memDatagram{append([]byte(nil), b...), netip.AddrPortFrom(p.h.ip, p.port)}
	time.AfterFunc(p.h.f.delay(), func() {
		f := p.h.f
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.lose != nil && f.lose() || f.noUDP[p.h.ip] || f.noUDP[dest.Addr()] {
			return
		}
		for ip, h := range f.hosts {
			if ip != dest.Addr() && dest.Addr() != netip.MustParseAddr("255.255.255.255") || !f.reachLocked(p.h.ip, ip) {
				continue
			}
			if s := h.sockets[dest.Port()]; s != nil {
				select {
				case s.queue <- d:
				default:
				}
			}
		}
	})
	return len(b), nil
}

func (p *memPacket) Close() error {
	p.once.Do(func() {
		close(p.done)
		p.h.f.mu.Lock()
		delete(p.h.sockets, p.port)
		p.h.f.mu.Unlock()
	})
	return nil
}

// memConn is one end of a stream that never blocks a writer. What is under way
// when the hosts lose each other is lost, and so is all that follows.
type memConn struct {
	f             *fabric
	local, remote netip.AddrPort
	peer          *memConn
	small         bool

	mu       sync.Mutex
	pending  [][]byte // under way to this end; nil = the end
	buf      []byte
	eof      bool
	closed   bool
	lost     bool
	deadline time.Time
	change   chan struct{} // closed at a change
}

func newMemConn(f *fabric, local, remote netip.AddrPort) *memConn {
	return &memConn{f: f, local: local, remote: remote, change: make(chan struct{})}
}

func (c *memConn) changedLocked() {
	close(c.change)
	c.change = make(chan struct{})
}

func (c *memConn) Read(b []byte) (int, error) {
	for {
		c.mu.Lock()
		change, wait := c.change, time.Duration(0)
		switch {
		case c.closed:
			c.mu.Unlock()
			return 0, net.ErrClosed
		case !c.deadline.IsZero() && !c.deadline.After(time.Now()):
			c.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case len(c.buf) > 0:
			n := copy(b, c.buf)
			c.buf = c.buf[n:]
			c.mu.Unlock()
			return n, nil
		case c.eof:
			c.mu.Unlock()
			return 0, io.EOF
		case !c.deadline.IsZero():
			wait = time.Until(c.deadline)
		}
		c.mu.Unlock()
		if wait == 0 {
			<-change
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-change:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// send puts data on its way to the other end, in order.
func (c *memConn) send(data []byte) {
	p := c.peer
	p.mu.Lock()
	p.pending = append(p.pending, data)
	p.mu.Unlock()
	time.AfterFunc(c.f.delay(), func() {
		c.f.mu.Lock()
		reach := c.f.reachLocked(c.local.Addr(), c.remote.Addr())
		if !c.small && len(data) > smallSegment && c.f.narrow[c.local.Addr()] {
			reach = false // what follows waits for it
		}
		c.f.mu.Unlock()
		p.mu.Lock()
		defer p.mu.Unlock()
		data := p.pending[0]
		p.pending = p.pending[1:]
		if p.lost = p.lost || !reach; p.lost {
			return
		}
		if data == nil {
			p.eof = true
		}
		p.buf = append(p.buf, data...)
		p.changedLocked()
	})
}

func (c *memConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return 0, net.ErrClosed
	}
	if len(b) > 0 {
		c.send(append([]byte(nil), b...))
	}
	return len(b), nil
}

func (c *memConn) Close() error {
	c.mu.Lock()
	first := !c.closed
	if first {
		c.closed = true
		c.changedLocked()
	}
	c.mu.Unlock() // both ends may close at once, and each sends to the other
	if first {
		c.send(nil)
	}
	return nil
}

func (c *memConn) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(c.local) }
func (c *memConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.remote) }

func (c *memConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.deadline = t
	c.changedLocked()
	return nil
}

func (c *memConn) SetReadDeadline(t time.Time) error { return c.SetDeadline(t) }
func (c *memConn) SetWriteDeadline(time.Time) error  { return nil }
