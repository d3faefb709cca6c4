package process

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/fdpass"
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
func dial(o order, input bool) (*net.UnixConn, error) {
	conn, err := dialSocket(o.Socket)
	if err != nil {
		return nil, err
	}
	if err := greet(conn, o, input); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func greet(conn net.Conn, o order, input bool) error {
	return writeMessage(conn, message{Kind: kindHello, Version: o.Version, Key: o.Key, Input: input})
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
	order order
	conn  *net.UnixConn
	input *input // nil unless the worker reads standard input
}

// pair makes the connections of a worker that is to be started, and returns the ends of
// its supervisor, also with an error.
func (w *line) pair() (theirs []*os.File, err error) {
	make := func(input bool) (*net.UnixConn, error) {
		conn, end, err := fdpass.Pair()
		if err != nil {
			return nil, err
		}
		theirs = append(theirs, end)
		return conn, greet(conn, w.order, input)
	}
	w.conn, err = make(false)
	if err == nil && w.order.Spec.Stdin {
		w.input = &input{}
		w.input.conn, err = make(true)
	}
	return theirs, err
}

// connect opens what the worker needs of its supervisor: the way of messages, or that of
// its standard input.
func (w *line) connect() (err error) {
	w.conn, err = dial(w.order, false)
	return err
}

func (w *line) connectInput() error {
	conn, err := dial(w.order, true)
	if err == nil {
		w.input = &input{conn: conn}
	}
	return err
}

func (w *line) disconnect() {
	if w.conn != nil {
		_ = w.conn.Close()
	}
	if w.input != nil && w.input.conn != nil {
		_ = w.input.conn.Close()
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
