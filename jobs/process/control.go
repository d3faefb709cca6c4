package process

import (
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/fdpass"
	"zorilla/internal/sanitize"
)

const (
	helloWithin   = 5 * time.Second
	maxConns      = 8
	progressEvery = 2 * time.Millisecond // at most; the first one goes at once
	tasksEvery    = 10 * time.Millisecond
)

// control is the supervisor's end of the control socket: one connection for
// messages, of which the latest counts, and one for standard input.
type control struct {
	s    *keeper
	wake chan struct{} // capacity 1: there is progress to tell
	over chan struct{} // closed at the end
	came []*os.File    // connections, until they are served

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
	conn   net.Conn // of the node; nil while it is gone
	place  int      // of the latest one among all connections, in the order in which they came

	sessions int            // guarded by mu
	serving  sync.WaitGroup // them

	feeding sync.Mutex // held by the one connection that writes to input; guards fed
	fed     int64      // bytes passed on
	input   *os.File   // writing end; nil if there is none
}

func newControl(s *keeper, came []*os.File) *control {
	return &control{s: s, came: came, wake: make(chan struct{}, 1), over: make(chan struct{}), conns: map[net.Conn]bool{}}
}

// inputPipe makes the worker's standard input.
func (c *control) inputPipe(want bool) (*os.File, error) {
	if !want {
		return os.Open(os.DevNull)
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	if err := unix.SetNonblock(p[1], true); err != nil {
		return nil, err
	}
	c.input = os.NewFile(uintptr(p[1]), "stdin")
	return os.NewFile(uintptr(p[0]), "stdin"), nil
}

// closeInput makes a blocked writer give up: the worker is gone.
func (c *control) closeInput() {
	if c.input != nil {
		_ = c.input.Close()
	}
}

// open serves whoever connects, those first who came along.
func (c *control) open() error {
	go c.sendProgress()
	for _, f := range c.came {
		conn, err := fdpass.Open(f)
		if err != nil {
			return err
		}
		go func() {
			if m, err := hello(conn); err == nil {
				c.serve(conn, m, 0)
			}
		}()
	}
	c.came = nil
	c.s.sup.reception.open(c.s.spec.terms.Key, c)
	return nil
}

// close lets the node know that the worker has ended.
func (c *control) close() {
	c.s.sup.reception.close(c.s.spec.terms.Key)
	for _, f := range c.came {
		_ = f.Close()
	}
	defer c.serving.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for conn := range c.conns {
		_ = conn.Close()
	}
	close(c.over)
}

// lament tells the node, or whoever reads what this process says, why there is no exit
// record.
func (c *control) lament(err error) {
	fmt.Fprintln(os.Stderr, err)
	if conn := c.current(); conn != nil {
		_ = writeMessage(conn, message{Kind: kindLost, Text: sanitize.OneLine(err.Error())})
	}
}

// serve goes on with a connection that has said hello.
func (c *control) serve(conn net.Conn, m message, place int) {
	defer func() {
		c.mu.Lock()
		delete(c.conns, conn)
		c.mu.Unlock()
		_ = conn.Close()
	}()
	if m.Also && c.judge(m) == "" {
		c.serveSession(conn)
		return
	}
	c.mu.Lock()
	crowded := c.closed || len(c.conns) >= maxConns
	if !crowded {
		c.conns[conn] = true
	}
	c.mu.Unlock()
	switch text := c.judge(m); {
	case crowded:
	case text != "":
		_ = writeMessage(conn, message{Kind: kindRefused, Text: text})
	case m.Input:
		c.feed(conn)
	case m.Barriers:
		c.s.rank.Relay(conn)
	default:
		c.attend(conn, place)
	}
}

// judge returns why a hello is not accepted. The key keeps out processes that
// merely found the socket, workers above all.
func (c *control) judge(m message) string {
	switch {
	case m.Version != protocol && !(m.Also && m.Version == also):
		return fmt.Sprintf("protocol %d is not spoken here, want %d", m.Version, protocol)
	case subtle.ConstantTimeCompare([]byte(m.Key), []byte(c.s.spec.terms.Key)) != 1:
		return "wrong key"
	}
	return ""
}

// attend follows the node's wishes until the connection ends. One that came before
// the latest is of a node that has gone, and must not take its place.
func (c *control) attend(conn net.Conn, place int) {
	c.mu.Lock()
	if place < c.place {
		c.mu.Unlock()
		return
	}
	before := c.conn
	c.conn, c.place = conn, place
	c.mu.Unlock()
	if before != nil {
		_ = before.Close()
	}
	c.s.post(c.presence)
	c.progress()
	for {
		m, err := readMessage(conn)
		if err != nil {
			break
		}
		switch m.Kind {
		case kindAck:
			c.s.streams[0].ack(m.Stdout)
			c.s.streams[1].ack(m.Stderr)
		case kindHeard:
			c.s.post(c.s.life.OriginHeard)
		case kindTasks:
			if c.s.tasks != nil {
				c.s.tasks.add(m.Added, m.Ranges, m.Last)
			}
		case kindSignal:
			c.s.post(func(time.Time) { c.s.world.launcher.Hint(c.s.number, unix.Signal(m.Signal)) })
		case kindStop:
			c.s.post(func(now time.Time) {
				if m.Full > 0 {
					c.s.life.Crowded(m.Full)
				} else {
					c.s.life.Stop(now, m.Notice, m.Grace)
				}
			})
			select {
			case <-c.s.ended: // all that it may wait for is room
				c.s.room.Leave()
			default:
			}
		}
	}
	c.mu.Lock()
	if c.conn == conn {
		c.conn = nil
	}
	c.mu.Unlock()
	c.s.post(c.presence)
}

// presence looks in the loop whether a node is connected: events of an old
// and a new connection may come in any order.
func (c *control) presence(now time.Time) {
	if c.current() != nil {
		c.s.life.NodeBack()
	} else {
		c.s.life.NodeLost(now)
	}
}

func (c *control) current() net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn
}

// progress asks for a message to the node; it never blocks.
func (c *control) progress() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// sendProgress sends the latest counts whenever they have changed. A node that does
// not read blocks nothing but this goroutine.
func (c *control) sendProgress() {
	pace := progressEvery
	if c.s.spec.Tasks != nil {
		pace = tasksEvery
	}
	for {
		select {
		case <-c.wake:
		case <-c.over:
			return
		}
		conn := c.current()
		if conn == nil {
			continue
		}
		out, errs := c.s.streams[0], c.s.streams[1]
		m := message{
			Kind: kindProgress, Waits: c.s.room.Waits(),
			Stdout: out.size(), Stderr: errs.size(), AckedOut: out.confirmed(), AckedErr: errs.confirmed(),
		}
		if c.s.tasks != nil {
			m.Added, m.Ended = c.s.tasks.counts()
		}
		if err := writeMessage(conn, m); err != nil {
			_ = conn.Close()
		}
		time.Sleep(pace)
	}
}

// feed passes standard input on, from where an earlier connection ended. Only a
// proper end closes the worker's input: when the connection breaks the worker
// waits for the node to come back.
func (c *control) feed(conn net.Conn) {
	c.feeding.Lock()
	defer c.feeding.Unlock()
	if c.input == nil || writeMessage(conn, message{Kind: kindProgress, Stdin: c.fed}) != nil {
		return
	}
	if copyChunks(counted{c.input, &c.fed}, conn) == nil {
		_ = c.input.Close()
	}
}

// counted counts what it writes.
type counted struct {
	w io.Writer
	n *int64
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	*c.n += int64(n)
	return n, err
}
