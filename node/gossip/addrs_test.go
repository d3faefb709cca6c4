package gossip

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestRank(t *testing.T) {
	var all []localAddr
	for _, s := range []string{"127.0.0.1 lo", "::1 lo", "169.254.1.1 eth1", "fe80::1 eth0", "172.17.0.1 docker0", "2001:db8::1 eth0", "8.8.4.4 eth2", "192.168.1.2 eth0", "10.0.0.2 wg0", "10.0.0.2 eth9", "224.0.0.1 eth0"} {
		ip, iface, _ := strings.Cut(s, " ")
		all = append(all, localAddr{netip.MustParseAddr(ip), iface})
	}
	got := fmt.Sprint(rank(all, netip.MustParseAddr("10.0.0.2")))
	if want := "[10.0.0.2 192.168.1.2 8.8.4.4 2001:db8::1 172.17.0.1]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A tunnel that has the default route leads to its other end: the machine's neighbours reach it
// at its own network.
func TestRankBehindATunnel(t *testing.T) {
	all := []localAddr{{netip.MustParseAddr("10.8.0.6"), "tun0"}, {netip.MustParseAddr("8.8.4.4"), "eth1"}, {netip.MustParseAddr("10.34.0.33"), "eth0"}}
	if got := fmt.Sprint(rank(all, netip.MustParseAddr("10.8.0.6"))); got != "[10.34.0.33 10.8.0.6 8.8.4.4]" {
		t.Errorf("got %s", got)
	}
}

// routed is a network that knows from where others are reached.
type routed struct {
	namedNet
	from map[string]string
}

func (n routed) SourceTo(to netip.AddrPort) netip.Addr {
	a, _ := netip.ParseAddr(n.from[to.Addr().String()])
	return a
}

// The address by which a node joins comes first.
func TestJoinedBy(t *testing.T) {
	n := routed{namedNet{Net: newFabric(0).host(0)}, map[string]string{"10.1.1.2": "10.34.0.33", "10.9.9.9": "10.8.0.6", "10.7.7.7": "172.16.0.1", "127.0.0.1": "127.0.0.1"}}
	own := []string{"192.168.1.2:7", "10.34.0.33:7", "10.8.0.6:7"}
	for seeds, want := range map[string]string{
		"":                       "192.168.1.2:7 10.34.0.33:7 10.8.0.6:7",
		"10.9.9.9:5 two:5":       "10.8.0.6:7 192.168.1.2:7 10.34.0.33:7",
		"none:5 nonsense two:5":  "10.34.0.33:7 192.168.1.2:7 10.8.0.6:7",
		"10.7.7.7:5 127.0.0.1:5": "192.168.1.2:7 10.34.0.33:7 10.8.0.6:7",
		"10.6.6.6:5 10.1.1.2:1":  "10.34.0.33:7 192.168.1.2:7 10.8.0.6:7",
	} {
		if got := strings.Join(joinedBy(t.Context(), n, own, strings.Fields(seeds)), " "); got != want {
			t.Errorf("%q: got %s, want %s", seeds, got, want)
		}
	}
	if got := joinedBy(t.Context(), namedNet{Net: newFabric(0).host(0)}, own, []string{"10.1.1.2:5"}); strings.Join(got, " ") != strings.Join(own, " ") {
		t.Errorf("where that is not known: %v", got)
	}
}

// namedNet has addresses and names.
type namedNet struct {
	Net
	ips []netip.Addr
}

func (n namedNet) Addrs() ([]netip.Addr, error) { return slices.Clone(n.ips), nil }

func (n namedNet) Resolve(_ context.Context, host string) ([]netip.Addr, error) {
	switch host {
	case "two":
		return []netip.Addr{netip.MustParseAddr("10.1.1.1"), netip.MustParseAddr("10.1.1.2")}, nil
	case "none":
		return nil, nil
	}
	return nil, errors.New("no such host")
}

func TestAdvertised(t *testing.T) {
	host := newFabric(0).host(0)
	ips := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")}
	for _, c := range []struct {
		net              Net
		bound, advertise string
		want             string // or a piece of the error
	}{
		{host, "10.0.0.1:7", "", "[10.0.0.1:7]"},
		{host, "0.0.0.0:7", "", "--advertise"},
		{host, "0.0.0.0:7", "1.2.3.4:5", "[1.2.3.4:5]"},
		{host, "0.0.0.0:7", "1.2.3.4", "[1.2.3.4:7]"},
		{host, "0.0.0.0:7", "[2001:db8::2]:5", "[[2001:db8::2]:5]"},
		{host, "0.0.0.0:7", "0.0.0.0:5", "cannot reach"},
		{host, "0.0.0.0:7", "1.2.3.4:0", "port"},
		{host, "0.0.0.0:7", "two:5", "host names"},
		{namedNet{host, ips}, "0.0.0.0:7", "", "[10.0.0.1:7]"},
		{namedNet{host, ips}, "[::]:7", "", "[10.0.0.1:7 [2001:db8::1]:7]"},
		{namedNet{host, nil}, "0.0.0.0:7", "", "[127.0.0.1:7]"},
		{namedNet{host, slices.Repeat(ips, 20)}, "0.0.0.0:7", "", "[" + strings.TrimSpace(strings.Repeat("10.0.0.1:7 ", maxAddrs)) + "]"},
		{namedNet{host, nil}, "0.0.0.0:7", "two:5", "[10.1.1.1:5 10.1.1.2:5]"},
		{namedNet{host, nil}, "0.0.0.0:7", "none:5", "no address"},
		{namedNet{host, nil}, "0.0.0.0:7", "nobody:5", "no such host"},
		{namedNet{host, nil}, "0.0.0.0:7", "two:http", "HOST:PORT"},
	} {
		got, err := advertised(t.Context(), c.net, netip.MustParseAddrPort(c.bound), c.advertise)
		if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && fmt.Sprint(got) != c.want {
			t.Errorf("%s advertised as %q: %v, %v, want %s", c.bound, c.advertise, got, err, c.want)
		}
	}
}

func TestBroadcastAddress(t *testing.T) {
	for in, want := range map[string]string{"10.1.2.3/8": "10.255.255.255", "192.168.1.77/24": "192.168.1.255", "172.16.5.4/21": "172.16.7.255", "10.0.0.1/32": "", "10.0.0.1/31": "", "fd00::1/64": ""} {
		got, ok := lastAddr(netip.MustParsePrefix(in))
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s: %v", in, got)
		}
	}
}
