package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxSocketPath is what fits into a socket address on every system we know.
const maxSocketPath = 100

// Listen makes the unix socket that Dial connects to. Only the user who owns
// the directory can reach it. A socket that a dead node left behind is
// replaced; a living one is an error. Closing the listener removes the socket.
func Listen(socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return nil, fmt.Errorf("listen for clients: %w", err)
	}
	if conn, err := dialUnix(context.Background(), socket); err == nil {
		_ = conn.Close() // it was only a knock
		return nil, fmt.Errorf("listen for clients: a node is running at %s already: give this one another --state-dir", socket)
	}
	if info, err := os.Lstat(socket); err == nil && info.Mode().Type() == fs.ModeSocket {
		if err := os.Remove(socket); err != nil {
			return nil, fmt.Errorf("listen for clients: remove the socket of an earlier node: %w", err)
		}
	}
	var l *net.UnixListener
	err := atSocket(socket, func(path string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen for clients: %w", err)
	}
	l.SetUnlinkOnClose(false) // it would remove the short name
	err = os.Chmod(socket, 0o600)
	var own fs.FileInfo
	if err == nil {
		own, err = os.Lstat(socket)
	}
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("listen for clients: %w", err)
	}
	return &socketListener{l, socket, own}, nil
}

type socketListener struct {
	net.Listener
	socket string
	own    fs.FileInfo // of the socket
}

// Close implements net.Listener.
func (l *socketListener) Close() error {
	if IsThere(l) { // else it is closed already, or the socket is another's
		_ = os.Remove(l.socket)
	}
	return l.Listener.Close()
}

// IsThere reports whether clients still find the socket of Listen: someone may have removed it, as
// those do that clean up old files.
func IsThere(l net.Listener) bool {
	s, ok := l.(*socketListener)
	if !ok {
		return true
	}
	info, err := os.Lstat(s.socket)
	return err == nil && os.SameFile(info, s.own)
}

// sameUserKey marks connections of this process's user.
type sameUserKey struct{}

// overflowUID is what the kernel says of users that the namespace of this process does not have.
const overflowUID = 65534

// ConnContext is that of http.Server for the socket of Listen: SameUser needs it.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, sameUserKey{}, peerUID(c) == os.Geteuid())
}

// peerUID returns whose process is at the other end of a connection; -1 = that is not known.
func peerUID(c net.Conn) (uid int) {
	unixConn, ok := c.(*net.UnixConn)
	if !ok {
		return -1
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return -1
	}
	uid = -1
	_ = raw.Control(func(fd uintptr) {
		who, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil && who.Uid != overflowUID {
			uid = int(who.Uid)
		}
	})
	return uid
}

// SameUser reports whether a request comes from a process of this one's user, which can do
// what this one can, over the socket of Listen.
func SameUser(ctx context.Context) bool {
	same, _ := ctx.Value(sameUserKey{}).(bool)
	return same
}

// Dial returns a Client for the node at the address: the path of a unix
// socket, or a URL such as "http://127.0.0.1:8080/?token=…", that of the node's page. It does not connect yet:
// that the node does not run shows as ErrNoNode at the first call.
func Dial(address string) (*Client, error) {
	if address == "" {
		return nil, fmt.Errorf("%w: no address of a node: want the path of a socket or a URL", ErrInvalid)
	}
	trusted := new(atomic.Bool)
	tr := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: 2 * time.Minute, ReadBufferSize: pieceSize}
	token := ""
	base := "http://node" // a unix socket needs no name, but HTTP wants one
	dial := dialUnix
	if strings.Contains(address, "://") {
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			named, _, _ := strings.Cut(address, "?") // what follows is secret
			return nil, fmt.Errorf("%w: node address %q: want the path of a socket or a URL, such as 'zorilla web' prints there", ErrInvalid, named)
		}
		token = u.Query().Get("token")
		base = strings.TrimSuffix(u.Scheme+"://"+u.Host+u.EscapedPath(), "/")
		dial = func(ctx context.Context, _ string) (net.Conn, error) {
			port := u.Port()
			if port == "" {
				port = u.Scheme
			}
			var d net.Dialer
			return d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
		}
	}
	tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := dial(ctx, address)
		if err != nil {
			return nil, explainDial(strings.Split(address, "?")[0], err)
		}
		uid := peerUID(conn)
		trusted.Store(uid == 0 || uid == os.Geteuid())
		return &toldConn{Conn: conn, gone: make(chan struct{})}, nil
	}
	if token != "" {
		return NewClient(withBearer{tr, token}, base), nil
	}
	if base != "http://node" {
		return NewClient(tr, base), nil
	}
	return NewClient(withToken{tr, address, trusted}, base), nil
}

// explainDial says what to do about a node that cannot be reached.
func explainDial(address string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w at %s: start one with 'zorilla node', or name another with --node or --state-dir", ErrNoNode, address)
	case errors.Is(err, syscall.EPERM): // a file's owner and mode refuse by EACCES
		return fmt.Errorf("%w: %w: this process is kept from sockets such as that of the node at %s", ErrRefused, fs.ErrPermission, address)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w: the node at %s belongs to another user: name yours with --node or --state-dir", ErrRefused, fs.ErrPermission, address)
	}
	return err
}

func dialUnix(ctx context.Context, socket string) (conn net.Conn, err error) {
	err = atSocket(socket, func(path string) error {
		var d net.Dialer
		conn, err = d.DialContext(ctx, "unix", path)
		return err
	})
	return conn, err
}

// atSocket calls f with a name of the socket that is short enough for a
// socket address: where the path itself is too long, one that goes through an
// open descriptor of its directory (Linux).
func atSocket(socket string, f func(path string) error) error {
	if len(socket) <= maxSocketPath {
		return f(socket)
	}
	dir, err := os.Open(filepath.Dir(socket))
	if err != nil {
		return err
	}
	defer dir.Close()
	return f(filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), filepath.Base(socket)))
}
