package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"zorilla/node/api"
	"zorilla/node/api/apitest"
)

// TestSocketWantsTheToken: whoever reaches the socket without being able to
// read the directory around it, as a worker might, is refused.
func TestSocketWantsTheToken(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	token, err := api.Token(socket)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := api.Token(socket); err != nil || again != token {
		t.Fatalf("the token has changed: %v", err)
	}
	file := filepath.Join(filepath.Dir(socket), "client-token")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("others can read the token: %v", err)
	}
	l, err := api.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: api.Guard(api.Handler(apitest.New()), token)}
	go srv.Serve(l)
	defer srv.Close()

	good, err := api.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	if _, err := good.Node(t.Context()); err != nil {
		t.Errorf("a client that can read the token: %v", err)
	}
	bare := api.NewClient(&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}, "http://node")
	defer bare.Close()
	if _, err := bare.Node(t.Context()); !errors.Is(err, api.ErrRefused) {
		t.Errorf("a client without the token gets %v, want ErrRefused", err)
	}
	if err := os.WriteFile(file, []byte("some other token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := good.Node(t.Context()); !errors.Is(err, api.ErrRefused) {
		t.Errorf("a client with a wrong token gets %v, want ErrRefused", err)
	}
}

// Whose process asks is told of connections to the socket alone, and of no other user's.
func TestSameUser(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, api.SameUser(r.Context())) })
	socket := filepath.Join(t.TempDir(), "s")
	l, err := api.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: handler, ConnContext: api.ConnContext}
	go srv.Serve(l)
	defer srv.Close()
	overTCP := httptest.NewUnstartedServer(handler)
	overTCP.Config.ConnContext = api.ConnContext
	overTCP.Start()
	defer overTCP.Close()
	ask := func(dial func() (net.Conn, error)) string {
		t.Helper()
		c := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }}}
		defer c.CloseIdleConnections()
		resp, err := c.Get("http://node/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := ask(func() (net.Conn, error) { return net.Dial("unix", socket) }); got != "true" {
		t.Errorf("over the socket: %s", got)
	}
	if got := ask(func() (net.Conn, error) { return net.Dial("tcp", overTCP.Listener.Addr().String()) }); got != "false" {
		t.Errorf("over TCP: %s", got)
	}
	if os.Geteuid() != 0 { // who is not root cannot be another user, either
		return
	}
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	// A thread that is another user from now on, and ends with its goroutine.
	asOther := func() (conn net.Conn, err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			fd, e := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if e != nil {
				err = e
				return
			}
			f := os.NewFile(uintptr(fd), "socket")
			defer f.Close()
			if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, 1234, 1234, 1234); e != 0 {
				err = e
				return
			}
			if err = unix.Connect(fd, &unix.SockaddrUnix{Name: socket}); err == nil {
				conn, err = net.FileConn(f)
			}
		}()
		<-done
		return conn, err
	}
	for dir := filepath.Dir(socket); dir != os.TempDir() && len(dir) > 1; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := ask(asOther); got != "false" {
		t.Errorf("of another user: %s", got)
	}
}
