// Package flow looks after what nodes send each other beside messages, files and streams:
// it bounds what is sent, and learns how fast files come.
package flow

import (
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"zorilla/internal/uplink"
	"zorilla/vicinity"
)

// What nodes tell each other of their speeds.
const (
	// speedHeader is in requests: how many bytes a second came from who is asked, as
	// measured in the last tellFor; with speedLeast before it that many at least.
	speedHeader = "Zorilla-Speed"
	speedLeast  = ">"
	tellFor     = time.Minute
	// aloneHeader is in an answer of who sends nothing else, as fast as it can.
	aloneHeader = "Zorilla-Alone"
)

// Config says what requests are about.
type Config struct {
	Self   vicinity.ID
	PeerID func(*http.Request) (vicinity.ID, error) // who asks
	File   func(path string) bool                   // it is for files
	Stream func(*http.Request) bool                 // for another stream of bytes
}

// Flow is that of one node. Its methods may be called from any goroutine.
type Flow struct {
	cfg Config
	up  *uplink.Uplink

	mu      sync.Mutex // guards what follows
	speeds  vicinity.Bandwidth
	serving map[vicinity.ID]int // requests that are answered
}

// New returns a Flow without a limit, that knows no speeds.
func New(cfg Config) *Flow {
	return &Flow{cfg: cfg, up: uplink.New(string(cfg.Self)), serving: map[vicinity.ID]int{}}
}

// Uplink is what the node sends with.
func (s *Flow) Uplink() *uplink.Uplink { return s.up }

// Serve lets h answer other nodes. Own says that h sees to the uplink itself.
func (s *Flow) Serve(h http.Handler, own bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := s.cfg.PeerID(r)
		if err != nil {
			h.ServeHTTP(w, r)
			return
		}
		s.setSpeed(id, r.Header.Get(speedHeader))
		file := s.cfg.File(r.URL.Path)
		if file {
			if s.begin(id) {
				w.Header().Set(aloneHeader, "1")
			}
			defer s.end(id)
		}
		if !own && (file || s.cfg.Stream(r)) {
			w = &paced{w, s.up.Writer(r.Context(), string(id), w)}
		}
		h.ServeHTTP(w, r)
	})
}

// setSpeed notes the speed at which a node reports to receive.
func (s *Flow) setSpeed(id vicinity.ID, speed string) {
	text, least := strings.CutPrefix(speed, speedLeast)
	if rate, err := strconv.ParseInt(text, 10, 64); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.speeds.Told(time.Now(), id, vicinity.Speed{Rate: float64(rate), Least: least})
	}
}

// begin notes a request of a node for a file. It reports whether nobody else is served, and
// nothing is limited.
func (s *Flow) begin(id vicinity.ID) (alone bool) {
	limited := s.up.Stats().Limit > 0
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving[id]++
	return len(s.serving) == 1 && !limited
}

func (s *Flow) end(id vicinity.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving[id]--; s.serving[id] == 0 {
		delete(s.serving, id)
	}
}

// paced is an http.ResponseWriter that writes as fast as is allowed.
type paced struct {
	http.ResponseWriter
	w io.Writer
}

// Write implements io.Writer.
func (p *paced) Write(b []byte) (int, error) { return p.w.Write(b) }

// Unwrap lets an http.ResponseController flush.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// From returns how fast files come from a node.
func (s *Flow) From(id vicinity.ID) vicinity.Speed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.speeds.From(time.Now(), id)
}

// To returns how fast they go to a node, as it has told.
func (s *Flow) To(id vicinity.ID) vicinity.Speed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.speeds.To(time.Now(), id)
}

// Metered is a transport that learns how fast files come, and reports who sends them.
type Metered struct {
	*http.Transport
	s *Flow
}

// Over returns a transport that asks other nodes over t.
func (s *Flow) Over(t *http.Transport) Metered { return Metered{t, s} }

// RoundTrip implements http.RoundTripper.
func (m Metered) RoundTrip(r *http.Request) (*http.Response, error) {
	id := vicinity.ID(r.URL.Hostname())
	if speed := m.s.From(id); speed.Rate > 0 && time.Since(speed.At) <= tellFor {
		r = r.Clone(r.Context())
		text := strconv.FormatInt(int64(math.Ceil(speed.Rate)), 10)
		if speed.Least {
			text = speedLeast + text
		}
		r.Header.Set(speedHeader, text)
	}
	resp, err := m.Transport.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK || !m.s.cfg.File(r.URL.Path) {
		return resp, err
	}
	resp.Body = m.s.receive(id, resp)
	return resp, nil
}

// receive counts what comes.
func (s *Flow) receive(id vicinity.ID, resp *http.Response) io.ReadCloser {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.speeds.Begin(time.Now(), id, resp.Header.Get(aloneHeader) != "")
	return &received{ReadCloser: resp.Body, s: s, id: id, end: sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.speeds.End(time.Now(), id)
	})}
}

// received is the body of an answer.
type received struct {
	io.ReadCloser
	s   *Flow
	id  vicinity.ID
	end func()
}

// Read implements io.Reader.
func (b *received) Read(p []byte) (n int, err error) {
	n, err = b.ReadCloser.Read(p)
	if n > 0 {
		b.s.mu.Lock()
		b.s.speeds.Got(time.Now(), b.id, n)
		b.s.mu.Unlock()
	}
	if err != nil {
		b.end()
	}
	return n, err
}

// Close implements io.Closer.
func (b *received) Close() error {
	b.end()
	return b.ReadCloser.Close()
}
