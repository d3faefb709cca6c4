package api_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/session/sessiontest"
	"zorilla/node/api"
	"zorilla/node/api/apitest"
)

// The body of a session is passed on, whatever it says that it is.
func TestSessionsAreNotParsed(t *testing.T) {
	f := apitest.New()
	if _, err := f.Submit(t.Context(), jobs.Spec{Args: []string{"a"}, Min: 1, Max: 1, Slots: 1}); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/jobs/last/enter?rank=3", strings.NewReader("ab\x00"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	r.ProtoMajor = 2 // both ways at once
	w := httptest.NewRecorder()
	api.Handler(f).ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Body.String() != "3ab" {
		t.Errorf("answered %d %q", w.Code, w.Body)
	}
}

// A client hears the end of a session, also while it still says much.
func TestTheEndIsHeard(t *testing.T) {
	f := apitest.New()
	if _, err := f.Submit(t.Context(), jobs.Spec{Args: []string{"a"}, Min: 1, Max: 1, Slots: 1}); err != nil {
		t.Fatal(err)
	}
	c := overSocket(t, f)
	enter := func(in io.Reader, out io.Writer) error { return c.Enter(t.Context(), "last", 3, in, out) }
	sessiontest.EndIsHeard(t, enter, "3")
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: api.Handler(f)}
	go func() { _ = s.Serve(l) }() // until Close
	defer s.Close()
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	sessiontest.RefusalIsHeard(t, conn, "/v1/jobs/nosuch/enter?rank=0", "not found")
}

// A node that dies before it has answered ends what is said to it, also if nothing is.
func TestNodeDiesBeforeItAnswers(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.WriteFile(filepath.Join(filepath.Dir(socket), "client-token"), []byte("token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(conn)
			if _, err := http.ReadRequest(r); err == nil {
				_, _ = r.ReadByte() // of its body: the transport waits for more of that by now
			}
			_ = conn.Close()
		}
	}()
	c, err := api.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, f := range map[string]func(in io.Reader) error{
		"a session":      func(in io.Reader) error { return c.Enter(t.Context(), "last", 0, in, io.Discard) },
		"standard input": func(in io.Reader) error { return c.Stdin(t.Context(), "last", in) },
	} {
		in, say := io.Pipe()
		defer say.Close()
		go func() { _, _ = say.Write([]byte("hello")) }()
		if err := f(in); !errors.Is(err, api.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
