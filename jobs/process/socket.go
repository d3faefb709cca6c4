package process

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Control sockets lie in Root/control, where nobody but the node's user can make
// anything. A socket's address holds 107 bytes, and Root may be longer: so its
// directory is opened, and the address is below the descriptor.

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
	if err := writeMessage(conn, message{Kind: kindHello, Version: o.Version, Key: o.Key, Input: input}); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
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
