package crew

import (
	"net"
	"net/http"
	"path/filepath"
	"testing"
)

// Socket stands for a node that a rank asks: it gives the answer of the test, and passes on
// what was asked, as "POST /v1/workers?n=2&release=1". The test goes on in a directory of its
// own, and the socket is the file that it returns.
func Socket(t *testing.T, status int, answer string) (path string, asked <-chan string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "socket", Net: "unix"}) // its whole name may be too long
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // by then that may be another test's
	requests := make(chan string, 100)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r.Method + " " + r.URL.RequestURI()
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer + "\n"))
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return filepath.Join(dir, "socket"), requests
}
