package pmi

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"zorilla/internal/codec"
)

// Between a server and who exchanges puts with other nodes, messages have their length in
// four bytes, big endian, and then msgpack: a [Barrier] whenever the rank waits at one, a
// [Pass] in return.

// maxMessage bounds a message: what all ranks put, with what writes it down.
const maxMessage = 2 * MaxBytes

func send(w io.Writer, v any) error {
	body, err := codec.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

func receive(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxMessage {
		return fmt.Errorf("pmi: message of %d bytes, at most %d", n, maxMessage)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	return codec.UnmarshalLarge(body, v, maxMessage)
}

// Relay tells each barrier that the rank waits at over a connection, and lets it pass what
// comes back. It returns when the connection or the rank has ended, and leaves both open
// otherwise. The barrier that the rank waits at is told again over each connection.
func (s *Server) Relay(conn io.ReadWriter) {
	passed, gone := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			var p Pass
			if receive(conn, &p) != nil || s.Pass(p) != nil {
				return
			}
			select {
			case passed <- struct{}{}:
			default:
			}
		}
	}()
	for told := 0; ; {
		select {
		case <-s.Arrived():
		case <-s.Ended():
			return
		case <-gone:
			return
		}
		b, waits := s.Waits()
		if !waits { // it has passed meanwhile, by what came over an earlier connection
			continue
		}
		if b.Number != told {
			if send(conn, b) != nil {
				return
			}
			told = b.Number
		}
		select {
		case <-passed:
		case <-s.Ended():
			return
		case <-gone:
			return
		}
	}
}

// Link is the other end of a connection that a server relays over.
type Link struct {
	conn io.ReadWriteCloser

	mu sync.Mutex // held while one passes
}

// NewLink returns the other end, which is that of conn.
func NewLink(conn io.ReadWriteCloser) *Link { return &Link{conn: conn} }

// Next waits until the rank waits at a barrier that this link has not told of. An error
// says that none will come: the rank has ended, or its server is gone.
func (l *Link) Next() (b Barrier, err error) {
	if err := receive(l.conn, &b); err != nil {
		return b, err
	}
	if b.Number < 1 || b.Number > MaxBarriers || len(b.Puts) > MaxPuts {
		return b, fmt.Errorf("%w: barrier %d with %d puts", ErrProtocol, b.Number, len(b.Puts))
	}
	return b, CheckPuts(b.Puts)
}

// CheckPuts refuses puts that no rank can have made, and more than all ranks may make.
func CheckPuts(puts []Put) error {
	for i := range puts {
		if err := puts[i].Check(); err != nil {
			return err
		}
	}
	if size := Size(puts); size > MaxBytes {
		return fmt.Errorf("%w: %d bytes of puts, at most %d", ErrProtocol, size, MaxBytes)
	}
	return nil
}

// Size is how much of MaxBytes puts take.
func Size(puts []Put) (size int) {
	for i := range puts {
		size += puts[i].size()
	}
	return size
}

// Pass lets the rank pass a barrier.
func (l *Link) Pass(p Pass) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return send(l.conn, p)
}

// Close ends the connection, and Next.
func (l *Link) Close() error { return l.conn.Close() }
