// Package sessiontest checks what passes sessions on.
package sessiontest

import (
	"bytes"
	"io"
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
