package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// handled has a handler answer what a client asks.
type handled struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// Errors of the origin reach who asks as what they are.
func TestResizeAnswers(t *testing.T) {
	var say error
	s := &Server{Counters: &Counters{},
		ID:    func(*http.Request) (vicinity.ID, error) { return jobtest.Node(2), nil },
		Ready: func(context.Context) error { return nil },
	}
	h := ServeAsk(s, func(_ context.Context, from vicinity.ID, m *wire.Resize) (jobs.Size, error) {
		if from != jobtest.Node(2) || m.By != wiretest.RA(3, 2) || m.Workers != 4 {
			t.Errorf("%s asks %+v", from, m)
		}
		return jobs.Size{Wanted: 4, Have: 5, Min: 2, Max: 8}, say
	})
	c := &Client{HTTP: &http.Client{Transport: handled{h}}}
	m := &wire.Resize{Job: wiretest.Job, By: wiretest.RA(3, 2), Resize: jobs.Resize{Workers: 4}}
	if size, err := c.Resize(t.Context(), jobtest.Node(1), m); err != nil || size != (jobs.Size{Wanted: 4, Have: 5, Min: 2, Max: 8}) {
		t.Fatalf("%+v, %v", size, err)
	}
	for _, kind := range []error{jobs.ErrRange, jobs.ErrRefused, jobs.ErrNotRunning, jobs.ErrNotFound, jobs.ErrStopped} {
		say = fmt.Errorf("%w: why", kind)
		if _, err := c.Resize(t.Context(), jobtest.Node(1), m); !errors.Is(err, kind) || err.Error() != say.Error() {
			t.Errorf("%v became %v", say, err)
		}
	}
	c.HTTP.Transport = handled{http.NewServeMux()}
	if _, err := c.Resize(t.Context(), jobtest.Node(1), m); !errors.Is(err, jobs.ErrNotRunning) || !strings.Contains(err.Error(), "is of an earlier version, which gives no job another number of workers") {
		t.Errorf("an earlier version: %v", err)
	}
	for _, body := range [][]byte{nil, {0xff}, codec.MustMarshal(wire.Resize{Job: "x"}), make([]byte, maxAsk+1)} {
		w := httptest.NewRecorder()
		h(w, httptest.NewRequest(http.MethodPost, PathResize, bytes.NewReader(body)))
		if w.Code != http.StatusBadRequest {
			t.Errorf("%d bytes: %d", len(body), w.Code)
		}
	}
	if n := s.Counters.Counts().Malformed; n != 4 {
		t.Errorf("counted %d", n)
	}
}
