package fastrpc

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// call is a request of this node that may be answered by a packet.
type call struct {
	from     vicinity.ID // which it is for, and the answer has to be from
	open     cipher.AEAD
	answered chan answer // holds one
	over     bool        // it has its answer, or was given up
}

type dialingKey struct{}

// Dialing is called by what Config.Over is, when it begins to make a connection for the request
// whose context is given.
func Dialing(ctx context.Context) {
	if f, ok := ctx.Value(dialingKey{}).(func()); ok {
		f()
	}
}

// RoundTrip implements http.RoundTripper: the node that the request is for is its URL's host.
func (m *Messenger) RoundTrip(r *http.Request) (*http.Response, error) {
	to := vicinity.ID(r.URL.Host)
	m.mu.Lock()
	key := m.theirs.find(time.Now(), to)
	m.mu.Unlock()
	if key == nil || r.Method != http.MethodPost || r.URL.RawQuery != "" || r.GetBody == nil || r.ContentLength > MaxBody || !m.cfg.Early(r.URL.Path) {
		return m.cfg.Over.RoundTrip(r)
	}
	var n number
	_, _ = rand.Read(n[:])
	c := &call{from: to, answered: make(chan answer, 1)}
	var once sync.Once
	ctx := context.WithValue(context.WithoutCancel(r.Context()), dialingKey{}, func() {
		once.Do(func() { m.send(r, key, n, c) })
	})
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(m.ctx, cancel)
	over := r.Clone(ctx)
	over.Header.Set(Header, hex.EncodeToString(n[:]))
	defer m.forget(n, c)

	type result struct {
		*http.Response
		error
	}
	results, left := make(chan result), make(chan struct{})
	defer close(left)
	if !m.begin(func() {
		defer stop()
		resp, err := m.cfg.Over.RoundTrip(over)
		select {
		case results <- result{resp, err}:
		case <-left:
			if err == nil {
				resp.Body.Close()
			}
			cancel()
		}
	}) {
		cancel()
		return m.cfg.Over.RoundTrip(r)
	}
	select {
	case res := <-results:
		if res.error != nil {
			cancel()
			select {
			case a := <-c.answered:
				return a.response(r), nil
			default:
				return nil, res.error
			}
		}
		res.Body = canceling{res.Body, cancel}
		return res.Response, nil
	case a := <-c.answered: // the connection is still wanted, by what comes next
		m.counts.answered.Add(1)
		time.AfterFunc(lasts, cancel)
		return a.response(r), nil
	case <-r.Context().Done():
		cancel()
		return nil, context.Cause(r.Context())
	}
}

// canceling ends a request when its answer has been read.
type canceling struct {
	io.ReadCloser
	cancel func()
}

func (c canceling) Close() error {
	err := c.ReadCloser.Close()
	c.cancel()
	return err
}

// send sends a request as a packet.
func (m *Messenger) send(r *http.Request, key []byte, n number, c *call) {
	own := m.Key()
	body, err := r.GetBody()
	if err != nil || own == nil {
		return
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil || len(b) > MaxBody {
		return
	}
	msg, open, err := seal(m.cfg.Self, c.from, key, n, request{Path: r.URL.Path, Body: b, Key: own})
	if err != nil {
		return
	}
	m.mu.Lock()
	wanted := !c.over && !m.stopped
	if wanted {
		c.open = open
		m.calls[n] = c
	}
	m.mu.Unlock()
	if !wanted {
		return
	}
	m.counts.sent.Add(1)
	m.cfg.Send(c.from, append(append([]byte{kindRequest}, m.cfg.Sign(domain, msg)...), msg...))
}

// forget is called when a request has its answer, or is given up.
func (m *Messenger) forget(n number, c *call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.over = true
	delete(m.calls, n)
}

// answered hands the answer of a request to who waits for it.
func (m *Messenger) answered(from vicinity.ID, b []byte) error {
	var n number
	if copy(n[:], b) < len(n) {
		return codec.ErrMalformed
	}
	m.mu.Lock()
	c := m.calls[n]
	m.mu.Unlock()
	if c == nil { // the connection was faster
		return nil
	}
	if c.from != from {
		return errForged
	}
	a, err := openAnswer(c.open, n, b[len(n):])
	if err != nil {
		return errors.Join(errForged, err)
	}
	select {
	case c.answered <- a:
	default: // it has come twice
	}
	return nil
}
