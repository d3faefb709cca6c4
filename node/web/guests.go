package web

import (
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
