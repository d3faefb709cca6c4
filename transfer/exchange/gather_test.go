package exchange_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/transfer"
	"zorilla/transfer/exchange"
	"zorilla/vicinity"
)

// Who reads a large answer is woken up when there is much of it, and at its end for each byte;
// the connection serves others after it.
func TestLargeAnswersWakeSeldom(t *testing.T) {
	data := bytes.Repeat([]byte("z"), transfer.ChunkSize)
	h := transfer.HashOf(data)
	rest := make(chan struct{})
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		half := len(data) / 2
		w.Header().Set("Content-Length", "1048576")
		w.Write(data[:half])
		select {
		case <-rest:
		case <-r.Context().Done():
		}
		for b := data[half:]; len(b) > 0 && r.Context().Err() == nil; b = b[min(5000, len(b)):] {
			w.Write(b[:min(5000, len(b))])
			w.(http.Flusher).Flush()
		}
	}))
	defer srv.Close()
	c := &exchange.HTTP{Client: srv.Client(), URL: func(vicinity.ID) string { return srv.URL }}
	var got httptrace.GotConnInfo
	late, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ctx := httptrace.WithClientTrace(late, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { got = info }})
	for i, reused := range []bool{false, true} {
		body, err := c.Bulk(ctx, "zaaaaaaaaaaaaaaaaaaaaaaaaa", h)
		if err != nil {
			t.Fatal(err)
		}
		if got.Reused != reused {
			t.Errorf("answer %d: the connection was used before: %v", i, got.Reused)
		}
		wakes := func() (low int) {
			raw, err := got.Conn.(*tls.Conn).NetConn().(syscall.Conn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			if err := raw.Control(func(fd uintptr) { low, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT) }); err != nil {
				t.Fatal(err)
			}
			return low
		}
		all := make([]byte, len(data))
		if _, err := io.ReadFull(body, all[:len(data)/4]); err != nil {
			t.Fatal(err)
		}
		if low := wakes(); low < 16<<10 {
			t.Errorf("answer %d: its reader is woken up for %d bytes", i, low)
		}
		rest <- struct{}{}
		if _, err := io.ReadFull(body, all[len(data)/4:]); err != nil || !bytes.Equal(all, data) {
			t.Errorf("answer %d: %v", i, err)
		}
		if n, err := body.Read(all); n != 0 || err != io.EOF {
			t.Errorf("answer %d: %d bytes more, %v", i, n, err)
		}
		if low := wakes(); low != 1 {
			t.Errorf("answer %d: whoever reads after it is woken up for %d bytes", i, low)
		}
		body.Close()
	}
}
