package testnet

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// conn is one end of a connection: a net.Conn. Each end keeps what was sent to
// it: under way, then arrived.
type conn struct {
	host          *Host
	life          int // of the host when the connection was made
	local, remote *net.TCPAddr
	peer          *conn

	in            gate // guards what follows
	flight        []segment
	timer         *time.Timer // runs arrive when flight[0] is due
	finSent       bool        // the peer will send nothing more
	ready         [][]byte    // arrived, not yet read
	eof           bool        // all that the peer sent has arrived
	err           error       // why this end can be used no more
	writeDeadline time.Time
}

// segment is what one Write has sent; no data means the end.
type segment struct {
	at   time.Time // arrives then
	data []byte
}

func newConn(h *Host, life int, local, remote *net.TCPAddr) *conn {
	c := &conn{host: h, life: life, local: local, remote: remote}
	c.in.init()
	return c
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	c.in.Lock()
	defer c.in.Unlock()
	for {
		switch {
		case c.err == net.ErrClosed:
			return 0, c.fail("read", c.err)
		case c.in.expired():
			return 0, c.fail("read", os.ErrDeadlineExceeded)
		case len(b) == 0:
			return 0, nil
		case len(c.ready) > 0:
			return c.take(b), nil
		case c.eof:
			return 0, io.EOF
		case c.err != nil:
			return 0, c.fail("read", c.err)
		}
		c.in.changed.Wait()
	}
}

// take copies what has arrived. The gate is locked.
func (c *conn) take(b []byte) int {
	total := 0
	for total < len(b) && len(c.ready) > 0 {
		n := copy(b[total:], c.ready[0])
		total += n
		if c.ready[0] = c.ready[0][n:]; len(c.ready[0]) == 0 {
			c.ready[0] = nil
			c.ready = c.ready[1:]
		}
	}
	return total
}

// Write implements net.Conn. It never blocks.
func (c *conn) Write(b []byte) (int, error) {
	c.in.Lock()
	err := c.err
	if err == nil && !c.writeDeadline.IsZero() && !time.Now().Before(c.writeDeadline) {
		err = os.ErrDeadlineExceeded
	}
	c.in.Unlock()
	if err != nil {
		return 0, c.fail("write", err)
	}
	if len(b) > 0 {
		n := c.host.net
		n.mu.Lock()
		n.counters.Streams.Bytes += int64(len(b))
		n.mu.Unlock()
		c.peer.send(n.streamDelay(c.host, c.peer.host, len(b)), append([]byte(nil), b...))
	}
	return len(b), nil
}

// send puts data under way to this end; nil means the end.
func (c *conn) send(latency time.Duration, data []byte) {
	c.in.Lock()
	defer c.in.Unlock()
	if c.finSent {
		return
	}
	c.finSent = data == nil
	at := time.Now().Add(latency)
	if k := len(c.flight); k > 0 && at.Before(c.flight[k-1].at) {
		at = c.flight[k-1].at // a stream keeps its order when the latency varies
	}
	c.flight = append(c.flight, segment{at, data})
	if len(c.flight) == 1 {
		c.armLocked()
	}
}

// armLocked lets the first segment under way arrive when it is due.
func (c *conn) armLocked() {
	d := time.Until(c.flight[0].at)
	if c.timer == nil {
		c.timer = time.AfterFunc(d, c.arrive)
	} else {
		c.timer.Reset(d)
	}
}

// arrive takes in what is due. While the way is cut it leaves everything where
// it is, to be sent again by resume.
func (c *conn) arrive() {
	if !c.host.net.reach(c.peer.host, c.host) {
		return
	}
	c.in.Lock()
	defer c.in.Unlock()
	reset := false
	for now := time.Now(); len(c.flight) > 0 && !c.flight[0].at.After(now); {
		data := c.flight[0].data
		c.flight[0] = segment{}
		c.flight = c.flight[1:]
		switch {
		case data == nil:
			c.eof = true
		case c.err != nil:
			reset = true
		default:
			c.ready = append(c.ready, data)
		}
	}
	if len(c.flight) > 0 {
		c.armLocked()
	}
	c.in.changed.Broadcast()
	if reset {
		c.resetPeer()
	}
}

// resume goes on after a change of the faults: held data are sent again, in
// both directions, and a host that has forgotten the connection says so.
func (c *conn) resume() {
	n := c.host.net
	if !n.reach(c.host, c.peer.host) {
		return
	}
	if life, _ := c.peer.host.state(); life != c.peer.life {
		c.peer.resetPeer()
		return
	}
	c.sendAgain()
	c.peer.sendAgain()
}

// sendAgain lets what is under way to this end arrive one latency from now at
// the earliest.
func (c *conn) sendAgain() {
	first := time.Now().Add(c.host.net.cfg.Latency(c.peer.host, c.host))
	c.in.Lock()
	defer c.in.Unlock()
	if len(c.flight) == 0 || c.flight[0].at.After(time.Now()) {
		return // nothing is held
	}
	for i := range c.flight {
		if c.flight[i].at.Before(first) {
			c.flight[i].at = first
		}
	}
	c.armLocked()
}

// resetPeer tells the other end, one latency later, that this one is gone.
func (c *conn) resetPeer() {
	n, p := c.host.net, c.peer
	time.AfterFunc(n.cfg.Latency(c.host, p.host), func() {
		if n.reach(c.host, p.host) {
			p.end(syscall.ECONNRESET)
		}
	})
}

// end makes this end unusable. It returns why it was unusable before.
func (c *conn) end(err error) error {
	c.in.Lock()
	defer c.in.Unlock()
	before := c.err
	if before != net.ErrClosed {
		c.err = err
	}
	if err == net.ErrClosed {
		c.ready = nil
		c.in.stopLocked()
	}
	c.in.changed.Broadcast()
	return before
}

// refuse ends a connection that was not accepted.
func (c *conn) refuse() {
	c.forget()
	c.end(net.ErrClosed)
	c.resetPeer()
}

func (c *conn) forget() {
	n := c.host.net
	n.mu.Lock()
	delete(c.host.conns, c)
	n.mu.Unlock()
}

// Close implements net.Conn. The peer reads what was written, then io.EOF.
func (c *conn) Close() error {
	c.forget()
	switch c.end(net.ErrClosed) {
	case nil:
		c.peer.send(c.host.net.streamDelay(c.host, c.peer.host, 0), nil)
	case net.ErrClosed:
		return c.fail("close", net.ErrClosed)
	}
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetWriteDeadline(t); err != nil {
		return err
	}
	return c.SetReadDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	if c.isClosed() {
		return c.fail("set", net.ErrClosed)
	}
	c.in.setDeadline(t)
	return nil
}

// SetWriteDeadline implements net.Conn. A write never waits, but fails once
// its deadline has passed.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.in.Lock()
	defer c.in.Unlock()
	if c.err == net.ErrClosed {
		return c.fail("set", net.ErrClosed)
	}
	c.writeDeadline = t
	return nil
}

func (c *conn) isClosed() bool {
	c.in.Lock()
	defer c.in.Unlock()
	return c.err == net.ErrClosed
}

func (c *conn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}
