package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// What is not accepted is answered with what it is, and counted.
func TestRequestsThatAreNotAccepted(t *testing.T) {
	good := codec.MustMarshal(wire.Release{Job: wiretest.Job})
	for name, c := range map[string]struct {
		body    []byte
		id      error
		ready   error
		answer  error
		status  int
		dropped jobs.Counts
		reaches bool
	}{
		"good":          {body: good, status: http.StatusOK, reaches: true},
		"of a stranger": {body: good, id: errors.New("no certificate"), status: http.StatusForbidden},
		"too early":     {body: good, ready: jobs.ErrStopped, status: http.StatusServiceUnavailable},
		"malformed":     {body: good[:3], status: http.StatusBadRequest, dropped: jobs.Counts{Malformed: 1}},
		"senseless":     {body: codec.MustMarshal(wire.Release{Job: "x"}), status: http.StatusBadRequest, dropped: jobs.Counts{Malformed: 1}},
		"too long":      {body: make([]byte, wire.MaxBody+1), status: http.StatusBadRequest, dropped: jobs.Counts{Malformed: 1}},
		"not allowed":   {body: good, answer: fmt.Errorf("%w: not yours", jobs.ErrRefused), status: http.StatusConflict, dropped: jobs.Counts{Refused: 1}, reaches: true},
		"in vain":       {body: good, answer: jobs.ErrStopped, status: http.StatusServiceUnavailable, reaches: true},
	} {
		s := &Server{Counters: &Counters{}, Log: zerolog.Nop(),
			ID:    func(*http.Request) (vicinity.ID, error) { return jobtest.Node(1), c.id },
			Ready: func(context.Context) error { return c.ready },
		}
		reached := false
		h := Handle(s, func(from vicinity.ID, m *wire.Release) (any, error) {
			reached = from == jobtest.Node(1) && m.Job == wiretest.Job
			return nil, c.answer
		})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, PathRelease, bytes.NewReader(c.body)))
		if w.Code != c.status || s.Counters.Counts() != c.dropped || reached != c.reaches {
			t.Errorf("%s: answered %d %q, counted %+v, reached %v", name, w.Code, w.Body, s.Counters.Counts(), reached)
		}
	}
}

// An answer that waits does so no longer than who asked.
func TestAnswersThatNobodyWaitsFor(t *testing.T) {
	s := &Server{Counters: &Counters{}, Log: zerolog.Nop(),
		ID:    func(*http.Request) (vicinity.ID, error) { return jobtest.Node(1), nil },
		Ready: func(context.Context) error { return nil },
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := httptest.NewRecorder()
	HandleWhile(s, func(ctx context.Context, _ vicinity.ID, _ *wire.Release) (any, error) {
		cancel()
		<-ctx.Done()
		return nil, jobs.ErrStopped
	}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, PathRelease, bytes.NewReader(codec.MustMarshal(wire.Release{Job: wiretest.Job}))).WithContext(ctx))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("answered %d", w.Code)
	}
}

// toMux has the requests of a client answered here.
type toMux struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (m toMux) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	return w.Result(), nil
}

// A node of an earlier version knows nothing of Enter.
func TestEnterOfAnEarlierVersion(t *testing.T) {
	c := &Client{Sessions: &http.Client{Transport: toMux{http.NewServeMux()}}}
	err := c.Enter(t.Context(), jobtest.Node(1), Entry{Job: wiretest.Job}, strings.NewReader(""), io.Discard)
	if !errors.Is(err, jobs.ErrNotRunning) || !strings.Contains(err.Error(), "earlier version") {
		t.Errorf("%v", err)
	}
}
