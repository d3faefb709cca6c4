package pmi

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
)

// A node that comes back is told again where the rank waits, and passes count once.
func TestLinkThatBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirs, ours := net.Pipe()
		s := NewServer(Place{Size: 2, Name: "k"}, ours)
		go s.Run()
		relay := func() (*Link, chan struct{}) {
			a, b := net.Pipe()
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.Relay(a)
				a.Close()
			}()
			return NewLink(b), done
		}
		link, done := relay()
		go fmt.Fprintln(theirs, "cmd=barrier_in")
		b, err := link.Next()
		if err != nil || b.Number != 1 {
			t.Fatalf("%+v, %v", b, err)
		}
		link.Close()
		<-done

		link, done = relay()
		if b, err = link.Next(); err != nil || b.Number != 1 {
			t.Fatalf("after the break: %+v, %v", b, err)
		}
		out := make([]byte, 100)
		read := make(chan int)
		go func() {
			n, _ := theirs.Read(out)
			read <- n
		}()
		for range 2 {
			if err := link.Pass(Pass{Number: 1, Puts: []Put{{"a", "b"}}}); err != nil {
				t.Fatal(err)
			}
		}
		if got := string(out[:<-read]); got != "cmd=barrier_out\n" {
			t.Errorf("the rank is told %q", got)
		}
		go fmt.Fprintln(theirs, "cmd=barrier_in")
		if b, err = link.Next(); err != nil || b.Number != 2 {
			t.Errorf("next: %+v, %v", b, err)
		}
		theirs.Close() // it ends while it waits
		if _, err := link.Next(); err == nil {
			t.Error("a barrier of a rank that has ended")
		}
		<-done
		link.Close()
		ours.Close()
	})
}

// What no server tells is refused.
func TestLinkRefuses(t *testing.T) {
	for _, b := range []Barrier{{}, {Number: MaxBarriers + 1}, {Number: 1, Puts: []Put{{}}}, {Number: 1, Puts: make([]Put, MaxPuts+1)}} {
		ours, theirs := net.Pipe()
		go send(theirs, b)
		if _, err := NewLink(ours).Next(); err == nil {
			t.Errorf("barrier %d with %d puts is taken", b.Number, len(b.Puts))
		}
		ours.Close()
		theirs.Close()
	}
}
