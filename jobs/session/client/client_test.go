package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"zorilla/jobs/session"
)

// serve is a worker's side that a test writes.
func serve(f func(r *session.Reader, w *session.Writer) error) func(context.Context, io.Reader, io.Writer) error {
	return func(ctx context.Context, in io.Reader, out io.Writer) error {
		r, w := session.NewReader(in), session.NewWriter(out)
		if _, err := session.ReadStart(r); err != nil {
			return err
		}
		if err := w.Write(session.KindBegan, nil); err != nil {
			return err
		}
		done := make(chan error, 1)
		go func() { done <- f(r, w) }()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestRun(t *testing.T) {
	input := strings.Repeat("0123456789", 200_000) // several windows
	var out, errs bytes.Buffer
	s := &Session{
		Start: session.Start{Args: []string{"x"}}, Stdin: strings.NewReader(input), Stdout: &out, Stderr: &errs,
		Open: serve(func(r *session.Reader, w *session.Writer) error {
			room := session.Window
			for {
				kind, data, err := r.Next()
				switch {
				case err != nil:
					return err
				case kind == session.KindClose:
					return errors.Join(w.Write(session.KindErrors, []byte("bad")), w.Exit(session.Exit{Code: 7}))
				}
				if room -= len(data); room < 0 {
					return errors.New("more than there is room for")
				}
				if err := w.Write(session.KindOutput, data); err != nil {
					return err
				}
				if room == 0 || len(data) < session.MaxData {
					if err := w.Taken(session.Window - room); err != nil {
						return err
					}
					room = session.Window
				}
			}
		}),
	}
	exit, err := s.Run(t.Context())
	if err != nil || exit.Code != 7 || out.String() != input || errs.String() != "bad" {
		t.Errorf("%+v, %v, %d bytes, %q", exit, err, out.Len(), errs.String())
	}
}

func TestSignals(t *testing.T) {
	signals := make(chan os.Signal, 2)
	heard := make(chan int, 2)
	s := &Session{
		Start: session.Start{Args: []string{"x"}}, Stdout: io.Discard, Stderr: io.Discard, Signals: signals,
		Open: serve(func(r *session.Reader, _ *session.Writer) error {
			for {
				kind, data, err := r.Next()
				if err != nil {
					return err
				}
				if kind == session.KindSignal {
					heard <- int(data[0])
				}
			}
		}),
	}
	done := make(chan error)
	go func() {
		_, err := s.Run(t.Context())
		done <- err
	}()
	signals <- os.Interrupt
	if n := <-heard; n != int(syscall.SIGINT) {
		t.Errorf("signal %d", n)
	}
	signals <- os.Interrupt
	if err := <-done; !errors.Is(err, ErrGivenUp) {
		t.Errorf("after the second one: %v", err)
	}
}

func TestHowItBreaks(t *testing.T) {
	refused := errors.New("not running")
	for name, c := range map[string]struct {
		open func(context.Context, io.Reader, io.Writer) error
		out  io.Writer
		want error
	}{
		"refused":        {func(context.Context, io.Reader, io.Writer) error { return refused }, io.Discard, refused},
		"broken":         {serve(func(*session.Reader, *session.Writer) error { return io.ErrUnexpectedEOF }), io.Discard, ErrBroken},
		"without an end": {serve(func(*session.Reader, *session.Writer) error { return nil }), io.Discard, ErrBroken},
		"no room": {serve(func(r *session.Reader, w *session.Writer) error {
			return w.Write(session.KindOutput, []byte("x"))
		}), full{}, ErrOutput},
		"nonsense": {serve(func(r *session.Reader, w *session.Writer) error {
			return w.Write(session.KindTaken, []byte{0xff, 0xff, 0xff, 0xff})
		}), io.Discard, session.ErrMalformed},
	} {
		s := &Session{Start: session.Start{Args: []string{"x"}}, Stdout: c.out, Stderr: io.Discard, Open: c.open}
		if _, err := s.Run(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
