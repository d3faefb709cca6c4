package peer

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/rs/zerolog"

	"zorilla/internal/codec"
	"zorilla/internal/portion"
	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Server answers other nodes.
type Server struct {
	ID       func(*http.Request) (vicinity.ID, error) // of who asks, by its certificate
	Ready    func(context.Context) error              // waits until requests can be answered
	Counters *Counters
	Log      zerolog.Logger
}

// asker returns who asks when requests can be answered; if it does not, it has.
func (s *Server) asker(w http.ResponseWriter, r *http.Request) (from vicinity.ID, ok bool) {
	from, err := s.ID(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return "", false
	}
	if err := s.Ready(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return "", false
	}
	return from, true
}

// message is what the handlers take: a pointer to a decodable, checkable type.
type message[T any] interface {
	*T
	Check() error
}

// Handle reads a message, checks it and answers with what f returns.
func Handle[T any, P message[T]](s *Server, f func(from vicinity.ID, msg P) (any, error)) http.Handler {
	return HandleWhile(s, func(_ context.Context, from vicinity.ID, msg P) (any, error) { return f(from, msg) })
}

// HandleWhile is Handle for an f that may wait: its context ends when nobody waits for the
// answer any more.
func HandleWhile[T any, P message[T]](s *Server, f func(ctx context.Context, from vicinity.ID, msg P) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, ok := s.asker(w, r)
		if !ok {
			return
		}
		b, err := portion.Read(w, r, wire.MaxBody)
		msg := P(new(T))
		if err == nil {
			err = codec.Unmarshal(b, msg)
		}
		if err == nil {
			err = msg.Check()
		}
		if err != nil {
			if s.Counters.Malformed() == 1 {
				s.Log.Warn().Err(err).Str("from", from.Short()).Str("path", r.URL.Path).Msg("a peer message was dropped; further ones are only counted")
			}
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer, err := f(r.Context(), from, msg)
		switch {
		case errors.Is(err, jobs.ErrRefused):
			s.Counters.Refused()
			http.Error(w, err.Error(), http.StatusConflict)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case answer != nil:
			w.Write(codec.MustMarshal(answer))
		}
	})
}

// Counters count what was not accepted. The methods may be called from any goroutine;
// those that count return how many there are by then.
type Counters struct {
	mu     sync.Mutex
	counts jobs.Counts
}

// Malformed counts a message that makes no sense.
func (c *Counters) Malformed() int64 { return c.count(&c.counts.Malformed) }

// Refused counts a message that is not allowed.
func (c *Counters) Refused() int64 { return c.count(&c.counts.Refused) }

// Forged counts a packet that is not by who it seems to come from.
func (c *Counters) Forged() int64 { return c.count(&c.counts.Forged) }

func (c *Counters) count(n *int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
	return *n
}

// Counts returns the counters.
func (c *Counters) Counts() jobs.Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}
