package node

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"zorilla/node/api"
	"zorilla/transfer"
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
	client, err := api.Dial(inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var all sync.WaitGroup
	for range 5 * maxTurned {
		all.Go(func() {
			if _, err := client.Nodes(t.Context()); !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "too many clients") {
				t.Errorf("a client is sent away with %v", err)
			}
			if err := client.PutChunk(t.Context(), transfer.Hash{}, make([]byte, 4<<20)); !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "too many clients") {
				t.Errorf("a client that sends much is sent away with %v", err)
			}
		})
	}
	all.Wait()
	inner.Close()
	if err := <-done; err == nil {
		t.Error("a connection was accepted")
	}
}
