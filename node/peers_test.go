package node

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs/agent"
	"zorilla/node/gossip"
	"zorilla/vicinity"
)

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// dialed is an overlay that has one other node.
type dialed struct {
	Overlay
	dial func(ctx context.Context, protos []string) (net.Conn, error)
}

func (d dialed) Self() vicinity.Member { return vicinity.Member{} }
func (d dialed) Member(vicinity.ID) (m vicinity.Member, _ bool) {
	m.Addrs = []string{"there"}
	return m, true
}

func (d dialed) DialPeer(ctx context.Context, _ vicinity.ID, _ []string, protos ...string) (net.Conn, error) {
	return d.dial(ctx, protos)
}

// Each large file that is sent has a connection of its own, and the next ones have those; a
// node that knows no HTTP/1.1 sends all over one.
func TestFilesHaveConnections(t *testing.T) {
	for _, c := range []struct {
		knows []string
		proto string
		conns int64
	}{{[]string{gossip.HTTP1, gossip.HTTP2}, "HTTP/1.1", 3}, {[]string{gossip.HTTP2}, "HTTP/2.0", 1}} {
		var together sync.WaitGroup
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			together.Done()
			together.Wait()
			_, _ = io.WriteString(w, r.Proto)
		}))
		srv.EnableHTTP2, srv.TLS = true, &tls.Config{NextProtos: c.knows}
		srv.StartTLS()
		var conns atomic.Int64
		p := newPeers(dialed{dial: func(ctx context.Context, protos []string) (net.Conn, error) {
			conns.Add(1)
			d := tls.Dialer{Config: &tls.Config{NextProtos: protos, InsecureSkipVerify: true}}
			return d.DialContext(ctx, "tcp", srv.Listener.Addr().String())
		}}, nil)
		files := p.files()
		client := &http.Client{Transport: files}
		if c.conns == 1 { // which is made first
			together.Add(1)
			if _, err := client.Get(peerURL("other")); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			together.Add(3)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					resp, err := client.Get(peerURL("other"))
					if err != nil {
						t.Error(err)
						return
					}
					defer resp.Body.Close()
					if b, err := io.ReadAll(resp.Body); err != nil || string(b) != c.proto {
						t.Errorf("%q knows %q, and was asked over %q, %v", peerURL("other"), c.knows, b, err)
					}
				})
			}
			wg.Wait()
		}
		if conns.Load() != c.conns {
			t.Errorf("%s: %d connections, want %d", c.proto, conns.Load(), c.conns)
		}
		files.CloseIdleConnections()
		srv.Close()
	}
}

// Messages of a node to itself take no connection, and come from the node; all else does.
func TestMessagesToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		self, other := vicinity.ID("z"+strings.Repeat("a", 26)), vicinity.ID("z"+strings.Repeat("b", 26))
		elsewhere := errors.New("elsewhere")
		client := &http.Client{Transport: &loopback{
			RoundTripper: transport(func(*http.Request) (*http.Response, error) { return nil, elsewhere }), self: self,
			handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				from, err := peerID(r)
				b, _ := io.ReadAll(r.Body)
				if err != nil || from != self {
					t.Errorf("the message is from %v, %v", from, err)
				}
				if string(b) == "slow" {
					time.Sleep(time.Hour)
				}
				w.WriteHeader(http.StatusConflict)
				_, _ = io.WriteString(w, "heard "+string(b))
			}),
		}}
		post := func(ctx context.Context, to vicinity.ID, path, body string) (*http.Response, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, peerURL(to)+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			return client.Do(req)
		}
		resp, err := post(t.Context(), self, agent.PeerPrefix+"report", "this")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "heard this" || resp.Status != "409 Conflict" {
			t.Errorf("answered %s, %q, %v", resp.Status, b, err)
		}
		for _, c := range []struct {
			to   vicinity.ID
			path string
		}{{other, agent.PeerPrefix + "report"}, {self, agent.PeerPrefix + "output"}, {self, agent.PeerPrefix + "enter"}, {self, "/api/v1/node"}} {
			if _, err := post(t.Context(), c.to, c.path, ""); !errors.Is(err, elsewhere) {
				t.Errorf("%s of %s: got %v", c.path, c.to.Short(), err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := post(ctx, self, agent.PeerPrefix+"beat", "slow"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		time.Sleep(2 * time.Hour) // until the slow one has ended
	})
}

// located is an overlay that knows where nodes are.
type located struct {
	dialed
	addrs []string
}

func (l located) Member(vicinity.ID) (m vicinity.Member, _ bool) {
	m.Addrs = l.addrs
	return m, len(l.addrs) > 0
}

// A knock is answered by the kernel of a machine, whether the node accepts it or not, at the address
// where the node was connected to last.
func TestKnock(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	busy, other := listen(), listen()
	if err := newPeers(located{}, nil).Knock(t.Context(), "node"); !errors.Is(err, agent.ErrNoAddress) {
		t.Errorf("where nobody knows of a node: %v", err)
	}
	o := located{addrs: []string{other.Addr().String(), busy.Addr().String()}}
	o.dial = func(ctx context.Context, _ []string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", busy.Addr().String())
	}
	p := newPeers(o, nil)
	other.Close()
	if err := p.Knock(t.Context(), "node"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a knock at the first address, where nobody listens: %v", err)
	}
	c, err := p.dial(t.Context(), "node:443")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := p.Knock(t.Context(), "node"); err != nil {
		t.Errorf("a knock where the node was connected to, and accepts nothing: %v", err)
	}
	busy.Close()
	if err := p.Knock(t.Context(), "node"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a knock at a node that has ended: %v", err)
	}
}
