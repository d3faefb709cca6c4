package pmi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// Server speaks with one rank. Its methods may be called from any goroutine.
type Server struct {
	conn io.ReadWriter

	unfinished atomic.Bool // so that nobody who asks waits for a rank that does not read

	mu      sync.Mutex // guards rank, and writing to it
	rank    *Rank
	arrived chan struct{} // closed when the rank waits at its next barrier
	ended   chan struct{} // closed when it speaks no more
	err     error         // why; nil if it has closed its end
}

// NewServer returns a server of a rank, and the rank's end of conn speaks with it.
func NewServer(p Place, conn io.ReadWriter) *Server {
	return &Server{conn: conn, rank: New(p), arrived: make(chan struct{}), ended: make(chan struct{})}
}

// Run answers the rank until it closes its end, or does not speak the protocol.
func (s *Server) Run() error {
	err := s.serve()
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	close(s.ended)
	return err
}

func (s *Server) serve() error {
	in := bufio.NewReaderSize(s.conn, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%w: a line of more than %d bytes", ErrProtocol, maxLine)
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		if err := s.answer(string(line[:len(line)-1])); err != nil {
			return err
		}
	}
}

func (s *Server) answer(line string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, err := s.rank.Line(line)
	s.unfinished.Store(s.rank.Unfinished())
	if err == nil && answer != "" {
		_, err = io.WriteString(s.conn, answer)
	}
	if _, waits := s.rank.Waits(); waits && err == nil {
		close(s.arrived)
	}
	return err
}

// Arrived is closed when the rank waits at a barrier. It is another one when it has
// passed.
func (s *Server) Arrived() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrived
}

// Ended is closed when Run has returned.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Waits returns the barrier that the rank waits at, if it does.
func (s *Server) Waits() (Barrier, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rank.Waits()
}

// Unfinished reports whether the rank has begun to speak, and not said that it is done.
func (s *Server) Unfinished() bool { return s.unfinished.Load() }

// Pass lets the rank pass the barrier that it waits at. It does nothing for another one,
// and blocks only as long as the rank does not read. An error is the end of the rank: it
// was not let pass.
func (s *Server) Pass(p Pass) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, err := s.rank.Pass(p)
	if answer == "" || err != nil {
		return err
	}
	s.arrived = make(chan struct{})
	_, err = io.WriteString(s.conn, answer)
	return err
}
