package apitest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"zorilla/jobs"
	"zorilla/node/api"
)

// Enter implements api.Service: it sends back what comes, after the rank, until there is a
// zero byte, which ends the session as it should, or 0xff, which breaks it.
func (f *Fake) Enter(_ context.Context, name string, rank int, in io.Reader, out io.Writer) error {
	j, err := f.Find(name)
	if err != nil {
		return err
	}
	if j.Status().State.Final() {
		return fmt.Errorf("%w: job %s has ended", jobs.ErrNotRunning, name)
	}
	if _, err := out.Write([]byte{byte('0' + rank)}); err != nil {
		return err
	}
	said, w := io.Pipe()
	defer said.Close()
	go func() { // still reads when the session has ended, as in a node
		_, err := io.Copy(w, in)
		_ = w.CloseWithError(err) // never fails
	}()
	for buf := make([]byte, 1); ; {
		if _, err := io.ReadFull(said, buf); err != nil {
			close(j.cancel) // the test waits for it
			return err
		}
		switch buf[0] {
		case 0:
			return nil
		case 0xff:
			return errors.New("broken")
		}
		if _, err := out.Write(buf); err != nil {
			return err
		}
	}
}

// testEnter says more only after it was answered: what is not passed on both ways at once
// hangs it.
func testEnter(t *testing.T, f *Fake, s api.Service) {
	j := submit(t, f, s)
	for _, c := range []struct {
		end  byte
		want error
	}{{0, nil}, {0xff, api.ErrBroken}} {
		in, say := io.Pipe()
		hear, out := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- s.Enter(t.Context(), "last", 3, in, out) }()
		for i, want := range []byte("3ab") {
			if i > 0 {
				if _, err := say.Write([]byte{want}); err != nil {
					t.Fatal(err)
				}
			}
			got := make([]byte, 1)
			if _, err := io.ReadFull(hear, got); err != nil || got[0] != want {
				t.Fatalf("got %q, %v, want %q", got, err, want)
			}
		}
		if _, err := say.Write([]byte{c.end}); err != nil {
			t.Fatal(err)
		}
		_ = say.Close() // never fails
		// The Fake itself says how it broke; through a connection that is lost.
		if err := <-done; (err == nil) != (c.want == nil) || s != api.Service(f) && !errors.Is(err, c.want) {
			t.Errorf("it ended with %v, want %v", err, c.want)
		}
	}
	if err := s.Enter(t.Context(), "zzz", 0, hanging{}, io.Discard); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("an unknown job: %v", err)
	}
	// A client that goes away is noticed.
	ctx, cancel := context.WithCancel(t.Context())
	in, say := io.Pipe()
	hear, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Enter(ctx, "last", 0, in, out) }()
	if _, err := io.ReadFull(hear, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = say.CloseWithError(context.Canceled) // a direct call reads it
	<-j.Cancelled()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	j.Update(func(s *jobs.Status) { s.State = jobs.Completed })
	if err := s.Enter(t.Context(), "last", 0, hanging{}, io.Discard); !errors.Is(err, jobs.ErrNotRunning) {
		t.Errorf("a job that has ended: %v", err)
	}
}

// hanging is an input that never comes.
type hanging struct{}

// Read implements io.Reader.
func (hanging) Read([]byte) (int, error) { select {} }
