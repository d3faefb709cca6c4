package gossip

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// firstMessage catches what a client says first.
type firstMessage struct {
	net.Conn
	b []byte
}

func (c *firstMessage) Write(p []byte) (int, error) { c.b = append(c.b, p...); return len(p), nil }
func (c *firstMessage) Read([]byte) (int, error)    { return 0, io.EOF }

// Strangers who send full ClientHellos as fast as they can cost a node no more handshakes than it
// lets them try, and members none of their own; a node of before, which shows no proof, is let in
// when they are gone.
func TestStrangersCostNoSignatures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
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
		var hello firstMessage
		_ = tls.Client(&hello, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protoGossip}}).Handshake() // which gets no answer
		answered := 0
		for range 10 * unprovenBurst {
			c, err := f.host(9).Dial(t.Context(), a.Addr())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(hello.b); err != nil {
				t.Fatal(err)
			}
			first := make([]byte, 1)
			if _, err := io.ReadFull(c, first); err != nil {
				t.Fatal(err)
			}
			if first[0] == 22 { // a handshake; 21 is an alert
				answered++
			}
			c.Close()
		}
		if answered < unprovenBurst || answered > unprovenBurst+unprovenRate*5 {
			t.Errorf("%d of %d strangers were answered, want some %d", answered, 10*unprovenBurst, unprovenBurst)
		}
		if n := a.Stats()["handshakes put off"]; n != int64(10*unprovenBurst-answered) {
			t.Errorf("%d handshakes were put off", n)
		}
		for range 50 {
			c, err := b.DialPeer(t.Context(), a.ID(), []string{a.Addr()}, HTTP2)
			if err != nil {
				t.Fatalf("a member was refused: %v", err)
			}
			c.Close()
		}
		time.Sleep(time.Second)
		raw, err := f.host(8).Dial(t.Context(), a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		config := testCreds(t, 1, 5).ClientTLS(a.ID(), HTTP2)
		config.NextProtos = []string{HTTP2} // as nodes of before
		old := tls.Client(raw, config)
		if err := old.Handshake(); err != nil {
			t.Errorf("a node of before was refused: %v", err)
		}
		old.Close()
		a.transport.Shutdown()
		b.transport.Shutdown()
	})
}
