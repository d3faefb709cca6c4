package pmi

import (
	"errors"
	"io"
	"net"
	"os"

	"zorilla/internal/fdpass"
)

// Manager serves a rank that is to be started, over a socket of its own. The methods of a
// nil one do nothing: those of a worker that is no rank.
type Manager struct {
	server *Server
	conn   *net.UnixConn
	end    *os.File // the rank's
	size   int
}

// Manage makes the socket of a rank, and begins to serve it. A rank that aborts may wait to
// be ended: then aborted is called, with its code.
func Manage(p *Place, aborted func(code int)) (*Manager, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	conn, end, err := fdpass.Pair()
	if err != nil {
		return nil, err
	}
	m := &Manager{NewServer(*p, conn), conn, end, p.Size}
	go func() {
		// A rank that does not speak the protocol gets no answer, and sees the end.
		if a, ok := errors.AsType[*Aborted](m.server.Run()); ok {
			aborted(a.Code)
		}
		_ = conn.Close()
	}()
	return m, nil
}

// Files is the rank's end, which the rank is started with.
func (m *Manager) Files() []*os.File {
	if m == nil {
		return nil
	}
	return []*os.File{m.end}
}

// Started says that the rank has its end, or will have none.
func (m *Manager) Started() {
	if m != nil {
		_ = m.end.Close()
	}
}

// Relay is that of [Server].
func (m *Manager) Relay(conn io.ReadWriter) {
	if m != nil {
		m.server.Relay(conn)
	}
}

// Missed reports whether the rank, which has ended, had begun to speak and not said that
// it was done, while there are others who may wait for it.
func (m *Manager) Missed() bool { return m != nil && m.size > 1 && m.server.Unfinished() }

// Close ends the service of a rank that has ended.
func (m *Manager) Close() {
	if m != nil {
		_ = m.conn.Close()
		_ = m.end.Close()
	}
}
