package api_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/node/api"
	"zorilla/node/api/apitest"
	"zorilla/transfer"
)

func TestConformance(t *testing.T) {
	for name, serve := range map[string]func(*testing.T, *apitest.Fake) api.Service{
		"direct": func(_ *testing.T, f *apitest.Fake) api.Service { return f },
		"unix socket": func(t *testing.T, f *apitest.Fake) api.Service {
			return overSocket(t, f)
		},
		"http2": func(t *testing.T, f *apitest.Fake) api.Service {
			srv := httptest.NewUnstartedServer(api.Handler(f))
			srv.EnableHTTP2 = true
			srv.StartTLS()
			t.Cleanup(srv.Close)
			c := api.NewClient(srv.Client().Transport, srv.URL)
			t.Cleanup(c.Close)
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apitest.Suite(t, serve)
		})
	}
}

func overSocket(t *testing.T, s api.Service) *api.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "zorilla.sock")
	l, err := api.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: api.Handler(s)}
	go srv.Serve(l)
	c, err := api.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		_ = srv.Close() // a test's server has nothing to lose
	})
	return c
}

func TestNoNode(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "dead.sock"))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close() // leaves its socket behind, as a killed node does
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = tcp.Close() // nobody listens there now
	for _, address := range []string{
		filepath.Join(dir, "missing", "node.sock"),
		filepath.Join(dir, "dead.sock"),
		"http://" + tcp.Addr().String(),
	} {
		c, err := api.Dial(address)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Node(t.Context())
		want := "no node is running at " + address + ": start one with 'zorilla node', or name another with --node or --state-dir"
		if !errors.Is(err, api.ErrNoNode) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		<-c.Changes() // must not block for ever
	}
	for _, address := range []string{"", "ftp://x", "http://"} {
		if _, err := api.Dial(address); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%q: got %v, want ErrInvalid", address, err)
		}
	}
}

// What answers may be something else, such as a node's page.
func TestNoNodeButAPage(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this page wants its token", http.StatusUnauthorized)
	}))
	defer page.Close()
	c, err := api.Dial(page.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Node(t.Context())
	const want = `unavailable: what answers there is not a node (it says "401 Unauthorized"): --node wants the path of a node's socket, STATE/zorilla.sock; a page is for browsers`
	if !errors.Is(err, api.ErrUnavailable) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestListen(t *testing.T) {
	// Longer than a socket address.
	socket := filepath.Join(t.TempDir(), strings.Repeat("long/", 30), "zorilla.sock")
	l, err := api.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v, want mode 0600", info.Mode(), err)
	}
	go http.Serve(l, api.Handler(apitest.New()))
	c, err := api.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Node(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := api.Listen(socket); err == nil || !strings.Contains(err.Error(), "--state-dir") {
		t.Errorf("second node: got %v, want an error that names --state-dir", err)
	}
	_ = l.Close() // checked below
	if _, err := os.Lstat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Listen(file); err == nil {
		t.Error("a file that is no socket was replaced")
	}
}

// A member is asked for little and must not answer with much.
func TestANodeThatSaysTooMuchOfItself(t *testing.T) {
	f := apitest.New()
	f.Members[0].Links = make([]api.Link, 100_000)
	if _, err := overSocket(t, f).Node(t.Context()); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

// A stream that stops without its end frame must not pass for a whole one.
func TestBrokenStream(t *testing.T) {
	f := apitest.New()
	f.Add(apitest.Example()).Emit(jobs.Output{Stream: work.Stdout, Data: []byte("x")})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		api.Handler(f).ServeHTTP(rec, r)
		_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()-22]) // all but the end frame
	}))
	defer srv.Close()
	c := api.NewClient(srv.Client().Transport, srv.URL)
	n := 0
	err := c.Output(t.Context(), "last", api.OutputQuery{Rank: -1}, func(jobs.Output) error { n++; return nil })
	if !errors.Is(err, api.ErrUnavailable) || n != 1 {
		t.Errorf("got %d pieces and %v, want 1 and ErrUnavailable", n, err)
	}
}

type failing struct {
	*apitest.Fake
	err error
}

func (f failing) Node(context.Context) (api.NodeInfo, error) { return api.NodeInfo{}, f.err }
func (f failing) Output(_ context.Context, _ string, _ api.OutputQuery, out func(jobs.Output) error) error {
	if err := out(jobs.Output{Stream: work.Stdout, Data: []byte("x")}); err != nil {
		return err
	}
	return f.err
}

func TestErrorsKeepTheirIdentity(t *testing.T) {
	for _, kind := range []error{api.ErrNotFound, api.ErrAmbiguous, api.ErrInvalid, api.ErrUnavailable, api.ErrRefused, jobs.ErrInvalid, context.DeadlineExceeded} {
		err := errors.Join(errors.New("the thing and the way out"), kind)
		c := overSocket(t, failing{apitest.New(), err})
		_, got := c.Node(t.Context())
		if !errors.Is(got, kind) || got.Error() != err.Error() {
			t.Errorf("got %v, want %v", got, err)
		}
		got = c.Output(t.Context(), "last", api.OutputQuery{}, func(jobs.Output) error { return nil })
		if !errors.Is(got, kind) || got.Error() != err.Error() {
			t.Errorf("in a stream: got %v, want %v", got, err)
		}
	}
	c := overSocket(t, failing{apitest.New(), io.ErrNoProgress})
	if _, err := c.Node(t.Context()); err == nil || err.Error() != io.ErrNoProgress.Error() {
		t.Errorf("got %v, want the words of an error without a code", err)
	}
}

func TestHostileRequests(t *testing.T) {
	h := api.Handler(apitest.New())
	hash := transfer.HashOf([]byte("x")).String()
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/v1/jobs/..%2f..%2fetc", "", 400},
		{"GET", "/v1/jobs/" + strings.Repeat("a", 65), "", 400},
		{"GET", "/v1/jobs/a/await?since=-1", "", 400},
		{"GET", "/v1/jobs/a/output?rank=-2", "", 400},
		{"GET", "/v1/jobs/a/output?rank=99999999999", "", 400},
		{"GET", "/v1/jobs/a/output?follow=maybe", "", 400},
		{"GET", "/v1/jobs/a/output?attempt=-1", "", 400},
		{"GET", "/v1/jobs/a/output?attempt=99999999999", "", 400},
		{"GET", "/v1/jobs/a/output?attempt=1&follow=true", "", 400},
		{"GET", "/v1/jobs?all=2", "", 400},
		{"GET", "/v1/nodes?ask=maybe", "", 400},
		{"GET", "/v1/rtt", "", 400},
		{"GET", "/v1/rtt?to=", "", 400},
		{"GET", "/v1/rtt?to=a%00b", "", 400},
		{"GET", "/v1/rtt?to=%e2%80%ae", "", 400},
		{"GET", "/v1/rtt?to=" + strings.Repeat("a", 65), "", 400},
		{"GET", "/v1/rtt?to=there&from=" + strings.Repeat("a", 65), "", 400},
		{"GET", "/v1/rtt?to=there&pings=0", "", 400},
		{"GET", "/v1/rtt?to=there&pings=101", "", 400},
		{"GET", "/v1/rtt?to=there&pings=9999999999999999999", "", 400},
		{"GET", "/v1/rtt?to=there&pings=x", "", 400},
		{"POST", "/v1/rtt?to=there", "", 404},
		{"POST", "/v1/jobs", "{", 400},
		{"POST", "/v1/jobs", strings.Repeat(" ", 9<<20), 400},
		{"POST", "/v1/blobs/missing", "[" + strings.Repeat(`"",`, 20_000) + `""]`, 400},
		{"POST", "/v1/blobs/missing", `["sha256:00"]`, 400},
		{"GET", "/v1/blobs/md5:00", "", 400},
		{"PUT", "/v1/blobs/" + hash, "y", 400},
		{"PUT", "/v1/blobs/" + hash, strings.Repeat("y", transfer.MaxBlob+1), 400},
		{"GET", "/v2/node", "", 404},
		{"DELETE", "/v1/jobs/a", "", 404},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), `"code":`) {
			t.Errorf("%s %.60s: got %d %.100s, want %d", c.method, c.path, w.Code, w.Body, c.status)
		}
	}
}

// A peer that answers nonsense is unavailable, whatever it says.
func TestHostileAnswers(t *testing.T) {
	var answer func(w http.ResponseWriter)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
	defer srv.Close()
	c := api.NewClient(srv.Client().Transport, srv.URL)
	for name, a := range map[string]func(w http.ResponseWriter){
		"not JSON":  func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") },
		"redirect":  func(w http.ResponseWriter) { w.Header().Set("Location", "/v1/node"); w.WriteHeader(302) },
		"bad error": func(w http.ResponseWriter) { w.WriteHeader(500) },
		"bad ID":    func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"id":"../../x"}`) },
	} {
		answer = a
		if _, err := c.Submit(t.Context(), jobs.Spec{}); !errors.Is(err, api.ErrUnavailable) {
			t.Errorf("%s: Submit returned %v", name, err)
		}
		if _, err := c.Measure(t.Context(), "self", "there", 1); name != "bad ID" && !errors.Is(err, api.ErrUnavailable) {
			t.Errorf("%s: Measure returned %v", name, err)
		}
		if _, err := c.Chunk(t.Context(), "", transfer.HashOf([]byte("x"))); !errors.Is(err, api.ErrUnavailable) {
			t.Errorf("%s: Chunk returned %v", name, err)
		}
		if err := c.Output(t.Context(), "last", api.OutputQuery{}, nil); !errors.Is(err, api.ErrUnavailable) {
			t.Errorf("%s: Output returned %v", name, err)
		}
	}
}

func TestCloseEndsChanges(t *testing.T) {
	c := overSocket(t, apitest.New())
	changed := c.Changes()
	c.Close()
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Fatal("Changes outlives its Client")
	}
}
