package testnet

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

const (
	maxDatagram = 65507 // bytes, as for UDP over IPv4
	inbox       = 4096  // packets that a socket holds before it drops
)

// datagram is one packet.
type datagram struct {
	from netip.AddrPort
	data []byte
}

// packetConn is a host's packet socket: a net.PacketConn.
type packetConn struct {
	host *Host
	addr *net.UDPAddr

	in     gate // guards what follows
	queue  []datagram
	closed bool
}

func newPacketConn(h *Host, port uint16) *packetConn {
	s := &packetConn{host: h, addr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(h.ip, port))}
	s.in.init()
	return s
}

// ReadFrom implements net.PacketConn.
func (s *packetConn) ReadFrom(b []byte) (int, net.Addr, error) {
	s.in.Lock()
	defer s.in.Unlock()
	for {
		switch {
		case s.closed:
			return 0, nil, s.fail("read", net.ErrClosed)
		case s.in.expired():
			return 0, nil, s.fail("read", os.ErrDeadlineExceeded)
		case len(s.queue) > 0:
			p := s.queue[0]
			s.queue[0] = datagram{}
			s.queue = s.queue[1:]
			return copy(b, p.data), net.UDPAddrFromAddrPort(p.from), nil
		}
		if err := s.in.wait(); err != nil {
			return 0, nil, s.fail("read", err)
		}
	}
}

// WriteTo implements net.PacketConn. It never blocks.
func (s *packetConn) WriteTo(b []byte, to net.Addr) (int, error) {
	dest, err := addrPort(to)
	if err != nil {
		return 0, s.fail("write", err)
	}
	if len(b) > maxDatagram {
		return 0, s.fail("write", syscall.EMSGSIZE)
	}
	s.in.Lock()
	closed := s.closed
	s.in.Unlock()
	if closed {
		return 0, s.fail("write", net.ErrClosed)
	}
	s.host.net.send(s.host, dest, datagram{s.addr.AddrPort(), bytes.Clone(b)})
	return len(b), nil
}

// send decides the fate of a packet. It owns its data.
func (n *Network) send(from *Host, dest netip.AddrPort, p datagram) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counters.Packets++
	n.counters.PacketBytes += int64(len(p.data))
	if n.cfg.Loss > 0 && n.rnd.Float64() < n.cfg.Loss {
		return
	}
	if to := n.hosts[dest.Addr()]; to != nil && n.reachLocked(from, to) {
		time.AfterFunc(n.cfg.Latency(from, to), func() {
			n.mu.Lock()
			s := to.sockets[dest.Port()]
			n.mu.Unlock()
			if s != nil {
				s.put(p)
			}
		})
	}
}

// put lets a packet arrive; a full inbox drops it.
func (s *packetConn) put(p datagram) {
	s.in.Lock()
	defer s.in.Unlock()
	if !s.closed && len(s.queue) < inbox {
		s.queue = append(s.queue, p)
		s.in.changed.Broadcast()
	}
}

// Close implements net.PacketConn.
func (s *packetConn) Close() error {
	h := s.host
	h.net.mu.Lock()
	if port := uint16(s.addr.Port); h.sockets[port] == s {
		delete(h.sockets, port)
	}
	h.net.mu.Unlock()
	if !s.shut() {
		return s.fail("close", net.ErrClosed)
	}
	return nil
}

// shut closes the socket itself; it reports whether it was open.
func (s *packetConn) shut() bool {
	s.in.Lock()
	defer s.in.Unlock()
	was := !s.closed
	s.closed = true
	s.queue = nil
	s.in.changed.Broadcast()
	return was
}

// LocalAddr implements net.PacketConn.
func (s *packetConn) LocalAddr() net.Addr { return s.addr }

// SetDeadline implements net.PacketConn.
func (s *packetConn) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// SetReadDeadline implements net.PacketConn.
func (s *packetConn) SetReadDeadline(t time.Time) error {
	s.in.setDeadline(t)
	return nil
}

// SetWriteDeadline implements net.PacketConn; writes do not wait.
func (s *packetConn) SetWriteDeadline(time.Time) error { return nil }

func (s *packetConn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "udp", Source: s.addr, Err: err}
}

func addrPort(a net.Addr) (netip.AddrPort, error) {
	if u, ok := a.(*net.UDPAddr); ok {
		p := u.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port()), nil
	}
	return netip.ParseAddrPort(a.String())
}
