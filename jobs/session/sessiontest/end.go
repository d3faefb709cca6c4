// Package sessiontest checks what passes sessions on.
package sessiontest

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// EndIsHeard checks that a client hears the end of a session, also while it still says much:
// enter passes in on, and to out what comes until the end, which the other side says at the
// first zero byte.
func EndIsHeard(t *testing.T, enter func(in io.Reader, out io.Writer) error, want string) {
	t.Helper()
	begun, said := make(chan struct{}), make(chan struct{})
	in := io.MultiReader(then(func() { <-begun }), strings.NewReader("\x00"), bytes.NewReader(make([]byte, 1<<20)), then(func() { close(said) }))
	out := late{begun: begun, said: said}
	if err := enter(in, &out); err != nil || out.got.String() != want {
		t.Errorf("%q, %v, want %q", out.got.String(), err, want)
	}
}

// RefusalIsHeard checks that a request for a session which is refused is answered, and that the
// client may say more all the same, as one does that has not heard the answer yet.
func RefusalIsHeard(t *testing.T, conn net.Conn, path, want string) {
	t.Helper()
	defer conn.Close()
	say := func(text string) {
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatalf("say more: %v", err)
		}
	}
	say("POST " + path + " HTTP/1.1\r\nHost: node\r\nTransfer-Encoding: chunked\r\n\r\n")
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r.Body); err != nil || r.StatusCode == http.StatusOK || !strings.Contains(string(b), want) {
		t.Errorf("%s, %q, %v: want %q", r.Status, b, err, want)
	}
	for range 1 << 10 {
		say("400\r\n" + strings.Repeat("x", 0x400) + "\r\n")
	}
	say("0\r\n\r\n")
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Errorf("at the end: %v", err)
	}
}

// late takes what it gets when all was said, or that takes too long.
type late struct {
	begun, said chan struct{}
	got         strings.Builder
}

// Write implements io.Writer.
func (l *late) Write(p []byte) (int, error) {
	close(l.begun) // there is one piece only
	select {
	case <-l.said:
	case <-time.After(3 * time.Second):
	}
	return l.got.Write(p)
}

// then is done between what is said before it and after it.
type then func()

// Read implements io.Reader.
func (f then) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}
