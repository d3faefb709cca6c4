package gossip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/node/trust"
	"zorilla/vicinity"
)

const patience = 30 * time.Second

func TestThreeNodesOverTheRealNetwork(t *testing.T) {
	var nodes []*testNode
	var seeds []string
	for i := range 3 {
		n := startNode(t, Config{Creds: testCreds(t, 1, i), Listen: fmt.Sprintf("127.0.0.%d:0", i+1), Seeds: seeds, Beacons: true,
			Self: vicinity.Member{Name: fmt.Sprint("node", i), Site: "here", Slots: 4, Memory: 1 << 30, Platform: "linux/amd64", Enforces: []string{"landlock"}, Version: 1}})
		nodes, seeds = append(nodes, n), []string{n.Addr()}
	}
	for _, n := range nodes {
		n.knows(t, 2, patience)
		for _, other := range nodes {
			if m, ok := n.Member(other.ID()); other != n && (!ok || fmt.Sprint(m) != fmt.Sprint(other.Self())) {
				t.Fatalf("%s sees %v, want %v", n.ID(), m, other.Self())
			}
		}
		if len(n.Members()) != 2 || len(n.Seeds()) != 2 {
			t.Fatalf("members %v, seeds %v", n.Members(), n.Seeds())
		}
	}
	a, b, c := nodes[0], nodes[1], nodes[2]

	big := strings.Repeat("x", MaxPayload)
	if err := a.Send(c.ID(), 7, []byte(big)); err != nil {
		t.Fatal(err)
	}
	c.await(t, "a message", patience, func() bool { return slices.Contains(c.messages, message{a.ID(), 7, big}) })
	if err := a.Send(c.ID(), 7, []byte(big+"x")); err == nil {
		t.Error("an oversized message was sent")
	}
	if err := a.Send(testCreds(t, 1, 99).ID(), 7, nil); !errors.Is(err, ErrNotMember) {
		t.Errorf("message to a stranger: %v", err)
	}
	a.await(t, "round trips", patience, func() bool { return a.rtts[b.ID()] > 0 })

	peersTalk(t, a, c)

	b.end(t)
	for _, n := range []*testNode{a, c} {
		n.await(t, "b is gone", patience, func() bool { return n.left[b.ID()] == 1 })
	}
}

// peersTalk makes an HTTP/2 request from a to c.
func peersTalk(t *testing.T, a, c *testNode) {
	t.Helper()
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := trust.PeerID(*r.TLS)
		fmt.Fprint(w, r.Proto, " ", id, " ", err)
	})}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(c.PeerListener()) }()
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	tr := &http.Transport{Protocols: protocols, ForceAttemptHTTP2: true, DialTLSContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(addr)
		return a.DialPeer(ctx, vicinity.ID(host), []string{"127.0.0.1:1", c.Addr()}, HTTP2)
	}}
	resp, err := (&http.Client{Transport: tr}).Get("https://" + string(c.ID()) + "/")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if want := "HTTP/2.0 " + string(a.ID()) + " <nil>"; string(body) != want || err != nil {
		t.Fatalf("got %q, %v, want %q", body, err, want)
	}
	if _, err := a.DialPeer(t.Context(), a.ID(), []string{c.Addr()}, HTTP2); !errors.Is(err, trust.ErrWrongNode) || strings.Contains(err.Error(), "\n") {
		t.Errorf("another node than expected: %v", err)
	}
	if _, err := a.DialPeer(t.Context(), c.ID(), nil, HTTP2); err == nil {
		t.Error("dial without an address")
	}
	tr.CloseIdleConnections()
	srv.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("serve: %v", err)
	}
}

func TestPortTaken(t *testing.T) {
	n := startNode(t, Config{Creds: testCreds(t, 1, 0), Listen: "127.0.0.1:0"})
	o, err := New(Config{Creds: testCreds(t, 1, 1), Listen: n.Addr(), Handler: newRecorder()})
	if err != nil {
		t.Fatal(err)
	}
	err = o.Listen(t.Context())
	if err == nil || !strings.Contains(err.Error(), n.Addr()) || !strings.Contains(err.Error(), "--listen") {
		t.Fatalf("got %v", err)
	}
	for _, bad := range []string{"", "nowhere", "127.0.0.1"} {
		o, _ := New(Config{Creds: testCreds(t, 1, 1), Listen: bad, Handler: newRecorder()})
		if err := o.Listen(t.Context()); err == nil {
			t.Errorf("listen at %q works", bad)
		}
	}
	if err := o.Run(t.Context()); err == nil {
		t.Error("Run without Listen works")
	}
	for _, cfg := range []Config{{}, {Creds: testCreds(t, 1, 1)}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("New(%v) works", cfg)
		}
	}
	unused, _ := New(Config{Creds: testCreds(t, 1, 1), Listen: "127.0.0.1:0", Handler: newRecorder()})
	if err := unused.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	unused.Close()
	again, _ := New(Config{Creds: testCreds(t, 1, 1), Listen: unused.Addr(), Handler: newRecorder()})
	if err := again.Listen(t.Context()); err != nil {
		t.Fatalf("Close does not give the port back: %v", err)
	}
	again.Close()
}

// Broadcasts reach all nodes of a machine, also when one comes from it.
func TestBeaconSocketIsShared(t *testing.T) {
	first, err := listenShared(t.Context(), "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, port, _ := net.SplitHostPort(first.LocalAddr().String())
	second, err := listenShared(t.Context(), "0.0.0.0:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	to := netip.MustParseAddrPort("127.255.255.255:" + port)
	if _, err := second.WriteTo([]byte("hello"), net.UDPAddrFromAddrPort(to)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.PacketConn{first, second} {
		buf := make([]byte, 10)
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if n, _, err := c.ReadFrom(buf); err != nil || !bytes.Equal(buf[:n], []byte("hello")) {
			t.Fatalf("got %q, %v", buf[:n], err)
		}
	}
}

func TestRealAddresses(t *testing.T) {
	if addrs, err := (RealNet{}).Resolve(t.Context(), "localhost"); err != nil || !addrs[0].IsLoopback() {
		t.Errorf("localhost is %v, %v", addrs, err)
	}
	addrs, err := RealNet{}.Addrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if !a.IsGlobalUnicast() || a.IsLoopback() {
			t.Errorf("%v is not an address for others", a)
		}
	}
	for _, a := range (RealNet{}).BroadcastAddrs() {
		if !a.Addr().Is4() || a.Port() != beaconPort {
			t.Errorf("beacons go to %v", a)
		}
	}
}
