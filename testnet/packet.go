package testnet

import (
	"bytes"
	"net"
	"net/netip"
	"syscall"
	"time"
)

const (
	maxDatagram = 65507 // bytes, as for UDP over IPv4
	inboxSize   = 4096  // packets that a socket holds before it drops
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
	in   *inbox[datagram]
}

func newPacketConn(h *Host, port uint16) *packetConn {
	return &packetConn{host: h, addr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(h.ip, port)), in: newInbox[datagram](inboxSize)}
}

// ReadFrom implements net.PacketConn.
func (s *packetConn) ReadFrom(b []byte) (int, net.Addr, error) {
	p, err := s.in.take()
	if err != nil {
		return 0, nil, s.fail("read", err)
	}
	return copy(b, p.data), net.UDPAddrFromAddrPort(p.from), nil
}

// WriteTo implements net.PacketConn. It never blocks.
func (s *packetConn) WriteTo(b []byte, to net.Addr) (int, error) {
	dest, err := addrPort(to)
	switch {
	case err != nil:
		return 0, s.fail("write", err)
	case len(b) > maxDatagram:
		return 0, s.fail("write", syscall.EMSGSIZE)
	case s.in.isClosed():
		return 0, s.fail("write", net.ErrClosed)
	}
	s.host.net.send(s.host, dest, datagram{s.addr.AddrPort(), bytes.Clone(b)})
	return len(b), nil
}

// send decides the fate of a packet. It owns its data.
func (n *Network) send(from *Host, dest netip.AddrPort, p datagram) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counters.Packets.Count++
	n.counters.Packets.Bytes += int64(len(p.data))
	to := n.hosts[dest.Addr()]
	if to == nil || !n.reachLocked(from, to) {
		return
	}
	if d, ok := n.delayLocked(from, to); ok {
		time.AfterFunc(d, func() {
			n.mu.Lock()
			s := to.sockets[dest.Port()]
			n.mu.Unlock()
			if s != nil {
				s.in.put(p)
			}
		})
	}
}

// Close implements net.PacketConn.
func (s *packetConn) Close() error {
	free(s.host, s.host.sockets, s.addr.Port, s)
	_, err := s.in.shut()
	return s.fail("close", err)
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
	if err == nil {
		return nil
	}
	return &net.OpError{Op: op, Net: "udp", Source: s.addr, Err: err}
}

func addrPort(a net.Addr) (netip.AddrPort, error) {
	if u, ok := a.(*net.UDPAddr); ok {
		p := u.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port()), nil
	}
	return netip.ParseAddrPort(a.String())
}
