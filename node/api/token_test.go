package api_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

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
