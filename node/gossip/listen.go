package gossip

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"zorilla/internal/connlimit"
	"zorilla/node/trust"
)

// What follows the TLS handshake.
const (
	protoGossip = protoFamily + "2"
	protoFamily = "zorilla-gossip/" // of all versions
)

// What peers speak with each other, as ALPN names it.
const (
	HTTP1 = "http/1.1"
	HTTP2 = "h2"
)

const (
	handshakeTimeout = 5 * time.Second
	helloTimeout     = time.Second // until the first full ClientHello
	maxHandshakes    = 512         // at the same time: the oldest goes then
	maxFromOne       = 256         // of them from one address: as many members may come at once from behind it
	maxWaiting       = 64          // connections that the peer listener holds
	portTries        = 10
)

// Sockets are a node's port: TCP and UDP with one number.
type Sockets struct {
	Streams net.Listener
	Packets net.PacketConn
	at      netip.AddrPort
}

// Bind opens the sockets of a node that listens at "host:port". It needs
// neither key nor secret, so that a port that is taken is told before these are
// made. A nil Net is RealNet.
func Bind(ctx context.Context, n Net, listen string) (*Sockets, error) {
	if n == nil {
		n = RealNet{}
	}
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("listen %.80q: want HOST:PORT", listen)
	}
	tries := 1
	if port == "0" {
		tries = portTries // a port that is free for TCP need not be free for UDP
	}
	var s *Sockets
	for range tries {
		if s, err = bindOnce(ctx, n, listen); err == nil {
			return s, nil
		}
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen %s: %w: choose another with --listen", listen, err)
	}
	return nil, fmt.Errorf("listen %s: %w", listen, err)
}

func bindOnce(ctx context.Context, n Net, listen string) (*Sockets, error) {
	l, err := n.Listen(ctx, listen)
	if err != nil {
		return nil, err
	}
	at, err := addrPortOf(l.Addr())
	if err != nil {
		l.Close()
		return nil, err
	}
	p, err := n.ListenPacket(ctx, at.String())
	if err != nil {
		l.Close()
		return nil, err
	}
	return &Sockets{l, p, at}, nil
}

// Close closes both.
func (s *Sockets) Close() error { return errors.Join(s.Streams.Close(), s.Packets.Close()) }

// accept takes connections until the listener is closed.
func (o *Overlay) accept() {
	config := o.cfg.Creds.ServerTLS(protoGossip, HTTP1, HTTP2)
	var shaking sync.WaitGroup
	defer shaking.Wait()
	for {
		raw, err := o.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || !pause(o.ctx, 20*time.Millisecond) {
				return
			}
			continue // out of descriptors, for example
		}
		from, _ := addrPortOf(raw.RemoteAddr())
		pending := o.connLimit.Add(from.Addr(), func() {
			o.count.overload.Add(1)
			raw.Close()
		})
		shaking.Go(func() { o.welcome(raw, config, pending) })
	}
}

// welcome makes the caller prove who it is and hands the connection on.
func (o *Overlay) welcome(raw net.Conn, config *tls.Config, pending *connlimit.Conn) {
	defer pending.Done()
	ctx, cancel := context.WithTimeout(o.ctx, handshakeTimeout)
	defer cancel()
	silent := time.AfterFunc(helloTimeout, func() {
		o.count.silent.Add(1)
		raw.Close()
	})
	defer silent.Stop()
	config = config.Clone()
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		silent.Stop()
		if !o.cfg.Creds.Proves(hello.SupportedProtos) && !o.unproven.admit(time.Now()) {
			return nil, errPutOff
		}
		pending.Spoke()
		return nil, nil
	}
	caller := &caller{Conn: raw}
	c := tls.Server(caller, config)
	if err := c.HandshakeContext(ctx); err != nil {
		raw.Close()
		o.refused(raw.RemoteAddr(), trust.HandshakeError(err))
		return
	}
	pending.Done()
	gossip := c.ConnectionState().NegotiatedProtocol == protoGossip
	id, err := trust.PeerID(c.ConnectionState())
	if err != nil || !o.callers.enter(caller, id, gossip) {
		o.count.crowded.Add(1)
		raw.Close()
		return
	}
	o.answered(id)
	if !gossip {
		o.peers.offer(ctx, c)
		return
	}
	s := o.transport.track(o.ctx, c)
	select {
	case o.transport.streams <- s:
	case <-ctx.Done():
		s.Close()
	}
}

// refused counts a failed handshake and tells people once for each host.
func (o *Overlay) refused(from net.Addr, err error) {
	if o.ctx.Err() != nil {
		return
	}
	host := "unknown"
	if a, err := addrPortOf(from); err == nil {
		host = a.Addr().String()
	}
	if errors.Is(err, errPutOff) {
		o.count.putOff.Add(1)
		return
	}
	if errors.Is(err, trust.ErrStranger) {
		o.count.strangers.Add(1)
		if o.once.first("stranger " + host) {
			o.log.Warn().Msgf("refused %s: %v", from, trust.ErrStranger)
		}
		return
	}
	if errors.Is(err, net.ErrClosed) {
		return // by this node, which has counted why
	}
	if broke(err) {
		o.count.broken.Add(1)
		return
	}
	o.count.badHandshakes.Add(1)
	if errors.Is(err, trust.ErrVersion) && strings.Contains(err.Error(), protoFamily) {
		if o.once.first("version " + host) {
			o.log.Warn().Msgf("refused %s: it %v", from, trust.ErrVersion)
		}
		return
	}
	if o.once.first("handshake " + host) {
		o.log.Debug().Err(err).Msgf("refused %s: not a node", from)
	}
}

// broke reports whether a connection ended before either side had said anything
// wrong, as it does when the network is cut or a machine was asleep.
func broke(err error) bool {
	for _, end := range []error{
		io.EOF, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded, context.DeadlineExceeded, context.Canceled, syscall.ECONNRESET, syscall.EPIPE,
	} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// peerListener hands out connections that have proven themselves: a
// net.Listener for an http.Server.
type peerListener struct {
	addr  net.Addr
	ready chan net.Conn
	done  chan struct{}
	close sync.Once
}

func newPeerListener(addr net.Addr) *peerListener {
	return &peerListener{addr: addr, ready: make(chan net.Conn, maxWaiting), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *peerListener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	default:
	}
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.done:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
}

// Close implements net.Listener.
func (l *peerListener) Close() error {
	l.close.Do(func() { close(l.done) })
	l.drain()
	return nil
}

func (l *peerListener) drain() {
	for {
		select {
		case c := <-l.ready:
			c.Close()
		default:
			return
		}
	}
}

// Addr implements net.Listener.
func (l *peerListener) Addr() net.Addr { return l.addr }

func (l *peerListener) offer(ctx context.Context, c net.Conn) {
	select {
	case <-l.done:
		c.Close()
		return
	default:
	}
	select {
	case l.ready <- c:
		select {
		case <-l.done: // closed in between: nobody will take it
			l.drain()
		default:
		}
	case <-l.done:
		c.Close()
	case <-ctx.Done():
		c.Close()
	}
}
