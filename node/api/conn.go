package api

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptrace"
	"sync"
)

// toldConn is a connection that reports when it is closed.
type toldConn struct {
	net.Conn
	once sync.Once
	gone chan struct{}
}

// Close implements net.Conn.
func (c *toldConn) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}

// ending closes the body of a request that is about to be sent when its connection is lost,
// until stop is called: a transport would wait for ever for the Read of a body whose other end
// has nothing to say.
func ending(ctx context.Context, body *io.PipeReader) (_ context.Context, stop func()) {
	answered := make(chan struct{})
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		conn := i.Conn
		if over, ok := conn.(*tls.Conn); ok {
			conn = over.NetConn()
		}
		if c, ok := conn.(*toldConn); ok {
			go func() {
				select {
				case <-c.gone:
					_ = body.CloseWithError(io.ErrUnexpectedEOF) // never fails
				case <-answered:
				}
			}()
		}
	}}
	return httptrace.WithClientTrace(ctx, trace), func() { close(answered) }
}
