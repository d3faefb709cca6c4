package gossip

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"zorilla/node/trust"
)

// bareNode binds a node and runs its transport, but no memberlist.
func bareNode(t *testing.T, f *fabric, i int) *testNode {
	t.Helper()
	n := &testNode{recorder: newRecorder()}
	cfg := memConfig(t, f, i)
	cfg.Handler = n.recorder
	o, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Overlay = o
	o.transport.joining = o.ctx
	o.transport.running.Go(o.transport.readPackets)
	return n
}

// What memberlist expects of a transport.
func TestTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		a, b := bareNode(t, f, 0), bareNode(t, f, 1)
		to := memberlist.Address{Addr: b.Addr(), Name: string(b.ID())}

		ip, port, err := a.transport.FinalAdvertiseAddr("ignored", 1)
		if err != nil || ip.String() != "10.0.0.1" || port != 5444 || len(ip) != 4 {
			t.Fatalf("advertises %v %d %v", ip, port, err)
		}

		packet := string(a.transport.sift.seal([]byte("\x08packet")))
		if at, err := a.transport.WriteToAddress([]byte(packet), to); err != nil || !at.Equal(time.Now()) {
			t.Fatalf("sent at %v, %v", at, err)
		}
		sent := time.Now()
		p := <-b.transport.PacketCh()
		if string(p.Buf) != packet || p.From.String() != a.Addr() || p.Timestamp.Sub(sent) != time.Millisecond {
			t.Fatalf("got %q from %v at %v", p.Buf, p.From, p.Timestamp)
		}
		if _, err := a.transport.WriteTo([]byte("packet"), "nowhere"); err == nil {
			t.Error("a packet to nowhere")
		}

		for _, name := range []string{"", string(b.ID())} {
			c, err := a.transport.DialAddressTimeout(memberlist.Address{Addr: b.Addr(), Name: name}, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			state := frameOf(a.transport.sift, "\x06\x83\xa5Nodes\x00\xacUserStateLen\x00\xa4Join\xc2")
			go c.Write(state)
			s := <-b.transport.StreamCh()
			buf := make([]byte, len(state))
			if _, err := io.ReadFull(s, buf); err != nil || string(buf) != string(state) {
				t.Fatalf("got %q, %v", buf, err)
			}
			c.Close()
			if _, err := s.Read(buf); err != io.EOF {
				t.Fatalf("after the other end has closed: %v", err)
			}
			s.Close()
		}

		_, err = a.transport.DialAddressTimeout(memberlist.Address{Addr: b.Addr(), Name: string(a.ID())}, time.Second)
		if !errors.Is(err, trust.ErrWrongNode) {
			t.Errorf("another node than expected: %v", err)
		}
		if _, err = a.transport.DialTimeout(a.Addr(), time.Second); !errors.Is(err, errSelf) {
			t.Errorf("a node dials itself: %v", err)
		}
		f.split(1, f.host(1))
		start := time.Now()
		if _, err = a.transport.DialTimeout(b.Addr(), time.Second); err == nil || time.Since(start) != time.Second {
			t.Errorf("no way: %v after %v", err, time.Since(start))
		}
		f.split(0, f.host(1))

		// Shutdown ends what memberlist waits for.
		c, err := a.transport.DialAddressTimeout(to, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		s := <-b.transport.StreamCh()
		read := make(chan error, 2)
		for _, c := range []net.Conn{c, s} {
			go func() {
				_, err := c.Read(make([]byte, 1))
				read <- err
			}()
		}
		synctest.Wait()
		a.transport.Shutdown()
		b.transport.Shutdown()
		for range 2 {
			if err := <-read; err == nil {
				t.Error("reads after the end")
			}
		}
		if _, err := a.transport.DialAddressTimeout(to, time.Second); err == nil {
			t.Error("dials after the end")
		}
		if _, err := a.PeerListener().Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accepts after the end: %v", err)
		}
	})
}

// Whoever connects and says nothing, or nonsense, is dropped, and does not
// keep others out.
func TestSilentAndNoisyCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		a, b := bareNode(t, f, 0), bareNode(t, f, 1)
		c := f.host(2)
		var silent []net.Conn
		for range maxFromOne + 50 {
			conn, err := c.Dial(t.Context(), a.Addr())
			if err != nil {
				t.Fatal(err)
			}
			silent = append(silent, conn)
		}
		synctest.Wait()
		if n := a.Stats()["connections over the limit"]; n != 50 {
			t.Errorf("%d connections were over the limit", n)
		}
		start := time.Now()
		for _, conn := range silent {
			if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
				t.Fatalf("got %v", err)
			}
		}
		if d := time.Since(start); d > helloTimeout+10*time.Millisecond {
			t.Errorf("silent callers were kept for %v", d)
		}
		if n := a.Stats()["connections silent"]; n != maxFromOne {
			t.Errorf("%d connections were silent, want %d", n, maxFromOne)
		}
		conn, err := c.Dial(t.Context(), a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
		for err == nil {
			_, err = conn.Read(make([]byte, 100))
		}
		gone, err := c.Dial(t.Context(), a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		gone.Write([]byte{22, 3, 1}) // the beginning of a handshake
		gone.Close()
		synctest.Wait()
		time.Sleep(time.Second)
		if s := a.Stats(); s["handshakes failed"] != 1 || s["connections broken"] != 1 {
			t.Errorf("%d handshakes failed, and %d connections broke", s["handshakes failed"], s["connections broken"])
		}
		peer, err := b.DialPeer(t.Context(), a.ID(), []string{"10.0.0.3:1", a.Addr()}, HTTP2)
		if err != nil {
			t.Fatal(err)
		}
		if got := peer.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != HTTP2 {
			t.Errorf("speaks %q", got)
		}
		taken, err := a.PeerListener().Accept()
		if err != nil {
			t.Fatal(err)
		}
		if id, err := trust.PeerID(taken.(*tls.Conn).ConnectionState()); err != nil || id != b.ID() {
			t.Errorf("caller is %v, %v", id, err)
		}
		taken.Close()
		peer.Close()

		// Nobody takes connections any more.
		a.PeerListener().Close()
		late, err := b.DialPeer(t.Context(), a.ID(), []string{a.Addr()}, HTTP2)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := late.Read(make([]byte, 1)); err == nil {
			t.Error("a closed listener keeps connections")
		}
		late.Close()
		a.transport.Shutdown()
		b.transport.Shutdown()
	})
}

// Half-open handshakes, as many as somebody can make, keep nobody out: neither
// from another address nor from the same.
func TestHalfOpenConnectionsKeepNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 75 * time.Millisecond // so that a handshake takes longer than it takes others to fill the room
		f := newFabric(delay)
		a := bareNode(t, f, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var knocking sync.WaitGroup
		for k := range 360 {
			from := f.host(10 + k%3)
			knocking.Go(func() {
				pause(ctx, time.Duration(k)*2*delay/360)
				for ctx.Err() == nil { // 2400 in a second
					if conn, err := from.Dial(ctx, a.Addr()); err == nil {
						conn.Write([]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"))
						defer conn.Close()
					}
				}
			})
		}
		time.Sleep(2 * time.Second)
		if n := a.connLimit.Len(); n <= maxFromOne || n > maxHandshakes {
			t.Errorf("%d connections are half open, want more than those of one address, and up to %d", n, maxHandshakes)
		}
		for i, at := range []int{1, 10} { // 10 is the address of somebody who knocks
			cfg := memConfig(t, f, at)
			cfg.Listen, cfg.Handler = fmt.Sprintf("10.0.0.%d:%d", at+1, 6000+i), newRecorder()
			b, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Listen(t.Context()); err != nil {
				t.Fatal(err)
			}
			c, err := b.DialPeer(t.Context(), a.Self().ID, []string{a.Addr()}, HTTP2)
			if err != nil {
				t.Fatalf("from host %d: %v", at, err)
			}
			c.Close()
			b.Close()
		}
		if n := a.Stats()["connections over the limit"]; n < 1000 {
			t.Errorf("%d connections were told to be over the limit", n)
		}
		cancel()
		knocking.Wait()
		a.transport.Shutdown()
	})
}

// As many members as come at once from behind one address get in.
func TestManyMembersOfOneAddressGetInAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(100 * time.Millisecond)
		a, b := bareNode(t, f, 0), bareNode(t, f, 1)
		go func() {
			for {
				c, err := a.PeerListener().Accept()
				if err != nil {
					return
				}
				defer c.Close()
			}
		}()
		var dialing sync.WaitGroup
		for range maxFromOne {
			dialing.Go(func() {
				c, err := b.DialPeer(t.Context(), a.ID(), []string{a.Addr()}, HTTP2)
				if err != nil {
					t.Error(err)
					return
				}
				c.Close()
			})
		}
		dialing.Wait()
		a.transport.Shutdown()
		b.transport.Shutdown()
	})
}

func TestDialPeerDoesNotWaitForASilentAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		a, b := bareNode(t, f, 0), bareNode(t, f, 1)
		start := time.Now()
		c, err := a.DialPeer(t.Context(), b.ID(), []string{"10.9.9.9:1", b.Addr(), "10.9.9.8:1"}, HTTP2)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if d := time.Since(start); d < dialStagger || d > 2*dialStagger {
			t.Errorf("took %v", d)
		}
		if _, err := a.DialPeer(t.Context(), b.ID(), []string{"10.9.9.9:1", "host:1"}, HTTP2); err == nil || time.Since(start) > 3*dialTimeout {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		a.transport.Shutdown()
		b.transport.Shutdown()
	})
}

// A member that opens connections without end has no more of them than its share, and the newest
// go: others are not kept out, and it can come again when it has closed some.
func TestConnectionsOfOneMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		a, evil, good := bareNode(t, f, 0), bareNode(t, f, 1), bareNode(t, f, 2)
		taken := make(chan net.Conn, 1000)
		go func() {
			for {
				c, err := a.PeerListener().Accept()
				if err != nil {
					return
				}
				taken <- c
			}
		}()
		go func() {
			for s := range a.transport.StreamCh() {
				taken <- s
			}
		}()
		dial := func(n *testNode, proto string) net.Conn {
			c, err := n.DialPeer(t.Context(), a.ID(), []string{a.Addr()}, proto)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			time.Sleep(10 * time.Millisecond)
			return c
		}
		var conns []net.Conn
		for range maxStreams + 5 {
			conns = append(conns, dial(evil, protoGossip))
		}
		if len(taken) != maxStreams {
			t.Fatalf("%d streams of one member, want %d", len(taken), maxStreams)
		}
		for range 2 * maxConns {
			conns = append(conns, dial(evil, HTTP2))
		}
		if n := a.Stats()["connections too many"]; len(taken) != maxConns || n != 5+2*maxConns-(maxConns-maxStreams) {
			t.Fatalf("%d connections of one member, %d too many", len(taken), n)
		}
		conns = append(conns, dial(good, HTTP2), dial(good, protoGossip))
		if len(taken) != maxConns+2 {
			t.Error("another member is kept out")
		}
		for range maxConns + 2 {
			(<-taken).Close()
		}
		conns = append(conns, dial(evil, HTTP2), dial(evil, protoGossip))
		a.callers.mu.Lock()
		members := len(a.callers.of)
		a.callers.mu.Unlock()
		if len(taken) != 2 || members != 1 {
			t.Errorf("%d connections when the others are closed, of %d members", len(taken), members)
		}
		for _, c := range conns {
			c.Close()
		}
		for _, n := range []*testNode{a, evil, good} {
			n.transport.Shutdown()
		}
		close(a.transport.streams)
	})
}
