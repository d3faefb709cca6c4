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

// client speaks HTTP/2 with a server, over one connection.
func (m member) client(t *testing.T, srv *httptest.Server) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	tr := &http.Transport{Protocols: protocols, ForceAttemptHTTP2: true, DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&tls.Dialer{Config: m.ClientTLS("", "h2")}).DialContext(ctx, "tcp", srv.Listener.Addr().String())
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// A member that begins hundreds of large messages and does not end them costs a node no more than
// the member's portion, and no other member its answers.
func TestBegunMessagesOfOneMember(t *testing.T) {
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
	srv := httptest.NewUnstartedServer(nil)
	srv.Config, srv.TLS, srv.EnableHTTP2 = server(h, zerolog.Nop()), self.ServerTLS("h2"), true
	srv.StartTLS()
	defer srv.Close()
	post := func(ctx context.Context, c *http.Client, body io.Reader, size int64) string {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/v1/peer/report", body)
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
	memory := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := memory()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	large := make([]byte, perMember.Body-1)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range 3 {
		c := evil.client(t, srv)
		for i := range 100 {
			size := perMember.Body
			if i%2 == 0 {
				size = -1 // it does not say
			}
			r, w := io.Pipe()
			go func() { _, _ = w.Write(large) }() // until the request ends
			wg.Go(func() { post(ctx, c, r, size) })
		}
	}
	held := func() (n int64) {
		for _, c := range []*http.Client{good.client(t, srv), good.client(t, srv)} {
			if got := post(t.Context(), c, strings.NewReader(strings.Repeat("x", 1<<20)), 1<<20); got != "read" {
				t.Errorf("another member was answered %q", got)
			}
		}
		return portions.Counts().Refused
	}
	for end := time.Now().Add(20 * time.Second); held() < 200; {
		if time.Now().After(end) {
			t.Fatalf("refused only %d requests", portions.Counts().Refused)
		}
	}
	if grown := memory() - before; grown > 80<<20 {
		t.Errorf("a member made the node grow by %d MiB", grown>>20)
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
