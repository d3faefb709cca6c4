package early

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// request has a request done that has come as a packet.
func (m *Messenger) request(from vicinity.ID, b []byte) error {
	if len(b) < signatureLen {
		return codec.ErrMalformed
	}
	sig, msg := b[:signatureLen], b[signatureLen:]
	var e envelope
	if err := codec.Unmarshal(msg, &e); err != nil {
		return err
	}
	var n number
	if len(e.Number) != len(n) || len(e.Which) != len(which(make([]byte, keyLen))) {
		return codec.ErrMalformed
	}
	copy(n[:], e.Number)
	if e.To != m.cfg.Self || m.cfg.Verify(domain, from, msg, sig) != nil {
		return errForged
	}
	m.mu.Lock()
	w := m.own.find(time.Now(), e.Which)
	m.mu.Unlock()
	if w == nil || !m.cfg.Member(from) {
		m.counts.late.Add(1)
		return nil
	}
	r, closing, err := unseal(w.key, &e)
	if err != nil {
		return errors.Join(errForged, err)
	}
	if !m.cfg.Early(r.Path) {
		return codec.ErrMalformed
	}
	m.Learn(from, r.Key)
	d := m.first(w, sent{from, n})
	if d == nil {
		return nil
	}
	m.counts.received.Add(1)
	if !m.begin(func() {
		defer func() { <-m.serving }()
		a := m.serve(from, r)
		packet := closeAnswer(closing, n, a)
		if packet != nil {
			d.answer = a
			m.cfg.Send(from, packet)
		}
		close(d.ended)
	}) {
		close(d.ended)
	}
	return nil
}

// first notes that a request has come as a packet, if it has not come before and is to be done.
func (m *Messenger) first(w *window, s sent) *done {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, came := m.own.lookup(s); !came && len(w.seen) < maxSeen {
		select {
		case m.serving <- struct{}{}:
			d := &done{ended: make(chan struct{})}
			w.seen[s] = d
			return d
		default: // it is done when it comes over the connection
		}
	}
	m.counts.again.Add(1)
	return nil
}

// serve does a request.
func (m *Messenger) serve(from vicinity.ID, q request) answer {
	ctx, cancel := context.WithTimeout(m.ctx, lasts)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(m.cfg.Self)+q.Path, bytes.NewReader(q.Body))
	if err != nil {
		return answer{Status: http.StatusBadRequest, Body: []byte(err.Error())}
	}
	w := &recorder{header: http.Header{}, answer: answer{Status: http.StatusOK}}
	m.cfg.Serve(w, r, from)
	return w.answer
}

// recorder is an http.ResponseWriter that keeps the answer.
type recorder struct {
	header http.Header
	answer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(code int) { w.Status = code }

func (w *recorder) Write(b []byte) (int, error) {
	if len(w.Body)+len(b) > maxWritten {
		return 0, fmt.Errorf("answer of more than %d bytes", maxWritten)
	}
	w.Body = append(w.Body, b...)
	return len(b), nil
}

// Once has a request that comes over a connection not done by h if it has come as a packet: its
// answer is that of the packet then, which is waited for. Nor is one done that comes as a packet
// later. Only one whose answer was too long for a packet is done again.
func (m *Messenger) Once(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n number
		if text := r.Header.Get(Header); len(text) != hex.EncodedLen(len(n)) {
			h.ServeHTTP(w, r)
			return
		} else if _, err := hex.Decode(n[:], []byte(text)); err != nil {
			h.ServeHTTP(w, r)
			return
		}
		from, err := m.cfg.PeerID(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		if d := m.over(sent{from, n}); d != nil {
			select {
			case <-d.ended:
			case <-r.Context().Done():
				return
			}
			if d.answer.Status > 0 {
				w.WriteHeader(d.answer.Status)
				_, _ = w.Write(d.answer.Body)
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

// over notes that a request has come over a connection, and returns what has become of it if it
// has come as a packet before.
func (m *Messenger) over(s sent) *done {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, came := m.own.lookup(s)
	if w, err := m.own.current(time.Now()); !came && err == nil && len(w.seen) < maxSeen {
		w.seen[s] = nil
	}
	return d
}
