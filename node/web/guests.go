package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"

	"zorilla/internal/lobby"
)

// maxGuests bounds the connections of whoever has not shown the cookie: a
// browser opens six. The oldest has to go if there are more.
const maxGuests = 64

// guestKey marks the connection of a request.
type guestKey struct{}

// Listen returns the listener whose connections the page is to be served on:
// those that have not shown the cookie are few. ConnContext has to be that of
// the server.
func (h *Handler) Listen(l net.Listener) net.Listener { return guestListener{l, h.guests} }

// ConnContext notes which connection a request comes on. It is for http.Server.
func (h *Handler) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, guestKey{}, c)
}

// known says that the connection of a request belongs to the owner.
func known(r *http.Request) {
	if c, ok := r.Context().Value(guestKey{}).(*guestConn); ok {
		c.guest.Leave()
	}
}

type guestListener struct {
	net.Listener
	guests *lobby.Lobby
}

// Accept implements net.Listener.
func (l guestListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	// Everybody comes from one machine: a count for each address tells nothing.
	g := &guestConn{Conn: c}
	g.guest = l.guests.Enter(netip.Addr{}, func() { c.Close() })
	return g, nil
}

type guestConn struct {
	net.Conn
	guest *lobby.Guest
}

// Close implements net.Conn.
func (c *guestConn) Close() error {
	c.guest.Leave()
	return c.Conn.Close()
}
