package netpolicy

import (
	"net/netip"
	"strings"
	"testing"

	"zorilla/jobs/cgroup"
)

func addrs(texts string) (list []netip.Addr) {
	for t := range strings.FieldsSeq(texts) {
		list = append(list, netip.MustParseAddr(t))
	}
	return list
}

// What is of the machine itself stays so, whoever names it, and what is nobody's address is
// none of a peer.
func TestEntries(t *testing.T) {
	peers := addrs("10.0.0.2 ::ffff:10.0.0.3 fd00::2 10.0.0.1 127.0.0.5 ::1 0.0.0.0 :: 224.0.0.1 ff02::1 255.255.255.255 fe80::1 169.254.169.254 10.0.0.2")
	got := map[string]uint32{}
	for _, e := range entries(peers, addrs("127.0.0.1 10.0.0.1 fd00::1 fe80::7 ::1")) {
		if _, twice := got[netip.AddrFrom16(e.addr).Unmap().String()]; twice {
			t.Errorf("%v comes twice", e)
		}
		got[netip.AddrFrom16(e.addr).Unmap().String()] = e.what
	}
	want := map[string]uint32{"::1": own, "127.0.0.1": own, "10.0.0.1": own, "fd00::1": own, "10.0.0.2": other, "10.0.0.3": other, "fd00::2": other}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	for a, what := range want {
		if g, ok := got[a]; !ok || g != what {
			t.Errorf("%s: got %d (%v), want %d", a, g, ok, what)
		}
	}
}

func TestTooManyAddresses(t *testing.T) {
	its := cgroup.Place{Plain: t.TempDir(), Around: t.TempDir()}
	for _, f := range []func([]netip.Addr) error{
		func(list []netip.Addr) error { return new(Keeper).Change(&its, list) },
		func(list []netip.Addr) error { return new(Keeper).Admit(&its, "w", list) },
	} {
		if err := f(make([]netip.Addr, MaxAddrs+1)); err == nil || !strings.Contains(err.Error(), "at most") {
			t.Errorf("got %v", err)
		}
	}
}

func TestKeepsGroups(t *testing.T) {
	for release, want := range map[string]bool{"5.14.0-1-amd64": false, "5.15": true, "5.15.0-rc1": true, "6.1.0": true, "4.19": false, "": false} {
		if got := keepsGroups(false, release); got != want || !keepsGroups(true, release) {
			t.Errorf("%q: got %t", release, got)
		}
	}
}
