package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Net gives a node its sockets. Addresses are "host:port"; net.Addr values that
// come back print as "IP:port".
//
// A Net may also have the methods Resolve, Addrs, ListenBeacon and
// BroadcastAddrs of RealNet. Without them host names are refused, a node that
// listens everywhere must be told what to advertise, and there are no beacons.
type Net interface {
	Listen(ctx context.Context, addr string) (net.Listener, error)
	ListenPacket(ctx context.Context, addr string) (net.PacketConn, error)
	Dial(ctx context.Context, addr string) (net.Conn, error)
}

type resolver interface {
	Resolve(ctx context.Context, host string) ([]netip.Addr, error)
}

type localAddrs interface {
	Addrs() ([]netip.Addr, error)
}

type sources interface {
	// SourceTo returns the address that packets to another one come from; the zero Addr = it is
	// not known.
	SourceTo(to netip.AddrPort) netip.Addr
}

type beaconNet interface {
	ListenBeacon(ctx context.Context) (net.PacketConn, error)
	BroadcastAddrs() []netip.AddrPort
}

const (
	beaconPort = 5445
	socketRoom = 2 << 20 // bytes of packets that wait to be read
)

// RealNet is the machine's own network.
type RealNet struct{}

// Listen opens a TCP listener.
func (RealNet) Listen(ctx context.Context, addr string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
}

// ListenPacket opens a UDP socket.
func (RealNet) ListenPacket(ctx context.Context, addr string) (net.PacketConn, error) {
	c, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp", addr)
	if u, ok := c.(*net.UDPConn); ok {
		// Less room only means that a burst loses packets.
		_ = u.SetReadBuffer(socketRoom)
	}
	return c, err
}

// Dial opens a TCP connection within 5 seconds.
func (RealNet) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return dialer().DialContext(ctx, "tcp", addr)
}

// DialSmall is as Dial, and limits the packets in both directions to smallSegment bytes and headers.
func (RealNet) DialSmall(ctx context.Context, addr string) (net.Conn, error) {
	d := dialer()
	d.ControlContext = func(_ context.Context, _, _ string, c syscall.RawConn) error {
		var serr error
		err := c.Control(func(fd uintptr) { serr = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, smallSegment) })
		return errors.Join(err, serr)
	}
	return d.DialContext(ctx, "tcp", addr)
}

func dialer() *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 4,
	}}
}

// Resolve looks up a host name.
func (RealNet) Resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, err
}

// Addrs returns the addresses at which other machines may find this one, best
// first: that of the default route, then private ones, those of private networks over others
// (VPNs), also if one has the default route, and others; those of interfaces that belong to
// virtual machines and containers come last.
func (RealNet) Addrs() ([]netip.Addr, error) {
	ifaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	var all []localAddr
	for _, i := range ifaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // it went away
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				all = append(all, localAddr{p.Addr().Unmap(), i.Name})
			}
		}
	}
	return rank(all, defaultSource()), nil
}

// defaultSource returns the address that packets to the internet come from.
// Nothing is sent.
func defaultSource() netip.Addr {
	return RealNet{}.SourceTo(netip.MustParseAddrPort("192.0.2.1:9")) // an address for documentation
}

// SourceTo returns the address that packets to another one come from. Nothing is sent.
func (RealNet) SourceTo(to netip.AddrPort) netip.Addr {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close()
	a, _ := c.LocalAddr().(*net.UDPAddr)
	return a.AddrPort().Addr().Unmap()
}

// ListenBeacon opens the socket for beacons, which all nodes of a machine
// share: each gets every broadcast.
func (RealNet) ListenBeacon(ctx context.Context) (net.PacketConn, error) {
	return listenShared(ctx, net.JoinHostPort("0.0.0.0", strconv.Itoa(beaconPort)))
}

func listenShared(ctx context.Context, addr string) (net.PacketConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err1, err2 error
		err := c.Control(func(fd uintptr) {
			err1 = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
			err2 = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, err1, err2)
	}}
	return lc.ListenPacket(ctx, "udp4", addr)
}

// BroadcastAddrs returns where beacons go: the local network of the default
// route, and the subnet of every interface. The interface's broadcast flag does
// not count: some kinds deliver broadcasts without having it.
func (RealNet) BroadcastAddrs() []netip.AddrPort {
	all := []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), beaconPort)}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return all
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || p.Addr().IsLoopback() {
			continue
		}
		if last, ok := lastAddr(p); ok {
			all = append(all, netip.AddrPortFrom(last, beaconPort))
		}
	}
	return all
}

// lastAddr returns the broadcast address of an IPv4 subnet that has one.
func lastAddr(p netip.Prefix) (netip.Addr, bool) {
	if !p.Addr().Is4() || p.Bits() >= 31 {
		return netip.Addr{}, false
	}
	b := p.Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(b), true
}
