package gossip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// maxAddrs bounds the addresses of one member.
const maxAddrs = 8

type localAddr struct {
	addr  netip.Addr
	iface string
}

// What interfaces of virtual machines and containers are called, and those of private networks
// over others, whose members alone reach their addresses.
var (
	virtual = []string{"docker", "br-", "veth", "virbr", "lxc", "lxd", "cni", "flannel", "vmnet", "vboxnet", "podman"}
	tunnels = []string{"tun", "tap", "utun", "wg", "ppp", "tailscale", "zt", "nordlynx", "proton", "ipsec"}
)

// rank sorts addresses by how likely other machines reach them, and leaves out
// those that cannot be reached at all.
func rank(all []localAddr, first netip.Addr) []netip.Addr {
	class := func(a localAddr) int {
		begins := func(prefix string) bool { return strings.HasPrefix(a.iface, prefix) }
		private := a.addr.Is4() && a.addr.IsPrivate()
		switch {
		case slices.ContainsFunc(virtual, begins):
			return 5
		case slices.ContainsFunc(tunnels, begins): // also if it has the default route
			return 2
		case a.addr == first:
			return 0
		case private:
			return 1
		case a.addr.Is4():
			return 3
		}
		return 4
	}
	all = slices.DeleteFunc(all, func(a localAddr) bool {
		return a.addr.IsLoopback() || !a.addr.IsGlobalUnicast()
	})
	slices.SortStableFunc(all, func(a, b localAddr) int { return cmp.Compare(class(a), class(b)) })
	var out []netip.Addr
	for _, a := range all {
		if !slices.Contains(out, a.addr) {
			out = append(out, a.addr)
		}
	}
	return out
}

// advertised returns where others find a node that listens at bound: what the
// owner says, else the bound address itself, else all of the machine's.
func advertised(ctx context.Context, n Net, bound netip.AddrPort, advertise string) ([]string, error) {
	if advertise != "" {
		return advertisedBy(ctx, n, bound, advertise)
	}
	if !bound.Addr().IsUnspecified() {
		return []string{bound.String()}, nil
	}
	l, ok := n.(localAddrs)
	if !ok {
		return nil, fmt.Errorf("listen %s: this network does not tell its addresses: name one with --advertise", bound)
	}
	ips, err := l.Addrs()
	if err != nil {
		return nil, err
	}
	if bound.Addr().Is4() {
		ips = slices.DeleteFunc(ips, func(a netip.Addr) bool { return !a.Is4() })
	}
	if len(ips) == 0 {
		ips = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})} // a machine without a network
	}
	var out []string
	for _, ip := range ips[:min(len(ips), maxAddrs)] {
		out = append(out, netip.AddrPortFrom(ip, bound.Port()).String())
	}
	return out, nil
}

// joinedBy puts the address first from which the node reaches the first of those that it is to
// join, if that is among its own: who is joined reaches it there, whatever has the default route.
func joinedBy(ctx context.Context, n Net, own, seeds []string) []string {
	from, ok := n.(sources)
	if !ok {
		return own
	}
	for _, seed := range seeds {
		all, err := resolve(ctx, n, seed)
		if err != nil {
			continue
		}
		for _, a := range all {
			source := from.SourceTo(a)
			i := slices.IndexFunc(own, func(s string) bool {
				o, err := netip.ParseAddrPort(s)
				return err == nil && o.Addr() == source
			})
			if i >= 0 && !source.IsLoopback() {
				return slices.Concat(own[i:i+1], own[:i], own[i+1:])
			}
		}
	}
	return own
}

func advertisedBy(ctx context.Context, n Net, bound netip.AddrPort, advertise string) ([]string, error) {
	if !strings.Contains(advertise, ":") {
		advertise = net.JoinHostPort(advertise, strconv.Itoa(int(bound.Port())))
	}
	addrs, err := resolve(ctx, n, advertise)
	if err != nil {
		return nil, fmt.Errorf("--advertise: %w", err)
	}
	var out []string
	for _, a := range addrs[:min(len(addrs), maxAddrs)] {
		if a.Addr().IsUnspecified() {
			return nil, fmt.Errorf("--advertise %s: others cannot reach this address: name one of this machine", advertise)
		}
		out = append(out, a.String())
	}
	return out, nil
}

// resolve turns host:port into addresses. There is at least one without an
// error.
func resolve(ctx context.Context, n Net, hostPort string) ([]netip.AddrPort, error) {
	if a, err := netip.ParseAddrPort(hostPort); err == nil {
		if a.Port() == 0 {
			return nil, fmt.Errorf("address %.80q: want a port from 1 to 65535", hostPort)
		}
		return []netip.AddrPort{netip.AddrPortFrom(a.Addr().Unmap(), a.Port())}, nil
	}
	host, port, err := net.SplitHostPort(hostPort)
	number, perr := strconv.ParseUint(port, 10, 16)
	if err != nil || perr != nil || host == "" || number == 0 {
		return nil, fmt.Errorf("address %.80q: want HOST:PORT", hostPort)
	}
	r, ok := n.(resolver)
	if !ok {
		return nil, fmt.Errorf("address %.80q: this network knows no host names: want IP:PORT", hostPort)
	}
	ips, err := r.Resolve(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("address %.80q: %w", hostPort, err)
	}
	if len(ips) == 0 {
		return nil, fmt.Errorf("address %.80q: the name has no address", hostPort)
	}
	var out []netip.AddrPort
	for _, ip := range ips {
		out = append(out, netip.AddrPortFrom(ip, uint16(number)))
	}
	return out, nil
}

// addrPortOf reads the address of a socket or of its other end.
func addrPortOf(a net.Addr) (netip.AddrPort, error) {
	if a == nil {
		return netip.AddrPort{}, errors.New("no address")
	}
	p, err := netip.ParseAddrPort(a.String())
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port()), err
}
