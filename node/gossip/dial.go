package gossip

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"zorilla/node/trust"
	"zorilla/vicinity"
)

const (
	dialTimeout = 5 * time.Second
	dialStagger = 500 * time.Millisecond // before the next address of a node is tried, too
)

// DialPeer connects to a node and proves that it is that node; with an empty ID any member will
// do, also this node itself. The addresses are tried in order, beginning with the one where the
// member has answered last; the next one is tried when one fails or does not answer within half a
// second. The first to answer is used. Of protos, HTTP1 and HTTP2, the node chooses what is
// spoken: HTTP1 if it knows that.
func (o *Overlay) DialPeer(ctx context.Context, id vicinity.ID, addrs []string, protos ...string) (net.Conn, error) {
	c, err := o.dialAny(ctx, id, addrs, dialStagger, protos...)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// dialAny is DialPeer with another pause between addresses.
func (o *Overlay) dialAny(ctx context.Context, id vicinity.ID, addrs []string, stagger time.Duration, protos ...string) (*tls.Conn, error) {
	if id != "" && !id.Valid() || len(addrs) == 0 {
		return nil, fmt.Errorf("dial node %.30q: no address", string(id))
	}
	advertised := addrs[:min(len(addrs), maxAddrs)]
	addrs = o.paths.order(id, advertised)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.ctx, cancel)()
	type result struct {
		c    *tls.Conn
		addr string
		err  error
	}
	results := make(chan result)
	var errs errorList
	var won *tls.Conn
	begun, ended := 0, 0
	next := time.NewTimer(0)
	defer next.Stop()
	for ended < len(addrs) && (won == nil || ended < begun) {
		select {
		case <-next.C:
			if won == nil && begun < len(addrs) {
				addr := addrs[begun]
				begun++
				go func() {
					c, err := o.dialChecked(ctx, id, addr, protos)
					results <- result{c, addr, err}
				}()
				next.Reset(stagger)
			}
		case r := <-results:
			ended++
			switch {
			case r.err != nil:
				errs = append(errs, r.err)
				next.Reset(0)
			case won == nil:
				won = r.c
				o.paths.answered(id, r.addr, r.addr == advertised[0])
				cancel() // the others give up, and are waited for
			default:
				r.c.Close()
			}
		}
	}
	if won == nil {
		return nil, fmt.Errorf("dial node %s: %w", id.Short(), errs)
	}
	return won, nil
}

func (o *Overlay) dialChecked(ctx context.Context, id vicinity.ID, addr string, protos []string) (*tls.Conn, error) {
	if _, err := netip.ParseAddrPort(addr); err != nil {
		return nil, fmt.Errorf("address %.80q: want IP:PORT", addr)
	}
	return o.dial(ctx, id, addr, protos...)
}

// errorList is several errors in one line.
type errorList []error

// Error implements error.
func (l errorList) Error() string {
	var text []string
	for _, err := range l {
		text = append(text, err.Error())
	}
	return strings.Join(text, "; ")
}

// Unwrap makes errors.Is look at each.
func (l errorList) Unwrap() []error { return l }

// dial connects to a node, or to any member if id is empty, and proves both
// ends, with small packets where large ones do not get through.
func (o *Overlay) dial(ctx context.Context, id vicinity.ID, addr string, protos ...string) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	small, ok := o.cfg.Net.(smallDialer)
	if !ok {
		return o.shake(ctx, o.cfg.Net.Dial, &outbound{id: id, addr: addr}, protos)
	}
	if o.paths.small(addr) {
		return o.shake(ctx, small.DialSmall, &outbound{id: id, addr: addr, small: true}, protos)
	}
	return o.dialBoth(ctx, small, id, addr, protos)
}

// shake dials and makes the TLS handshake.
func (o *Overlay) shake(ctx context.Context, dial func(context.Context, string) (net.Conn, error), c *outbound, protos []string) (*tls.Conn, error) {
	raw, err := dial(ctx, c.addr)
	if err != nil {
		return nil, err
	}
	t := tls.Client(c.on(raw), o.cfg.Creds.ClientTLS(c.id, protos...))
	if err := t.HandshakeContext(ctx); err != nil {
		raw.Close()
		if err = trust.HandshakeError(err); errors.Is(err, trust.ErrStranger) {
			o.count.strangers.Add(1)
		}
		return nil, fmt.Errorf("%s: %w", c.addr, err)
	}
	o.paths.opened(c)
	if peer, err := trust.PeerID(t.ConnectionState()); err == nil {
		o.answered(peer)
	}
	return t, nil
}

// A tunnel or a VPN may carry smaller packets than the interfaces at its ends claim, and drop
// larger ones silently (RFC 2923, section 2.1). Pings pass there, but no connection gets beyond
// its first full packet, which is the ClientHello of TLS 1.3 with a post-quantum key. A connection
// that is made with a smaller maximum segment size (RFC 9293, section 3.7.1) has small packets in
// both directions.

const (
	// smallSegment is the maximum segment size of connections with small packets, in bytes: their
	// packets fit into the 1280 bytes that every IPv6 link carries, and into tunnels over such
	// links.
	smallSegment = 1100
	// smallAfter is when a connection with small packets is begun beside a silent one.
	smallAfter = 1500 * time.Millisecond
)

// smallDialer is a Net that can limit the size of packets.
type smallDialer interface {
	// DialSmall is as Dial; no packet in either direction has more than smallSegment bytes and
	// headers.
	DialSmall(ctx context.Context, addr string) (net.Conn, error)
}

// HasSmallPackets reports whether a connection that DialPeer made has small packets because large
// ones do not get through.
func HasSmallPackets(c net.Conn) bool {
	t, ok := c.(*tls.Conn)
	if !ok {
		return false
	}
	o, ok := t.NetConn().(*outbound)
	return ok && o.small
}

// shaken is how a handshake ended.
type shaken struct {
	c   *tls.Conn
	err error
}

// dialBoth dials as usual, and with small packets as well if the usual connection is silent. The
// first to get through is used; if only the small one does, the address is remembered.
func (o *Overlay) dialBoth(ctx context.Context, small smallDialer, id vicinity.ID, addr string, protos []string) (*tls.Conn, error) {
	// The usual connection goes on when a small one is faster: a slow node is no reason to use
	// small packets from then on.
	life, end := context.WithTimeout(o.ctx, dialTimeout)
	first := &outbound{id: id, addr: addr, ready: make(chan struct{})}
	usual := make(chan shaken, 1)
	go func() {
		defer end()
		c, err := o.shake(life, o.cfg.Net.Dial, first, protos)
		usual <- shaken{c, err}
	}()
	defer context.AfterFunc(ctx, end)()
	ready := first.ready
	var late <-chan time.Time
	for {
		select {
		case <-ready:
			ready, late = nil, time.After(smallAfter)
			continue
		case <-late:
			if first.heard.Load() {
				continue
			}
		case r := <-usual:
			if r.err == nil || ctx.Err() != nil || !first.silent() {
				return r.c, r.err
			}
			usual <- r
		}
		c, err := o.shake(ctx, small.DialSmall, &outbound{id: id, addr: addr, small: true}, protos)
		if err != nil { // the usual one may be slow only
			r := <-usual
			return r.c, r.err
		}
		go o.noteSmall(id, first, usual)
		return c, nil
	}
}

// noteSmall waits for the usual connection to an address after one with small packets was made, and
// remembers the address if nothing was ever heard on the usual one.
func (o *Overlay) noteSmall(id vicinity.ID, first *outbound, usual <-chan shaken) {
	r, addr := <-usual, first.addr
	if r.err == nil {
		r.c.Close()
		return
	}
	if o.ctx.Err() != nil || first.heard.Load() {
		return
	}
	o.paths.noteSmall(addr, time.Now())
	if o.once.first("small " + addr) {
		o.log.Warn().Str("member", id.Short()).Str("name", o.table.name(id)).Str("addr", addr).
			Msg("only small packets get through, as where a VPN or tunnel carries less than its MTU: " +
				"Zorilla gets by with them, MPI and torch do not: lower the MTU of its interface")
	}
}
