package node

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/portion"
	"zorilla/node/trust"
)

// member is a node of a network, as far as its connections show.
type member struct{ *trust.Credentials }

func newMember(t *testing.T, network *trust.Network) member {
	t.Helper()
	id, err := trust.NewIdentity(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	creds, err := trust.NewCredentials(id, network)
	if err != nil {
		t.Fatal(err)
	}
	return member{creds}
}

// pipes is a listener whose connections are pipes, so that a bubble sees that they wait.
type pipes struct {
	conns chan net.Conn
	done  chan struct{} // closed by Close
	close func()
}

func newPipes() pipes {
	done := make(chan struct{})
	return pipes{make(chan net.Conn), done, sync.OnceFunc(func() { close(done) })}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) Close() error {
	p.close()
	return nil
}

// client speaks HTTP/2 with who serves p, over one connection once that is there.
func (m member) client(t *testing.T, p pipes) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	tr := &http.Transport{Protocols: protocols, ForceAttemptHTTP2: true, DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		near, far := net.Pipe()
		p.conns <- far
		c := tls.Client(near, m.ClientTLS("", "h2"))
		return c, c.HandshakeContext(ctx)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// post returns what a message of so many bytes, or of -1 that it does not say, is answered.
func post(ctx context.Context, c *http.Client, body io.Reader, size int64) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://node/v1/peer/report", body)
	if err != nil {
		return err.Error()
	}
	r.ContentLength = size
	resp, err := c.Do(r)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body) // what there is of it
	return string(b)
}

// A member that begins hundreds of large messages and does not end them costs a node no more than
// the member's portion, and no other member its answers. Time is virtual: it stands still while
// anything can be done, so that no connection is cut off for being slow.
func TestBegunMessagesOfOneMember(t *testing.T) { synctest.Test(t, testBegunMessages) }

func testBegunMessages(t *testing.T) {
	secret, err := trust.NewSecret(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	network, err := trust.NewNetwork(secret)
	if err != nil {
		t.Fatal(err)
	}
	self, evil, good := newMember(t, network), newMember(t, network), newMember(t, network)
	portions := portion.New(perMember)
	h := newPeerHandler(portions, http.NotFoundHandler())
	h.set(func(mux *http.ServeMux) {
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			if b, err := portion.Read(w, r, perMember.Body); err == nil && len(b) > 0 {
				_, _ = io.WriteString(w, "read")
			}
		})
	})
	l, srv := newPipes(), server(h, zerolog.Nop())
	srv.TLSConfig = self.ServerTLS("h2")
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = srv.ServeTLS(l, "", "") })
	defer srv.Close()
	memory := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, began := memory(), time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// answered posts a message that ends.
	answered := func(c *http.Client) {
		if got := post(ctx, c, strings.NewReader(strings.Repeat("x", 1<<20)), 1<<20); got != "read" {
			t.Errorf("a whole message was answered %q", got)
		}
	}
	large := make([]byte, perMember.Body-1)
	const connections, each = 3, 100
	var evils [connections]*http.Client
	for i := range evils {
		evils[i] = evil.client(t, l)
		answered(evils[i]) // while it may
	}
	for _, c := range evils {
		for i := range each {
			size := perMember.Body
			if i%2 == 0 {
				size = -1 // it does not say
			}
			r, w := io.Pipe()
			go func() { _, _ = w.Write(large) }() // until the request ends
			wg.Go(func() { post(ctx, c, r, size) })
		}
		synctest.Wait()
		for range 2 {
			answered(good.client(t, l))
		}
	}
	has, wait := perMember.Each/perMember.Body, perMember.Waiting/perMember.Ahead
	if got, want := portions.Counts(), (portion.Counts{Refused: connections*each - has - wait}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if grown := memory() - before; grown > 80<<20 {
		t.Errorf("a member made the node grow by %d MiB", grown>>20)
	}
	if took := time.Since(began); took != 0 {
		t.Errorf("members waited %v", took)
	}
}

// What is held in memory as a whole is bounded; what comes as a stream is not held.
func TestWhatLasts(t *testing.T) {
	for path, want := range map[string]bool{
		"POST /v1/peer/output": true, "POST /v1/peer/enter": true, "PUT /api/v1/jobs/x/stdin": true,
		"POST /v1/peer/report": false, "POST /v1/peer/grant": false, "POST /v1/peer/resize": false, "POST /v1/peer/snapshot": false,
		"POST /v1/trees/x/chunk": false, "POST /v1/peer/twin": false, "POST /api/v1/jobs/x/cancel": false, "POST /api/v1/jobs/x/stdin": false,
	} {
		method, path, _ := strings.Cut(path, " ")
		if got := lasting(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("%s %s lasts: %t, want %t", method, path, got, want)
		}
	}
	if perMember.Each < 4*perMember.Body || perMember.All < 4*perMember.Each {
		t.Errorf("portions %+v", perMember)
	}
}
