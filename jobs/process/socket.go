package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/fdpass"
	"zorilla/jobs/pmi"
	"zorilla/jobs/session"
)

// Control sockets lie in Root, where nobody but the node's user can make anything. A
// socket's address holds 107 bytes, and Root may be longer: so its directory is opened,
// and the address is below the descriptor.

// atSocket calls f with a short address for the socket of that path.
func atSocket(path string, f func(addr *net.UnixAddr) error) error {
	fd, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("directory for control sockets: %w", err)
	}
	defer unix.Close(fd)
	return f(&net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(path)), Net: "unix"})
}

// listen opens a control socket. The file belongs to the supervisor from then on.
func listen(path string) (ln *net.UnixListener, err error) {
	err = atSocket(path, func(addr *net.UnixAddr) error {
		ln, err = net.ListenUnix("unix", addr)
		return err
	})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false)
	return ln, nil
}

// dialSocket connects to the supervisor that serves a socket.
func dialSocket(path string) (conn *net.UnixConn, err error) {
	err = atSocket(path, func(addr *net.UnixAddr) error {
		conn, err = net.DialUnix("unix", nil, addr)
		return err
	})
	return conn, err
}

// dial connects to a supervisor and says hello.
func dial(t terms, what message) (*net.UnixConn, error) {
	conn, err := dialSocket(t.Socket)
	if err != nil {
		return nil, err
	}
	if err := greet(conn, t, what); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// What a connection is for; the zero message is for messages.
var (
	forInput    = message{Input: true}
	forBarriers = message{Barriers: true}
)

func greet(conn net.Conn, t terms, what message) error {
	what.Kind, what.Version, what.Key = kindHello, t.Version, t.Key
	return writeMessage(conn, what)
}

// hello reads the first message of a connection, which is closed if there is none.
func hello(conn net.Conn) (message, error) {
	_ = conn.SetReadDeadline(time.Now().Add(helloWithin))
	m, err := readMessage(conn)
	if err != nil {
		_ = conn.Close()
		return m, err
	}
	return m, conn.SetReadDeadline(time.Time{})
}

// line is what leads from a node to the supervisor of a worker.
type line struct {
	spec  Spec
	conn  *net.UnixConn
	input *input    // nil unless the worker reads standard input
	link  *pmi.Link // nil unless it meets others at barriers
}

// pair makes the connections of a worker that is to be started, and returns the ends of
// its supervisor, also with an error.
func (w *line) pair() (theirs []*os.File, err error) {
	make := func(what message) (*net.UnixConn, error) {
		conn, end, err := fdpass.Pair()
		if err != nil {
			return nil, err
		}
		theirs = append(theirs, end)
		return conn, greet(conn, w.spec.terms, what)
	}
	w.conn, err = make(message{})
	if err == nil && w.spec.Stdin {
		w.input = &input{}
		w.input.conn, err = make(forInput)
	}
	if err == nil && w.spec.PMI != nil {
		var conn *net.UnixConn
		if conn, err = make(forBarriers); conn != nil {
			w.link = pmi.NewLink(conn)
		}
	}
	return theirs, err
}

// connect opens what the worker needs of its supervisor: the way of messages, or that of
// its standard input.
func (w *line) connect() (err error) {
	w.conn, err = dial(w.spec.terms, message{})
	return err
}

func (w *line) connectInput() error {
	conn, err := dial(w.spec.terms, forInput)
	if err == nil {
		w.input = &input{conn: conn}
	}
	return err
}

func (w *line) connectBarriers() error {
	conn, err := dial(w.spec.terms, forBarriers)
	if err == nil {
		w.link = pmi.NewLink(conn)
	}
	return err
}

// Barriers implements Worker.
func (w *line) Barriers() *pmi.Link { return w.link }

func (w *line) disconnect() {
	if w.conn != nil {
		_ = w.conn.Close()
	}
	if w.input != nil && w.input.conn != nil {
		_ = w.input.conn.Close()
	}
	if w.link != nil {
		_ = w.link.Close()
	}
}

// RemoveOldSockets removes the empty directories that earlier versions made for
// their sockets where others could have made them first.
func RemoveOldSockets() {
	name := fmt.Sprintf("zorilla-%d", os.Geteuid())
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
		if filepath.IsAbs(dir) {
			_ = unix.Rmdir(filepath.Join(dir, name)) // not if a worker of before has its socket there
		}
	}
}

// Enter implements Worker.
func (w *line) Enter(ctx context.Context, start *session.Start) (io.ReadWriteCloser, error) {
	if err := start.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotEntered, err)
	}
	for end := time.Now().Add(helloWithin); ; {
		conn, err := w.enter(ctx, start)
		if !errors.Is(err, errUnknown) || !time.Now().Before(end) {
			return conn, err
		}
		select { // its supervisor may be about to hear of the worker
		case <-time.After(enterEvery):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// enterEvery is how often a supervisor is asked that does not know the worker.
const enterEvery = 20 * time.Millisecond

var errUnknown = errors.New("its supervisor does not know the worker")

func (w *line) enter(ctx context.Context, start *session.Start) (io.ReadWriteCloser, error) {
	conn, err := dialSocket(w.spec.terms.Socket)
	if err != nil {
		return nil, fmt.Errorf("%w: the worker has ended", ErrNotEntered)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	err = writeMessage(conn, message{Kind: kindHello, Version: also, Key: w.spec.terms.Key, Also: true})
	if err == nil {
		err = session.NewWriter(conn).Start(start)
	}
	// What it says counts, also if it did not want to hear all.
	m, readErr := readMessage(conn)
	switch err = cmp.Or(readErr, err); {
	case !stop():
		err = ctx.Err()
	case readErr == nil && m.Kind == kindProgress:
		return conn, nil
	case readErr == nil && strings.HasPrefix(m.Text, "protocol "):
		err = errors.New("the worker was started by an earlier version of Zorilla, which runs no more than its command")
	case readErr == nil && m.Text == wrongKey:
		err = errUnknown
	case readErr == nil:
		err = errors.New(m.Text)
	default:
		err = fmt.Errorf("the worker has ended (%w)", err)
	}
	_ = conn.Close()
	return nil, fmt.Errorf("%w: %w", ErrNotEntered, err)
}
