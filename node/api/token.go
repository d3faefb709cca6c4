package api

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"zorilla/internal/atomicfile"
)

// tokenName is the file beside the socket that a client must be able to read.
// The socket's own mode does not keep out a worker that runs as the node's
// user: older kernels let a sandboxed process connect to any socket of its
// user, while reading this file is denied to it.
const tokenName = "client-token"

// Token returns the token for the clients of a socket, made at first use.
func Token(socket string) (string, error) {
	path := filepath.Join(filepath.Dir(socket), tokenName)
	b, err := os.ReadFile(path)
	if err == nil && len(b) >= 16 {
		return strings.TrimSpace(string(b)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("token for clients: %w", err)
	}
	token := rand.Text()
	return token, writeToken(path, token)
}

func writeToken(path, token string) error {
	if err := atomicfile.Write(path, []byte(token+"\n")); err != nil {
		return fmt.Errorf("token for clients: %w", err)
	}
	return nil
}

// KeepToken writes the token for the clients of a socket again if somebody has removed it, and reports
// whether it did.
func KeepToken(socket, token string) (again bool, err error) {
	path := filepath.Join(filepath.Dir(socket), tokenName)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, writeToken(path, token)
}

// Guard lets only requests with the token through to h.
func Guard(h http.Handler, token string) http.Handler {
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			writeError(w, fmt.Errorf("%w: only for clients that can read the node's state directory, "+
				"or have the address that 'zorilla web' prints", ErrRefused))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// withToken adds the token beside a socket to each request; it is read anew
// each time, since the node may make it only after the client has started.
type withToken struct {
	http.RoundTripper
	socket  string
	trusted *atomic.Bool // the node is a process of root's, or of this one's user, as of the last connection
}

// believed reports whether the node is to be believed as this process is.
func (t withToken) believed() bool { return t.trusted.Load() }

// RoundTrip implements http.RoundTripper.
func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := os.ReadFile(filepath.Join(filepath.Dir(t.socket), tokenName))
	if err == nil {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(b)))
	}
	return t.RoundTripper.RoundTrip(r)
}

// withBearer adds a token that is known to each request.
type withBearer struct {
	*http.Transport
	token string
}

// RoundTrip implements http.RoundTripper.
func (t withBearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+t.token)
	return t.Transport.RoundTrip(r)
}

// CloseIdleConnections lets go of connections that nobody uses.
func (t withToken) CloseIdleConnections() {
	if c, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
