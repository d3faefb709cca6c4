// Package server is the command's end of an exec session: it connects the stream with the
// standard input, output and error of the command.
package server

import (
	"errors"
	"io"
	"math/bits"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/session"
)

// Command is one that runs.
type Command interface {
	// Signal sends a signal to all of it.
	Signal(unix.Signal)
	// Kill ends all of it.
	Kill()
	// Done is closed when it has ended, and nothing of it is left.
	Done() <-chan struct{}
	// Exit returns how it ended, after Done.
	Exit() session.Exit
}

// Files are the ends of a command's descriptors that are not its own. A terminal is Input and
// Output, and there are no Errors.
type Files struct {
	Input, Output, Errors *os.File
}

const (
	// grace is between the signal and the end of a command that nobody wants any more.
	grace = 2 * time.Second
	// lingerFor is how long output is waited for that something which the command left may
	// still write, and handOver how long a client has to take what there is once nothing
	// of the worker is left.
	lingerFor = 200 * time.Millisecond
	handOver  = 5 * time.Second
	// signalPace is between two signals.
	signalPace = 100 * time.Millisecond
)

// Conn is the stream of a session.
type Conn interface {
	io.ReadWriteCloser
	SetWriteDeadline(time.Time) error
	CloseWrite() error
}

// Serve goes with a command to its end, and that of its output, and closes the stream and the
// files. over is closed when the worker has ended.
func Serve(conn Conn, c Command, f Files, over <-chan struct{}) {
	s := &server{w: session.NewWriter(conn), c: c, f: f, room: make(chan struct{}, 1), signal: make(chan struct{}, 1), gone: make(chan struct{})}
	defer conn.Close()
	var helpers sync.WaitGroup
	helpers.Go(s.feed)
	helpers.Go(s.relay)
	go func() {
		defer close(s.gone)
		s.obey(session.NewReader(conn))
	}()
	ended := make(chan struct{})
	defer close(ended)
	go s.guard(conn, over, ended)
	var outputs sync.WaitGroup
	for kind, r := range map[session.Kind]*os.File{session.KindOutput: f.Output, session.KindErrors: f.Errors} {
		if r != nil {
			outputs.Go(func() { s.drain(kind, r) })
		}
	}
	<-c.Done()
	s.stop()
	helpers.Wait()
	outputs.Wait()
	for _, file := range []*os.File{f.Input, f.Output, f.Errors} {
		if file != nil {
			_ = file.Close() // perhaps again
		}
	}
	if s.w.Exit(c.Exit()) == nil { // what it still sends must not break what it has to read
		_ = conn.CloseWrite()
		select {
		case <-s.gone:
		case <-time.After(handOver):
		}
	}
}

type server struct {
	w *session.Writer
	c Command
	f Files

	mu      sync.Mutex // guards what follows
	pending []byte     // input
	held    int        // bytes of it that the command has not taken, at most a window
	signals uint64     // to be sent: bit n-1 is signal n
	closed  bool       // no more comes
	stopped bool       // nobody reads it
	room    chan struct{}
	signal  chan struct{}
	gone    chan struct{} // closed when the client is
}

// guard ends a command that nobody wants any more, and a client that does not take what an
// ended worker has left.
func (s *server) guard(conn Conn, over, ended <-chan struct{}) {
	select {
	case <-s.gone: // perhaps it is there, and does not read
		_ = conn.SetWriteDeadline(time.Now().Add(grace + handOver))
		s.c.Signal(unix.SIGHUP)
		s.c.Signal(unix.SIGTERM)
		select {
		case <-time.After(grace):
			s.c.Kill()
		case <-ended:
		}
	case <-over:
		_ = conn.SetWriteDeadline(time.Now().Add(handOver))
	case <-ended:
	}
}

// obey does what the client says until it is gone.
func (s *server) obey(r *session.Reader) {
	for {
		kind, data, err := r.Next()
		if err != nil {
			return
		}
		switch kind {
		case session.KindInput:
			err = s.take(data)
		case session.KindClose:
			s.mu.Lock()
			s.closed = true
			s.mu.Unlock()
			poke(s.room)
		case session.KindSignal:
			var n int
			if n, err = session.ParseSignal(data); err == nil {
				s.mu.Lock()
				s.signals |= 1 << (n - 1)
				s.mu.Unlock()
				poke(s.signal)
			}
		case session.KindResize:
			var size session.Size
			if size, err = session.ParseSize(data); err == nil && s.f.Errors == nil {
				Resize(s.f.Output, size)
			}
		}
		if err != nil {
			return
		}
	}
}

var errTooMuch = errors.New("more input than there is room for")

func (s *server) take(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return nil
	case s.held+len(data) > session.Window:
		return errTooMuch
	}
	s.held += len(data)
	s.pending = append(s.pending, data...)
	poke(s.room)
	return nil
}

// taken makes room for as much, before the client knows of it.
func (s *server) taken(n int) error {
	s.mu.Lock()
	s.held -= n
	s.mu.Unlock()
	return s.w.Taken(n)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// relay passes signals on, at a pace: each is a search for all processes of the command, and
// the node's own requests must not wait for many. As with a process, the same one twice may
// come once.
func (s *server) relay() {
	for {
		select {
		case <-s.signal:
		case <-s.c.Done():
			return
		}
		for {
			s.mu.Lock()
			n := bits.TrailingZeros64(s.signals)
			s.signals &= s.signals - 1
			s.mu.Unlock()
			if n == 64 {
				break
			}
			s.c.Signal(unix.Signal(n + 1))
			select {
			case <-time.After(signalPace):
			case <-s.c.Done():
				return
			}
		}
	}
}

// stop makes nobody wait for a command that reads no more.
func (s *server) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	if s.f.Errors != nil { // else it is a terminal, whose output may still come
		_ = s.f.Input.Close()
	} else {
		_ = s.f.Input.SetWriteDeadline(time.Now())
	}
	poke(s.room)
}

// endOfFile is what a terminal takes for the end of a line, and where one begins for the end
// of all.
const endOfFile = 4

// feed writes input to the command as fast as that reads.
func (s *server) feed() {
	within := false // a line
	for range s.room {
		for {
			s.mu.Lock()
			part, last, stopped := s.pending, s.closed, s.stopped
			s.pending = nil
			s.mu.Unlock()
			if stopped {
				return
			}
			for len(part) > 0 {
				n, err := s.f.Input.Write(part[:min(len(part), session.MaxData)])
				if n > 0 {
					within = part[n-1] != '\n'
				}
				if part = part[n:]; s.taken(n) != nil {
					return
				}
				if errors.Is(err, syscall.EPIPE) { // it does not want more, which is no fault
					_ = s.taken(len(part))
					part = nil
				} else if err != nil {
					return
				}
			}
			s.mu.Lock()
			more := len(s.pending) > 0
			s.mu.Unlock()
			if more {
				continue
			}
			if last {
				s.end(within)
				return
			}
			break
		}
	}
}

// end tells the command that there is no more input, perhaps within a line.
func (s *server) end(within bool) {
	if s.f.Errors != nil {
		_ = s.f.Input.Close()
		return
	}
	lines, end := readsLines(s.f.Input), []byte{endOfFile}
	if within {
		end = append(end, endOfFile)
	}
	_, _ = s.f.Input.Write(end)
	s.remind(lines)
}

// look is how often a terminal without more input is looked at.
const look = 100 * time.Millisecond

// remind tells a command that there is no more input each time it begins to read characters
// instead of lines, as a shell does for its prompt: what a terminal took for the end before is
// none then. Lines reports whether it read these before the end.
func (s *server) remind(lines bool) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.c.Done():
			return
		}
		before := lines
		if lines = readsLines(s.f.Input); before && !lines {
			_, _ = s.f.Input.Write([]byte{endOfFile})
		}
	}
}

// readsLines reports whether what reads from a terminal gets lines, or it cannot be known.
func readsLines(terminal *os.File) bool {
	lines := true
	raw, err := terminal.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) {
			if t, err := unix.IoctlGetTermios(int(fd), unix.TCGETS); err == nil {
				lines = t.Lflag&unix.ICANON != 0
			}
		})
	}
	return lines
}

// pipeSize is the most that a pipe holds.
const pipeSize = 1 << 20

// drain passes output on until its end: what else may hold the descriptor is not waited for
// when the command has ended.
func (s *server) drain(kind session.Kind, r *os.File) {
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-s.c.Done():
			_ = r.SetReadDeadline(time.Now().Add(lingerFor))
		case <-stop:
		}
	}()
	buf, late := make([]byte, session.MaxData), 0
	for {
		n, err := r.Read(buf)
		if n > 0 && s.w.Write(kind, buf[:n]) != nil {
			return
		}
		if late > 0 {
			late += n
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && late < pipeSize && buffered(r) {
			late++
			_ = r.SetReadDeadline(time.Now().Add(lingerFor))
			continue
		}
		if err != nil {
			return
		}
	}
}

// buffered reports whether there is something to be read.
func buffered(f *os.File) bool {
	yes := false
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
			yes = err == nil && n > 0
		})
	}
	return yes
}

// Resize changes the size of a terminal.
func Resize(f *os.File, size session.Size) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Columns})
		})
	}
}
