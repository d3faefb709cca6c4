package node

import (
	"bytes"
	"context"
	"errors"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func TestServersTellOnlyOfPanics(t *testing.T) {
	var out bytes.Buffer
	log := stdlog.New(serverLog{zerolog.New(&out).Level(zerolog.InfoLevel)}, "", 0)
	log.Print("timeout waiting for PING response")
	if out.Len() > 0 {
		t.Errorf("a peer that went away is logged: %s", out.String())
	}
	log.Print("http2: panic serving 10.0.0.1:5444: oops")
	if !strings.Contains(out.String(), `"level":"error"`) {
		t.Errorf("a panic is logged as %q", out.String())
	}
}

// A page where others could read along is refused, unless that is wanted, and the way out is
// named; it has an address that leads to it.
func TestPageOnlyOnLoopback(t *testing.T) {
	for address, own := range map[string]string{"127.0.0.1:0": "127.0.0.1", "localhost:0": "127.0.0.1", "127.3.2.1:0": "127.3.2.1", "none": ""} {
		l, err := bindPage(address, false)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if own != "" && !strings.HasPrefix(pageURL(l, "t"), "http://"+own+":") && !strings.HasPrefix(pageURL(l, "t"), "http://[::1]:") {
			t.Errorf("%s: %s", address, pageURL(l, "t"))
		}
		l.Close()
	}
	for _, address := range []string{"0.0.0.0:0", "[::]:0", ":0"} {
		if l, err := bindPage(address, false); err == nil {
			l.Close()
			t.Errorf("%s: nobody minds", address)
		} else if !strings.Contains(err.Error(), "--web-insecure") || !strings.Contains(err.Error(), "ssh -L") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", address, err)
		}
		l, err := bindPage(address, true)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if url := pageURL(l, "t"); !strings.HasPrefix(url, "http://127.0.0.1:") {
			t.Errorf("%s: the page is at %s", address, url)
		}
		l.Close()
	}
}

// A server whose listener somebody closes leaves it to them to say why.
func TestServersDoNotHideWhyAListenerWasClosed(t *testing.T) {
	for range 50 {
		g, why := newGroup(t.Context()), errors.New("why")
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		serve(g, server(http.NotFoundHandler(), zerolog.Nop()), l)
		g.run(func(context.Context) error {
			l.Close()
			runtime.Gosched()
			return why
		})
		<-g.ctx.Done()
		if err := g.stop(nil); err != why {
			t.Fatalf("got %v", err)
		}
	}
}

// Who sends what nobody reads does not hold up other requests of the same node.
func TestUnreadRequestsDoNotHoldUpOthers(t *testing.T) {
	const unread = 200
	begun, over := make(chan struct{}), make(chan struct{})
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = server(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/unread" {
			_, _ = io.Copy(io.Discard, r.Body) // of that size
			return
		}
		begun <- struct{}{}
		<-over
	}), zerolog.Nop())
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	client := srv.Client()
	post := func(ctx context.Context, path string, body io.Reader) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+path, body)
		if err != nil {
			return err
		}
		resp, err := client.Do(r)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	defer close(over)
	for range unread {
		go func() { _ = post(t.Context(), "/unread", endless{}) }() // it is broken off
		<-begun
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 100 {
		if err := post(ctx, "/", bytes.NewReader(make([]byte, 64<<10))); err != nil {
			t.Fatal(err)
		}
	}
}

// endless is a body without an end.
type endless struct{}

// Read implements io.Reader.
func (endless) Read(p []byte) (int, error) { return len(p), nil }
