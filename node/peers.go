package node

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"zorilla/jobs/agent"
	"zorilla/node/fastrpc"
	"zorilla/node/gossip"
	"zorilla/node/trust"
	"zorilla/transfer/swarm"
	"zorilla/vicinity"
)

// peers reaches other nodes over HTTP/2: https://NODE-ID/… goes to that node,
// at the addresses that the overlay or a message of the node tells.
type peers struct {
	overlay Overlay
	net     gossip.Net

	mu    sync.Mutex // guards what follows
	addrs map[vicinity.ID][]string
	at    map[vicinity.ID]string // where a node was connected to last
}

// maxLearned bounds the addresses of nodes that are not members.
const maxLearned = 4096

func newPeers(o Overlay, n gossip.Net) *peers {
	if n == nil {
		n = gossip.RealNet{}
	}
	return &peers{overlay: o, net: n, addrs: map[vicinity.ID][]string{}, at: map[vicinity.ID]string{}}
}

// Learn remembers where a node is to be found.
func (p *peers) Learn(id vicinity.ID, addrs []string) {
	if !id.Valid() || len(addrs) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.addrs) >= maxLearned && p.addrs[id] == nil {
		for other := range p.addrs {
			delete(p.addrs, other)
			break
		}
	}
	p.addrs[id] = addrs
}

// find returns the addresses of a node: those that it tells the overlay first.
func (p *peers) find(id vicinity.ID) []string {
	if self := p.overlay.Self(); self.ID == id {
		return self.Addrs
	}
	if m, ok := p.overlay.Member(id); ok {
		return m.Addrs
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addrs[id]
}

// sessions is a transport for sessions between processes of jobs, which may hold up as much
// as a connection takes: they have one of their own.
func (p *peers) sessions() *http.Transport {
	t := p.transport(gossip.HTTP2)
	t.HTTP2.MaxReceiveBufferPerStream = maxUnread
	return t
}

// files is a transport for large files. Each of its requests has a connection: HTTP/1.1 costs
// less processor time than frames of HTTP/2, nothing else waits behind the bytes, and several
// connections fill one way. With a node that does not know it HTTP/2 is spoken.
func (p *peers) files() *http.Transport {
	t := p.transport(gossip.HTTP1, gossip.HTTP2)
	t.Protocols.SetHTTP1(true)
	t.MaxIdleConnsPerHost, t.IdleConnTimeout = swarm.MaxRequests, 30*time.Second
	t.MaxConnsPerHost = 2 * swarm.MaxRequests // a node serves fewer at a time, and takes no more than a few of one member
	t.DisableCompression = true
	return t
}

// transport speaks HTTP/2, or what else protos has for peers, over connections on which both ends
// have proven who they are. One of HTTP/2 whose other end is silent for too long is closed.
func (p *peers) transport(protos ...string) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return p.dial(ctx, address, protos...)
		},
		ForceAttemptHTTP2: true,
		Protocols:         protocols,
		IdleConnTimeout:   2 * time.Minute,
		HTTP2:             &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second, MaxReadFrameSize: maxFrame},
	}
}

func (p *peers) dial(ctx context.Context, address string, protos ...string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	fastrpc.Dialing(ctx)
	id := vicinity.ID(host)
	addrs := p.find(id)
	if len(addrs) == 0 {
		return nil, fmt.Errorf("node %s: no address is known", id.Short())
	}
	c, err := p.overlay.DialPeer(ctx, id, addrs, protos...)
	if err == nil {
		p.mu.Lock()
		if len(p.at) < maxLearned || p.at[id] != "" {
			p.at[id] = c.RemoteAddr().String()
		}
		p.mu.Unlock()
	}
	return c, err
}

// Knock asks for a connection to a node and closes it. Who accepts it is the kernel of the machine
// there, also if the node itself is paused or waits for a processor; that it is refused means that
// no node runs there. It is asked for at one address, that of the latest connection: another one, as of
// a bridge for containers, may well be one of this machine, too.
func (p *peers) Knock(ctx context.Context, id vicinity.ID) error {
	addrs := p.find(id)
	if len(addrs) == 0 {
		return agent.ErrNoAddress
	}
	p.mu.Lock()
	at := p.at[id]
	p.mu.Unlock()
	if !slices.Contains(addrs, at) {
		at = addrs[0]
	}
	c, err := p.net.Dial(ctx, at)
	if err != nil {
		return err
	}
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // else the kernel keeps each for a minute
	}
	return c.Close()
}

// peerURL is where a node's handlers are.
func peerURL(id vicinity.ID) string { return "https://" + string(id) }

// apiPrefix is where a node answers others as api.Peer says.
const apiPrefix = "/api"

// loopback is a transport that has messages of a node to itself answered without a connection,
// which would take several times as long as what most of them have done.
type loopback struct {
	http.RoundTripper
	self    vicinity.ID
	handler http.Handler // of messages; set before the first one
}

// senderKey marks requests that have not come over a connection, in their context, with the ID of
// the node that they are from.
type senderKey struct{}

// sentBy returns a request as one that has come from a node without a connection.
func sentBy(r *http.Request, from vicinity.ID) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), senderKey{}, from))
}

// RoundTrip implements http.RoundTripper.
func (t *loopback) RoundTrip(r *http.Request) (*http.Response, error) {
	if vicinity.ID(r.URL.Host) != t.self || !agent.Messages(r.URL.Path) {
		return t.RoundTripper.RoundTrip(r)
	}
	ctx := r.Context()
	answered := make(chan *fastrpc.Recorder, 1)
	go func() {
		defer r.Body.Close()
		var w fastrpc.Recorder
		t.handler.ServeHTTP(&w, sentBy(r, t.self))
		answered <- &w
	}()
	select {
	case w := <-answered:
		return w.Response(r), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// peerID returns which node sent a request.
func peerID(r *http.Request) (vicinity.ID, error) {
	if id, ok := r.Context().Value(senderKey{}).(vicinity.ID); ok {
		return id, nil
	}
	if r.TLS == nil {
		return "", trust.ErrStranger
	}
	return trust.PeerID(*r.TLS)
}

// askerKey marks which node asks, in the context of a request.
type askerKey struct{}

// identified lets only nodes of this network through to h, which finds in asker
// who it is.
func identified(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := peerID(r)
		if err != nil {
			http.Error(w, "no node certificate", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), askerKey{}, id)))
	})
}

// asker returns which node asks, in what identified handles.
func asker(ctx context.Context) vicinity.ID {
	id, _ := ctx.Value(askerKey{}).(vicinity.ID)
	return id
}
