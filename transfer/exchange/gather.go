package exchange

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"syscall"

	"golang.org/x/sys/unix"
)

// gathered is how many bytes of a large answer come before its reader is woken up, which else is
// for each packet: a dozen make one record of TLS. At the least rate (minRate) they take 3 s.
const gathered = 32 << 10

// gathering is the body of an answer that has a connection to itself.
type gathering struct {
	io.ReadCloser
	conn syscall.RawConn
	left int64
	low  int // bytes that the connection has before it wakes up its reader
}

// Read implements io.Reader.
func (g *gathering) Read(b []byte) (int, error) {
	// TLS and HTTP may have read up to 60 KiB of what is left; the others have yet to come.
	want := 1
	if g.left > 3*gathered {
		want = gathered
	}
	if want != g.low {
		g.low = want
		_ = g.conn.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, want) })
	}
	n, err := g.ReadCloser.Read(b)
	g.left -= int64(n)
	return n, err
}

// connOf notes the connection of the request that is made with the context.
func connOf(ctx context.Context, conn *net.Conn) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { *conn = got.Conn }})
}

// gather has the body of an answer wake its reader up seldom.
func gather(resp *http.Response, conn net.Conn) {
	if resp.ProtoMajor != 1 || resp.ContentLength <= 3*gathered {
		return
	}
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			resp.Body = &gathering{resp.Body, raw, resp.ContentLength, 1}
		}
	}
}
