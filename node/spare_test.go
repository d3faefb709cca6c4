package node

import (
	"io"
	"net"
	"path/filepath"
	"testing"
)

// Clients get no descriptor of those that are the node's own.
func TestSpareFiles(t *testing.T) {
	inner, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	l := spare(inner).(sparing)
	if l.most <= 0 {
		t.Errorf("all descriptors are spared: %d", l.most)
	}
	dial := func() net.Conn {
		conn, err := net.Dial("unix", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	first := dial()
	defer first.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	l.most = 0
	done := make(chan error)
	go func() {
		_, err := l.Accept()
		done <- err
	}()
	second := dial()
	defer second.Close()
	if _, err := second.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("was not sent away: %v", err)
	}
	inner.Close()
	if err := <-done; err == nil {
		t.Error("a connection was accepted")
	}
}
