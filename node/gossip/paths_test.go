package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"zorilla/vicinity"
)

// calledHost is a host with a name that has several addresses.
type calledHost struct {
	*memHost
	ips []netip.Addr
}

func (h calledHost) Resolve(context.Context, string) ([]netip.Addr, error) { return h.ips, nil }

// One of five nodes tells an address first at which nobody reaches it, as one that has a VPN does:
// it is found at the second.
func TestEveryAddressThatIsToldIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(5 * time.Millisecond)
		cfg := memConfig(t, f, 0)
		cfg.Net, cfg.Advertise = calledHost{f.host(0), []netip.Addr{netip.MustParseAddr("10.9.9.9"), f.host(0).ip}}, "first:5444"
		first := startNode(t, cfg)
		if first.Addr() != "10.9.9.9:5444" {
			t.Fatalf("it tells %s first", first.Addr())
		}
		nodes := []*testNode{first}
		for i := 1; i < 5; i++ {
			nodes = append(nodes, startNode(t, memConfig(t, f, i, "10.0.0.1:5444")))
		}
		for _, n := range nodes {
			n.knows(t, 4, time.Minute)
		}
		time.Sleep(20 * time.Minute)
		for i, n := range nodes[1:] {
			n.rmu.Lock()
			if n.left[first.ID()] > 0 || n.rtts[first.ID()] == 0 {
				t.Errorf("node %d lost it %d times, and measured %v", i+1, n.left[first.ID()], n.rtts[first.ID()])
			}
			n.rmu.Unlock()
			if way := n.Way(first.ID()); way != (Way{}) {
				t.Errorf("node %d: %+v", i+1, way)
			}
		}
		// At which it is, the others know without trying the first again.
		start := time.Now()
		c, err := nodes[1].DialPeer(t.Context(), first.ID(), first.Self().Addrs, HTTP2)
		if err != nil || time.Since(start) >= dialStagger {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		c.Close()
		endAll(t, nodes)
	})
}

// A ping that got lost is sent again to where the member answers, not to the first address that it
// advertises.
func TestLostPingsAreSentAgainToTheAddressThatAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(5 * time.Millisecond)
		cfg := memConfig(t, f, 0)
		cfg.Net, cfg.Advertise = calledHost{f.host(0), []netip.Addr{netip.MustParseAddr("10.9.9.9"), f.host(0).ip}}, "first:5444"
		nodes := []*testNode{startNode(t, cfg), startNode(t, memConfig(t, f, 1, "10.0.0.1:5444"))}
		for _, n := range nodes {
			n.knows(t, 1, time.Minute)
		}
		time.Sleep(time.Minute)
		sent := 0
		f.mu.Lock()
		f.lose, f.dials = func() bool { sent++; return sent%4 == 0 }, 0
		f.mu.Unlock()
		time.Sleep(20 * time.Minute)
		f.mu.Lock()
		calls := f.dials
		f.lose = nil
		f.mu.Unlock()
		// 2 * 960 probes, half of which lose a packet; and exchanges of state, one in 30 s.
		t.Logf("%d calls by TCP", calls)
		if calls > 300 {
			t.Errorf("%d calls by TCP", calls)
		}
		endAll(t, nodes)
	})
}

// What is remembered of nodes with another address is bounded.
func TestOtherAddressesAreBounded(t *testing.T) {
	p := newPaths()
	for i := range 2 * maxAt {
		p.answered(vicinity.ID(fmt.Sprint(i)), "10.0.0.2:1", false)
	}
	p.answered("0", "10.0.0.3:1", false)
	if len(p.at) != maxAt || p.to("0", "10.0.0.1:1") != "10.0.0.3:1" {
		t.Errorf("%d are remembered; the first is at %s", len(p.at), p.to("0", "10.0.0.1:1"))
	}
}

// A slow connection is waited for when one with small packets fails at once, as where the segment
// size cannot be set.
func TestSlowConnectionWithoutSmallPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(900 * time.Millisecond)
		a, b := bareNode(t, f, 0), bareNode(t, f, 1)
		a.cfg.Net = noSmall{f.host(0)}
		c, err := a.DialPeer(t.Context(), b.ID(), []string{b.Addr()}, HTTP2)
		if err != nil || HasSmallPackets(c) {
			t.Fatalf("%v after the small one failed", err)
		}
		c.Close()
		a.transport.Shutdown()
		b.transport.Shutdown()
	})
}

// noSmall is a host that cannot limit the size of packets.
type noSmall struct{ *memHost }

func (noSmall) DialSmall(context.Context, string) (net.Conn, error) {
	return nil, errors.New("protocol not available")
}

// A node whose packets are dropped stays a member, and the others notice and say so once.
func TestMemberWithoutUDP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(5 * time.Millisecond)
		nodes := startMany(t, f, 4)
		for _, n := range nodes {
			n.knows(t, 3, time.Minute)
		}
		noUDP := nodes[3]
		for range noUDPAfter { // a connection alone says nothing of UDP
			c, err := nodes[0].transport.DialAddressTimeout(memberlist.Address{Addr: noUDP.Addr(), Name: string(noUDP.ID())}, tcpTimeout)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
		}
		if nodes[0].Way(noUDP.ID()).NoUDP {
			t.Error("connections are taken for probes")
		}
		f.host(3).set(f.noUDP, true)
		time.Sleep(10 * time.Minute)
		for i, n := range nodes[:3] {
			if n.left[noUDP.ID()] > 0 || !n.Way(noUDP.ID()).NoUDP || n.logged("answers by TCP and not by UDP") != 1 {
				t.Errorf("node %d: lost %d times, %+v, logged %d times", i, n.left[noUDP.ID()], n.Way(noUDP.ID()), n.logged("answers by TCP and not by UDP"))
			}
			if n.Way(nodes[(i+1)%3].ID()) != (Way{}) {
				t.Errorf("node %d takes another one for it", i)
			}
		}
		f.host(3).set(f.noUDP, false)
		time.Sleep(time.Minute)
		for i, n := range nodes {
			for _, other := range nodes {
				if n.Way(other.ID()).NoUDP {
					t.Errorf("node %d does not notice that packets pass again", i)
				}
			}
		}
		endAll(t, nodes)
	})
}

// Where large packets are dropped connections are made with small ones, also after the way has
// changed, and not where they pass.
func TestSmallPacketsWhereLargeOnesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(5 * time.Millisecond)
		nodes := startMany(t, f, 3)
		for _, n := range nodes {
			n.knows(t, 2, time.Minute)
		}
		dial := func(from, to *testNode, small bool, within time.Duration) {
			t.Helper()
			start := time.Now()
			c, err := from.DialPeer(t.Context(), to.ID(), []string{to.Addr()}, HTTP2)
			if err != nil {
				t.Fatal(err)
			}
			if HasSmallPackets(c) != small || time.Since(start) > within {
				t.Fatalf("small: %v, want %v, after %v", !small, small, time.Since(start))
			}
			c.Close()
		}
		dial(nodes[0], nodes[2], false, 100*time.Millisecond)
		before, err := nodes[0].DialPeer(t.Context(), nodes[2].ID(), []string{nodes[2].Addr()}, HTTP2)
		if err != nil {
			t.Fatal(err)
		}
		f.host(2).set(f.narrow, true)
		for _, c := range [][2]*testNode{{nodes[0], nodes[2]}, {nodes[2], nodes[0]}} {
			dial(c[0], c[1], true, 2*time.Second)
			time.Sleep(dialTimeout)
			dial(c[0], c[1], true, 100*time.Millisecond) // it is remembered
			if !c[0].Way(c[1].ID()).Small || c[0].logged("only small packets get through") != 1 {
				t.Errorf("%+v, logged %d times", c[0].Way(c[1].ID()), c[0].logged("only small packets get through"))
			}
		}
		if !closed(before) {
			t.Error("the connection from before is still open")
		}
		dial(nodes[0], nodes[1], false, 100*time.Millisecond)
		f.host(2).set(f.narrow, false)
		time.Sleep(smallFor + time.Second)
		dial(nodes[0], nodes[2], false, 100*time.Millisecond)
		endAll(t, nodes)
	})
}

// A node that is slow to answer is not taken for one that is behind a tunnel: the small packets
// that were faster once are not kept to.
func TestSlowNodeHasUsualPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(900 * time.Millisecond)
		a, b := bareNode(t, f, 0), bareNode(t, f, 1)
		// The usual connection is open after 1.8 s and made after 3.6 s, the small one is begun after 3.3 s.
		time.AfterFunc(3*time.Second, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.latency = time.Millisecond
		})
		c, err := a.DialPeer(t.Context(), b.ID(), []string{b.Addr()}, HTTP2)
		if err != nil || !HasSmallPackets(c) {
			t.Fatalf("%v; small packets: %v", err, HasSmallPackets(c))
		}
		c.Close()
		time.Sleep(dialTimeout)
		if a.paths.small(b.Addr()) {
			t.Error("it is remembered as one that has small packets")
		}
		a.transport.Shutdown()
		b.transport.Shutdown()
	})
}
