// Package client is the client's end of an exec session: it connects its own standard input,
// output and error, its signals and its terminal with the stream that leads to the command.
package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"zorilla/jobs/session"
)

var (
	// ErrGivenUp is the error of a session whose user did not want to wait for the end of the
	// command, which is ended.
	ErrGivenUp = errors.New("gave up")
	// ErrBroken is wrapped by the error of a session that ended before its command was known to.
	ErrBroken = errors.New("lost the command")
	// ErrOutput is wrapped by the error of a session whose output could not be written; the
	// command is ended.
	ErrOutput = errors.New("the output cannot be written")
)

// Session is a command that is to run elsewhere. Run may be called once.
type Session struct {
	// Open passes in on to where the command is to run, and what comes from there to out,
	// until the end; its error before anything has come is that of Run.
	Open           func(ctx context.Context, in io.Reader, out io.Writer) error
	Start          session.Start
	Stdin          io.Reader // nil = none
	Stdout, Stderr io.Writer
	// Signals are sent on to the command: of those that come a second time within GiveUp
	// the first one ends the session with ErrGivenUp. SIGWINCH and SIGCONT are about Terminal.
	Signals <-chan os.Signal
	// Terminal, if it is not nil, is that of the user: it is made raw, and tells the command's
	// its size.
	Terminal *os.File

	mu     sync.Mutex // guards what follows
	more   *sync.Cond
	window int
}

// GiveUp is within which time a signal that comes again ends the session.
const GiveUp = 2 * time.Second

// Run returns how the command has ended.
func (s *Session) Run(ctx context.Context) (session.Exit, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.more, s.window = sync.NewCond(&s.mu), session.Window
	restore := s.raw()
	defer restore()
	in, up := io.Pipe()
	down, out := io.Pipe()
	var opened error
	go func() {
		opened = s.Open(ctx, in, out)
		_ = in.CloseWithError(io.ErrClosedPipe)
		_ = out.CloseWithError(io.ErrUnexpectedEOF)
	}()
	w := session.NewWriter(up)
	begun := make(chan struct{})
	go func() {
		if w.Start(&s.Start) != nil {
			return
		}
		select {
		case <-begun:
			s.feed(w)
		case <-ctx.Done():
		}
	}()
	go s.steer(ctx, w, begun, cancel)
	defer context.AfterFunc(ctx, func() { _ = down.CloseWithError(context.Cause(ctx)) })()
	exit, err := s.listen(session.NewReader(down), begun)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if err == io.ErrUnexpectedEOF {
		if err = fmt.Errorf("%w: the connection broke", ErrBroken); opened != nil {
			err = fmt.Errorf("%w: %w", ErrBroken, opened)
			select {
			case <-begun:
			default:
				err = opened
			}
		}
	}
	_ = down.CloseWithError(io.ErrClosedPipe)
	return exit, err
}

// raw makes the terminal pass on all that is typed.
func (s *Session) raw() (restore func()) {
	if s.Terminal == nil {
		return func() {}
	}
	before, err := term.MakeRaw(int(s.Terminal.Fd()))
	if err != nil {
		return func() {}
	}
	return func() { _ = term.Restore(int(s.Terminal.Fd()), before) }
}

// Size returns the size of a terminal.
func Size(f *os.File) *session.Size {
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return &session.Size{}
	}
	return &session.Size{Rows: uint16(rows), Columns: uint16(columns)}
}

// listen does what the worker's side says, until the end.
func (s *Session) listen(r *session.Reader, begun chan struct{}) (session.Exit, error) {
	first := true
	for {
		kind, data, err := r.Next()
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return session.Exit{}, err
		}
		if first {
			close(begun)
			first = false
		}
		switch kind {
		case session.KindOutput:
			_, err = s.Stdout.Write(data)
		case session.KindErrors:
			_, err = s.Stderr.Write(data)
		case session.KindTaken:
			n, err := session.ParseTaken(data)
			if err != nil {
				return session.Exit{}, err
			}
			s.mu.Lock()
			s.window = min(s.window+n, session.Window)
			s.mu.Unlock()
			s.more.Broadcast()
		case session.KindExit:
			return session.ParseExit(data)
		}
		if err != nil {
			return session.Exit{}, fmt.Errorf("%w: %w", ErrOutput, err)
		}
	}
}

// feed sends standard input, no more than there is room for.
func (s *Session) feed(w *session.Writer) {
	buf := make([]byte, session.MaxData)
	for s.Stdin != nil {
		n, err := s.Stdin.Read(buf)
		for part := buf[:n]; len(part) > 0; {
			s.mu.Lock()
			for s.window == 0 {
				s.more.Wait()
			}
			m := min(len(part), s.window)
			s.window -= m
			s.mu.Unlock()
			if w.Write(session.KindInput, part[:m]) != nil {
				return
			}
			part = part[m:]
		}
		if err != nil {
			break
		}
	}
	_ = w.Write(session.KindClose, nil) // nobody is there any more
}

// steer sends signals on.
func (s *Session) steer(ctx context.Context, w *session.Writer, begun <-chan struct{}, cancel context.CancelCauseFunc) {
	last := map[os.Signal]time.Time{}
	out := make(chan syscall.Signal, 8) // writing may take a while
	defer close(out)
	go func() {
		select {
		case <-begun:
		case <-ctx.Done():
		}
		for sig := range out {
			if sig == syscall.SIGWINCH {
				_ = w.Resize(*Size(s.Terminal))
			} else {
				_ = w.Signal(int(sig))
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case got, ok := <-s.Signals:
			sig, known := got.(syscall.Signal)
			switch {
			case !ok:
				return
			case !known, sig == syscall.SIGWINCH && s.Terminal == nil, sig == syscall.SIGPIPE:
				continue
			case sig == syscall.SIGCONT:
				s.raw()
				continue
			case sig != syscall.SIGWINCH && time.Since(last[got]) < GiveUp:
				cancel(ErrGivenUp)
				return
			}
			last[got] = time.Now()
			select {
			case out <- sig:
			default:
			}
		}
	}
}
