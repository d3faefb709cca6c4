package workerapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zorilla/jobs/session/sessiontest"
)

// echo says with whom a session is wanted, and then what comes, to a zero byte.
func echo(_ context.Context, a Ask, in io.Reader, out io.Writer) error {
	if a.Host == "nobody" {
		return errors.New("no such host")
	}
	if _, err := out.Write([]byte(a.Host)); err != nil {
		return err
	}
	said, w := io.Pipe()
	defer said.Close()
	go func() { // still reads when the session has ended, as in a node
		_, err := io.Copy(w, in)
		_ = w.CloseWithError(err) // never fails
	}()
	buf := make([]byte, 1)
	for {
		if _, err := io.ReadFull(said, buf); err != nil {
			return err
		}
		switch buf[0] {
		case 0:
			return nil
		case 1:
			return errors.New("broken")
		}
		if _, err := out.Write(buf); err != nil {
			return err
		}
	}
}

func TestDoor(t *testing.T) {
	root := filepath.Join(t.TempDir(), strings.Repeat("long", 30)) // for a socket's address
	for range 2 {                                                  // the second one in place of the first
		if err := mkdir(root); err != nil {
			t.Fatal(err)
		}
		d, err := Open(root, Handlers{Enter: echo})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, Dir, Name)
		var out bytes.Buffer
		if err := Enter(t.Context(), path, Ask{Host: "there"}, strings.NewReader("in\x00"), &out); err != nil || out.String() != "therein" {
			t.Errorf("%q, %v", out.String(), err)
		}
		enter := func(in io.Reader, out io.Writer) error { return Enter(t.Context(), path, Ask{Host: "there"}, in, out) }
		sessiontest.EndIsHeard(t, enter, "there")
		if err := Enter(t.Context(), path, Ask{Host: "there"}, strings.NewReader("\x01"), io.Discard); err == nil {
			t.Error("a broken session seems to be whole")
		}
		if err := Enter(t.Context(), path, Ask{Host: "nobody"}, hanging{}, io.Discard); err == nil || err.Error() != "no such host" {
			t.Errorf("refused: %v", err)
		}
		if err := Enter(t.Context(), path, Ask{Rank: -1}, hanging{}, io.Discard); err == nil {
			t.Error("a senseless rank is heard")
		}
		ctx, cancel := context.WithCancel(t.Context())
		hear, w := io.Pipe()
		done := make(chan error)
		go func() { done <- Enter(ctx, path, Ask{Host: "x"}, hanging{}, w) }()
		if _, err := io.ReadFull(hear, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
		d.Close()
		if err := Enter(t.Context(), path, Ask{}, hanging{}, io.Discard); err == nil {
			t.Error("a closed socket answers")
		}
	}
}

// What is said is for the session alone, whatever it says that it is.
func TestBodiesAreNotParsed(t *testing.T) {
	root := t.TempDir()
	d, err := Open(root, Handlers{Enter: echo})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	refused, err := net.Dial("unix", filepath.Join(root, Dir, Name))
	if err != nil {
		t.Fatal(err)
	}
	sessiontest.RefusalIsHeard(t, refused, pathEnter+"?host=nobody&rank=0", "no such host")
	conn, err := net.Dial("unix", filepath.Join(root, Dir, Name))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const request = "POST " + pathEnter + "?host=there&rank=0 HTTP/1.1\r\nHost: node\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 3\r\n\r\nin\x00"
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "therein" {
		t.Errorf("%q, %v", b, err)
	}
}

// hanging is an input that never comes.
type hanging struct{}

// Read implements io.Reader.
func (hanging) Read([]byte) (int, error) { select {} }

func mkdir(root string) error {
	if err := os.Mkdir(root, 0o700); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}
