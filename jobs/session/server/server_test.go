package server

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"zorilla/jobs/session"
)

// command is one that ends when it is killed or hung up.
type command struct {
	signals atomic.Int64
	once    sync.Once
	done    chan struct{}
}

func (c *command) Signal(sig unix.Signal) {
	if c.signals.Add(1); sig == unix.SIGHUP {
		c.Kill()
	}
}
func (c *command) Kill()                 { c.once.Do(func() { close(c.done) }) }
func (c *command) Done() <-chan struct{} { return c.done }
func (c *command) Exit() session.Exit    { return session.Exit{} }

// begin serves a command that reads nothing, and returns the client's end.
func begin(t *testing.T, c *command) (client net.Conn, stdin *os.File, served chan struct{}) {
	client, conn := net.Pipe()
	in, input, err := os.Pipe()
	output, out, err2 := os.Pipe()
	errs, errOut, err3 := os.Pipe()
	if err := errors.Join(err, err2, err3, out.Close(), errOut.Close()); err != nil {
		t.Fatal(err)
	}
	served = make(chan struct{})
	go func() {
		defer close(served)
		Serve(pipe{conn}, c, Files{input, output, errs}, nil)
	}()
	t.Cleanup(func() {
		c.Kill()
		_ = client.Close()
		_ = in.Close()
		<-served
	})
	return client, in, served
}

// pipe is a Conn over a net.Pipe.
type pipe struct{ net.Conn }

func (p pipe) CloseWrite() error { return p.Close() }

// What the command has not read counts, whoever holds it.
func TestNoMoreInputThanAWindow(t *testing.T) {
	c := &command{done: make(chan struct{})}
	client, _, _ := begin(t, c)
	go func() { _, _ = io.Copy(io.Discard, client) }()
	w, sent := session.NewWriter(client), 0
	for ; sent < 64*session.MaxData && w.Write(session.KindInput, make([]byte, session.MaxData)) == nil; sent += session.MaxData {
		select {
		case <-c.done:
			sent -= session.MaxData // one more was not read
		default:
			continue
		}
		break
	}
	// A pipe holds two pieces, and one more frame ends the session.
	if most := session.Window + 4*session.MaxData; sent > most {
		t.Errorf("a session holds %d bytes of input, more than %d", sent, most)
	}
}

// Signals that come faster than they can be sent become fewer.
func TestManySignalsAreFew(t *testing.T) {
	c := &command{done: make(chan struct{})}
	client, stdin, _ := begin(t, c)
	go func() { _, _ = io.Copy(io.Discard, client) }()
	w := session.NewWriter(client)
	for i := range 2000 {
		if err := w.Write(session.KindSignal, []byte{byte(unix.SIGUSR1 + unix.Signal(2*(i%2)))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Write(session.KindInput, []byte("x")); err != nil { // after them
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdin, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if n := c.signals.Load(); n > 200 {
		t.Errorf("%d signals were sent", n)
	}
}
