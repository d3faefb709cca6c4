package gossip

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"zorilla/node/trust"
	"zorilla/vicinity"
)

// errSelf says that a node has dialled itself.
var errSelf = errors.New("is this node itself")

// transport carries memberlist's packets and streams over the node's port. It
// implements memberlist.NodeAwareTransport.
type transport struct {
	o       *Overlay
	packets chan *memberlist.Packet
	streams chan net.Conn
	running sync.WaitGroup  // of the goroutines that read and accept
	joining context.Context // bounds joins; set by Run
	pings   *pings
	sift    *sifter

	mu    sync.Mutex       // guards what follows
	fails map[string]error // of the latest dial to an address of no known node
}

// stream is a connection that memberlist uses; it is closed at the end,
// whatever memberlist waits for.
type stream struct {
	net.Conn
	stop func() bool
}

func newTransport(o *Overlay) (*transport, error) {
	t := &transport{
		o: o, packets: make(chan *memberlist.Packet, 256), streams: make(chan net.Conn),
		fails: map[string]error{},
	}
	t.pings = newPings(func(b []byte, to memberlist.Address) {
		o.count.pingsAgain.Add(1)
		_ = t.write(b, to) // what cannot be sent is lost
	})
	var err error
	if t.sift, err = newSifter(gossipKeys(o.cfg.Creds)); err == nil {
		t.sift.alive = o.mayHear
	}
	return t, err
}

// track returns the connection as memberlist gets it. It is closed when ctx
// ends.
func (t *transport) track(ctx context.Context, c net.Conn) net.Conn {
	look := &sifted{Conn: c, s: t.sift, odd: func() { t.o.count.malformed.Add(1) }}
	return &stream{look, context.AfterFunc(ctx, func() { c.Close() })}
}

// Close implements net.Conn.
func (s *stream) Close() error {
	s.stop()
	return s.Conn.Close()
}

// FinalAdvertiseAddr implements memberlist.Transport.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	a, err := netip.ParseAddrPort(t.o.self.Addrs[0])
	if err != nil {
		return nil, 0, err
	}
	return a.Addr().AsSlice(), int(a.Port()), nil
}

// WriteTo implements memberlist.Transport.
func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress implements memberlist.NodeAwareTransport.
func (t *transport) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	b, ping := t.sift.out(b)
	err := t.write(b, to)
	if err == nil && ping {
		t.pings.Sent(b, to)
	}
	return time.Now(), err
}

// write sends a packet as it is.
func (t *transport) write(b []byte, to memberlist.Address) error {
	a, err := netip.ParseAddrPort(t.o.paths.to(vicinity.ID(to.Name), to.Addr))
	if err == nil {
		_, err = t.o.packets.WriteTo(b, net.UDPAddrFromAddrPort(a))
	}
	return err
}

// PacketCh implements memberlist.Transport.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh implements memberlist.Transport.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// DialTimeout implements memberlist.Transport.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout implements memberlist.NodeAwareTransport. A node without
// a name, as in a join, may be any member but this one.
func (t *transport) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	life := t.o.ctx
	if to.Name == "" {
		life = t.joining
	}
	ctx, cancel := context.WithTimeout(life, min(timeout, dialTimeout))
	defer cancel()
	c, err := t.dial(ctx, to, timeout)
	if err == nil && to.Name == "" {
		if peer, perr := trust.PeerID(c.ConnectionState()); perr != nil || peer == t.o.self.ID {
			c.Close()
			err = fmt.Errorf("%s %w", to.Addr, errSelf)
		}
	}
	if err != nil {
		if to.Name == "" {
			t.fail(to.Addr, err)
		}
		return nil, err
	}
	return t.track(life, c), nil
}

// dial connects to an address, and if it is a member's to the others that the member advertises as well.
func (t *transport) dial(ctx context.Context, to memberlist.Address, timeout time.Duration) (*tls.Conn, error) {
	id := vicinity.ID(to.Name)
	if id == "" {
		return t.o.dial(ctx, id, to.Addr, protoGossip)
	}
	addrs := []string{to.Addr}
	if e, ok := t.o.table.get(id); ok && e.Addrs[0] == to.Addr {
		addrs = e.Addrs
	}
	// After a ping without an answer memberlist has half a second for a connection.
	c, err := t.o.dialAny(ctx, id, addrs, min(dialStagger, timeout/5), protoGossip)
	if err == nil && timeout != tcpTimeout && t.pings.Missed(to.Name) {
		t.o.log.Warn().Str("member", id.Short()).Str("name", t.o.table.name(id)).Str("addr", to.Addr).
			Msg("a member answers by TCP and not by UDP: let the port through for both")
	}
	return c, err
}

// fail and failure pass the error of a join's dial around memberlist, which
// keeps only its text.
func (t *transport) fail(addr string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fails[addr] = err
}

func (t *transport) failure(addr string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.fails[addr]
	delete(t.fails, addr)
	return err
}

// Shutdown implements memberlist.Transport.
func (t *transport) Shutdown() error {
	t.o.Close()
	t.pings.Close()
	t.running.Wait()
	return nil
}

// readPackets passes packets on to memberlist until the socket is closed.
func (t *transport) readPackets() {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := t.o.packets.ReadFrom(buf)
		now := time.Now()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || !pause(t.o.ctx, 5*time.Millisecond) {
				return
			}
			continue // an ICMP error about an earlier packet, for example
		}
		p, err := t.sift.in(buf[:n])
		if err != nil {
			t.o.oddPacket(err)
		}
		if len(p) == 0 {
			continue
		}
		select {
		case t.packets <- &memberlist.Packet{Buf: p, From: from, Timestamp: now}:
		case <-t.o.ctx.Done():
			return
		}
	}
}

// oddPacket counts one that memberlist does not get.
func (o *Overlay) oddPacket(err error) {
	if errors.Is(err, errSealed) {
		o.count.refusedPackets.Add(1)
		return
	}
	o.count.malformed.Add(1)
}

// gossipKeys returns the keys of memberlist's keyring.
func gossipKeys(c *trust.Credentials) (keys [][]byte) {
	for _, n := range c.Networks() {
		keys = append(keys, n.GossipKey())
	}
	return keys
}

// pause waits and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
