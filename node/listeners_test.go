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
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"zorilla/node/api"
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

// swept is the socket of a node, and what serves there.
func swept(t *testing.T) (d *clientSocket, log *bytes.Buffer) {
	dir := stateDir(t.TempDir())
	lock, err := dir.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lock.Close)
	token, err := api.Token(Socket(string(dir)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := api.Listen(Socket(string(dir)))
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: api.Guard(http.NotFoundHandler(), token)}
	log = &bytes.Buffer{}
	d = &clientSocket{lock: lock, token: token, log: zerolog.New(log), l: l, open: func(l net.Listener) { go srv.Serve(l) }}
	d.open(l)
	t.Cleanup(func() { srv.Close() })
	return d, log
}

// found reports whether a client finds the node, and is let in.
func (d *clientSocket) found(t *testing.T) bool {
	client, err := api.Dial(Socket(string(d.lock.dir)))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.Nodes(t.Context())
	return !errors.Is(err, api.ErrNoNode) && !errors.Is(err, api.ErrRefused)
}

// Clients find a node again whose files somebody has removed, and no other node takes its directory.
func TestDoorIsMadeAgain(t *testing.T) {
	d, log := swept(t)
	d.look()
	if log.Len() > 0 || !d.found(t) {
		t.Errorf("when nothing has happened, the node says %q, and is found: %v", log, d.found(t))
	}
	for _, name := range []string{"zorilla.sock", "client-token", "lock"} {
		if err := os.Remove(d.lock.dir.file(name)); err != nil {
			t.Fatal(err)
		}
		if name != "lock" && d.found(t) {
			t.Errorf("%s: the node is found without it", name)
		}
		d.look()
		if !d.found(t) || strings.Count(log.String(), "was removed") != 1 {
			t.Errorf("%s: the node is found: %v; it says %q", name, d.found(t), log)
		}
		if other, err := d.lock.dir.open(); err == nil {
			t.Errorf("%s: another node takes the directory", name)
			other.Close()
		}
		log.Reset()
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := d.watch(ended); err != nil {
		t.Error(err)
	}
	if other, err := d.lock.dir.open(); err == nil {
		t.Error("another node takes the directory while this one ends")
		other.Close()
	}
	d.l.Close()
	if _, err := os.Lstat(Socket(string(d.lock.dir))); err == nil {
		t.Error("the socket stays behind")
	}
}

// A node leaves alone what others have put in the place of its files, and says so once.
func TestDoorIsNotTakenFromOthers(t *testing.T) {
	d, log := swept(t)
	socket := Socket(string(d.lock.dir))
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	other, err := api.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for range 3 {
		d.look()
	}
	if !api.IsThere(other) || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "a node is running") {
		t.Errorf("the other's socket is there: %v; the node says %q", api.IsThere(other), log)
	}
	if d.l.Close(); !api.IsThere(other) {
		t.Error("a node that ends removes another's socket")
	}
	d, log = swept(t)
	if err := os.RemoveAll(string(d.lock.dir)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		d.look()
	}
	if _, err := os.Stat(string(d.lock.dir)); err == nil || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("the directory was removed, and made again: %v; the node says %q", err == nil, log)
	}
}
