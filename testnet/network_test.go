package testnet

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const (
	there = 3 * time.Millisecond // from the host with the lower address
	back  = 5 * time.Millisecond
)

// twoWays is a latency that differs by direction.
func twoWays(a, b *Host) time.Duration {
	if a.ip.Less(b.ip) {
		return there
	}
	return back
}

// duo is a network of two hosts.
func duo(cfg Config) (*Network, *Host, *Host) {
	if cfg.Latency == nil {
		cfg.Latency = twoWays
	}
	n := NewNetwork(cfg)
	return n, n.Host("10.0.0.1"), n.Host("10.0.0.2")
}

func listenPacket(t *testing.T, h *Host, port int) net.PacketConn {
	t.Helper()
	s, err := h.ListenPacket(t.Context(), h.Addr(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func udp(h *Host, port int) net.Addr {
	return net.UDPAddrFromAddrPort(netip.MustParseAddrPort(h.Addr(port)))
}

// drain reads packets until none arrives for a second.
func drain(t *testing.T, s net.PacketConn) []string {
	t.Helper()
	var got []string
	b := make([]byte, 100)
	for {
		s.SetReadDeadline(time.Now().Add(time.Second))
		n, _, err := s.ReadFrom(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return got
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(b[:n]))
	}
}

func TestPacketLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := duo(Config{})
		pa, pb := listenPacket(t, a, 5444), listenPacket(t, b, 5444)
		start, data := time.Now(), []byte("hello")
		if _, err := pa.WriteTo(data, udp(b, 5444)); err != nil {
			t.Fatal(err)
		}
		data[0] = 'j' // the packet is a copy
		buf := make([]byte, 3)
		k, from, err := pb.ReadFrom(buf)
		if err != nil || string(buf[:k]) != "hel" || from.String() != "10.0.0.1:5444" {
			t.Errorf("ReadFrom = %q, %v, %v", buf[:k], from, err)
		}
		if got := time.Since(start); got != there {
			t.Errorf("the packet took %v, want %v", got, there)
		}
		start = time.Now()
		pb.WriteTo([]byte("back"), from)
		pa.ReadFrom(buf)
		if got := time.Since(start); got != back {
			t.Errorf("the answer took %v, want %v", got, back)
		}
		if got := n.RTT(a, b); got != there+back {
			t.Errorf("RTT = %v, want %v", got, there+back)
		}
		if c := n.Counters(); c.Packets != (Amount{2, 9}) {
			t.Errorf("counters: %+v", c)
		}
	})
}

func TestPacketInboxAndNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := duo(Config{})
		pa, pb := listenPacket(t, a, 1), listenPacket(t, b, 2)
		for range inboxSize + 3 {
			pa.WriteTo([]byte("in"), udp(b, 2))
		}
		pa.WriteTo([]byte("x"), udp(b, 99))
		pa.WriteTo([]byte("x"), &net.UDPAddr{IP: net.IPv4(10, 9, 9, 9), Port: 2})
		time.Sleep(time.Second)
		if got := len(drain(t, pb)); got != inboxSize {
			t.Errorf("received %d packets of %d, want %d", got, inboxSize+3, inboxSize)
		}
		want := Counters{Packets: Amount{inboxSize + 5, 2*(inboxSize+3) + 2}}
		if c := n.Counters(); c != want {
			t.Errorf("counters %+v, want %+v", c, want)
		}
		if _, err := pa.WriteTo(make([]byte, 70_000), udp(b, 2)); !errors.Is(err, syscall.EMSGSIZE) {
			t.Errorf("70,000 bytes in a packet: %v", err)
		}
	})
}

func TestPacketPartitionCrashRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := duo(Config{})
		pa, pb := listenPacket(t, a, 1), listenPacket(t, b, 2)
		send := func(s string) { pa.WriteTo([]byte(s), udp(b, 2)) }
		n.Partition([]*Host{a})
		send("cut")
		pa.WriteTo([]byte("self"), udp(a, 1))
		if got := join(drain(t, pa)); got != "self" {
			t.Errorf("a partition must not cut a host off from itself: got %q", got)
		}
		n.Heal()
		send("healed")
		if got := join(drain(t, pb)); got != "healed" {
			t.Errorf("after Heal received %q", got)
		}
		send("lost under way")
		n.Crash(b)
		if _, _, err := pb.ReadFrom(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read at a crashed host: %v", err)
		}
		if _, err := b.ListenPacket(t.Context(), b.Addr(2)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("listen at a crashed host: %v", err)
		}
		send("down")
		time.Sleep(time.Second)
		n.Restart(b)
		pb = listenPacket(t, b, 2)
		send("up again")
		if got := join(drain(t, pb)); got != "up again" {
			t.Errorf("after Restart received %q", got)
		}
	})
}

func TestPacketDeadlineAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, _ := duo(Config{})
		s := listenPacket(t, a, 0)
		start := time.Now()
		s.SetReadDeadline(start.Add(time.Hour))
		time.AfterFunc(time.Minute, func() { s.SetReadDeadline(start.Add(2 * time.Minute)) })
		_, _, err := s.ReadFrom(nil)
		var timeout net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("read past the deadline: %v", err)
		}
		if got := time.Since(start); got != 2*time.Minute {
			t.Errorf("woken after %v, want 2m", got)
		}
		s.SetDeadline(time.Time{})
		time.AfterFunc(time.Minute, func() { s.Close() })
		if _, _, err := s.ReadFrom(nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read from a closed socket: %v", err)
		}
		if _, err := s.WriteTo(nil, s.LocalAddr()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write to a closed socket: %v", err)
		}
		if err := s.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second close: %v", err)
		}
	})
}

func TestListenAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, _ := duo(Config{})
		for _, address := range []string{"10.0.0.1:5444", ":5445", "0.0.0.0:5446"} {
			l, err := a.Listen(t.Context(), address)
			if err != nil {
				t.Fatalf("%s: %v", address, err)
			}
			defer l.Close()
			if l.Addr().(*net.TCPAddr).IP.String() != "10.0.0.1" {
				t.Errorf("%s gives the address %v", address, l.Addr())
			}
		}
		if _, err := a.Listen(t.Context(), ":5444"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a port taken: %v", err)
		}
		if _, err := a.Listen(t.Context(), "10.0.0.2:5444"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("the address of another: %v", err)
		}
		if _, err := a.ListenPacket(t.Context(), "10.0.0.1"); err == nil {
			t.Error("an address without a port was accepted")
		}
		s, err := a.ListenPacket(t.Context(), ":5444") // packets have their own ports
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if s, err = a.ListenPacket(t.Context(), ":5444"); err != nil {
			t.Fatalf("after Close: %v", err)
		}
		s.Close()
	})
}

func join(s []string) string {
	var b []byte
	for _, v := range s {
		b = append(b, v...)
	}
	return string(b)
}
