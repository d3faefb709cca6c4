package fastrpc

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"runtime/debug"
	"time"

	"zorilla/internal/codec"
	"zorilla/node/trust"
	"zorilla/vicinity"
)

// request has a request done that has come as a packet.
func (m *Messenger) request(from vicinity.ID, b []byte) error {
	if len(b) < trust.SignatureSize {
		return codec.ErrMalformed
	}
	sig, msg := b[:trust.SignatureSize], b[trust.SignatureSize:]
	var e envelope
	if err := codec.Unmarshal(msg, &e); err != nil {
		return err
	}
	var n number
	if len(e.Number) != len(n) || len(e.Which) != len(which(make([]byte, keyLen))) {
		return codec.ErrMalformed
	}
	copy(n[:], e.Number)
	if !m.cfg.Member(from) {
		m.counts.late.Add(1)
		return nil
	}
	if e.To != m.cfg.Self || m.cfg.Verify(domain, from, msg, sig) != nil {
		return errForged
	}
	m.mu.Lock()
	key := m.own.find(time.Now(), e.Which)
	m.mu.Unlock()
	if key == nil {
		m.counts.late.Add(1)
		return nil
	}
	r, closing, err := unseal(key, from, &e)
	if err != nil {
		return errors.Join(errForged, err)
	}
	if !m.cfg.Early(r.Path) {
		return codec.ErrMalformed
	}
	m.mu.Lock()
	d := m.seen.packet(time.Now(), from, n)
	m.mu.Unlock()
	if d == nil {
		m.counts.left.Add(1)
		return nil
	}
	m.Learn(from, r.Key)
	m.counts.received.Add(1)
	do := func() {
		a := m.serve(from, r)
		packet := closeAnswer(closing, n, a)
		if packet != nil {
			d.answer = a
			m.cfg.Send(from, packet)
		}
		m.ended(from, d)
	}
	if !m.begin(do) {
		m.ended(from, d)
	}
	return nil
}

// ended notes that a request that came as a packet has been done.
func (m *Messenger) ended(from vicinity.ID, d *done) {
	close(d.ended)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen.ended(from)
}

// serve does a request.
func (m *Messenger) serve(from vicinity.ID, q request) (a answer) {
	defer func() {
		if err := recover(); err != nil { // as net/http does where a request comes over a connection
			m.cfg.Log.Error().Str("path", q.Path).Bytes("stack", debug.Stack()).Msgf("panic: %v", err)
			a = answer{Status: http.StatusInternalServerError}
		}
	}()
	ctx, cancel := context.WithTimeout(m.ctx, lasts)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(m.cfg.Self)+q.Path, bytes.NewReader(q.Body))
	if err != nil {
		return answer{Status: http.StatusBadRequest, Body: []byte(err.Error())}
	}
	var w Recorder
	m.cfg.Serve(&w, r, from)
	w.WriteHeader(http.StatusOK)
	return w.answer
}

// Once has a request that comes over a connection not done by h if it has come as a packet: its
// answer is that of the packet then, which is waited for. Nor is one done that comes as a packet
// later. Only one whose answer was too long for a packet is done again.
func (m *Messenger) Once(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n number
		b, err := hex.DecodeString(r.Header.Get(Header))
		if err != nil || len(b) != len(n) || r.Method != http.MethodPost || !m.cfg.Early(r.URL.Path) {
			h.ServeHTTP(w, r)
			return
		}
		copy(n[:], b)
		from, err := m.cfg.PeerID(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		m.mu.Lock()
		d := m.seen.connection(time.Now(), from, n)
		m.mu.Unlock()
		if d != nil {
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
