package flow_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/node/flow"
	"zorilla/vicinity"
)

func newFlow(self vicinity.ID) *flow.Flow {
	return flow.New(flow.Config{
		Self: self, PeerID: func(r *http.Request) (vicinity.ID, error) { return vicinity.ID(r.Header.Get("From-Node")), nil },
		File: func(path string) bool { return strings.HasPrefix(path, "/file") }, Stream: func(r *http.Request) bool { return r.URL.Path == "/stream" },
	})
}

// link is the way from one node to another: it carries so many bytes a second.
type link struct {
	from    vicinity.ID
	handler http.Handler
	speed   int
}

func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("From-Node", string(l.from))
	w := httptest.NewRecorder()
	l.handler.ServeHTTP(w, r)
	resp := w.Result()
	resp.Body = &slow{resp.Body, l.speed}
	return resp, nil
}

type slow struct {
	io.ReadCloser
	speed int
}

func (s *slow) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p[:min(len(p), 10_000)])
	time.Sleep(time.Duration(n) * time.Second / time.Duration(s.speed))
	return n, err
}

// Who fetches files learns how fast they come, and who serves them is told; other streams
// and messages tell nothing of it.
func TestSpeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := newFlow("server"), newFlow("client")
		data := make([]byte, 4<<20)
		base := &http.Transport{}
		base.RegisterProtocol("zorilla", &link{"client", server.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(data) }), false), 3e6})
		get := func(path string) {
			t.Helper()
			resp, err := (&http.Client{Transport: client.Over(base)}).Get("zorilla://server" + path)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if b, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(b, data) {
				t.Fatal(len(b), err)
			}
		}
		get("/stream")
		if s := client.From("server"); s.Rate != 0 {
			t.Errorf("a stream told %+v", s)
		}
		get("/file/1")
		if s := client.From("server"); s.Rate < 2.9e6 || s.Rate > 3.1e6 || s.Least {
			t.Errorf("the file came with %+v", s)
		}
		if s := server.To("client"); s.Rate != 0 {
			t.Errorf("nobody has told that it is %+v", s)
		}
		get("/message")
		if s := server.To("client"); s.Rate < 2.9e6 || s.Rate > 3.1e6 || s.Least {
			t.Errorf("it was told %+v", s)
		}
		if server.From("client").Rate != 0 || client.To("server").Rate != 0 || server.Uplink().Stats().Sent != 2*int64(len(data)) {
			t.Error("the other direction is known, or messages count")
		}
		server.Uplink().Limit(1 << 20)
		time.Sleep(2 * time.Hour)
		get("/file/2")
		get("/message")
		if s := server.To("client"); !s.Least || s.Rate == 0 {
			t.Errorf("with a limit it was told %+v", s)
		}
	})
}

// A file that is sent beside another node's says only how much there is at least.
func TestNotAlone(t *testing.T) {
	f := newFlow("server")
	alone := map[string]string{}
	gate := make(chan struct{})
	h := f.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		alone[r.URL.Path] = w.Header().Get("Zorilla-Alone")
		if r.URL.Path == "/file/slow" {
			gate <- struct{}{}
			<-gate
		}
	}), true)
	ask := func(from, path string) {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("From-Node", from)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	done := make(chan struct{})
	go func() { ask("a", "/file/slow"); close(done) }()
	<-gate
	ask("b", "/file/beside")
	ask("a", "/file/same")
	gate <- struct{}{}
	<-done
	ask("b", "/file/after")
	ask("b", "/message")
	for path, want := range map[string]string{"/file/slow": "1", "/file/beside": "", "/file/same": "1", "/file/after": "1", "/message": ""} {
		if alone[path] != want {
			t.Errorf("%s: %q", path, alone[path])
		}
	}
}
