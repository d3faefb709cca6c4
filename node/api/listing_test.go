package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/api/apitest"
)

// pieces counts what an answer is written in.
type pieces struct {
	*httptest.ResponseRecorder
	n int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.n++
	return p.ResponseRecorder.Write(b)
}

func TestListingsAreJSONWithALineForEach(t *testing.T) {
	for _, n := range []int{0, 1, 2, 500} {
		f := apitest.New()
		for i := range n {
			st := apitest.Example()
			st.ID = jobs.ID(fmt.Sprintf("%05d@zeb2a", i))
			f.Add(st)
		}
		w := &pieces{ResponseRecorder: httptest.NewRecorder()}
		api.Handler(f).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/summaries", nil))
		var list []jobs.Summary
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || list == nil || len(list) != n || bytes.Count(w.Body.Bytes(), []byte("\n")) != n+1 {
			t.Errorf("%d jobs: %d of them, %v, in %d lines", n, len(list), err, bytes.Count(w.Body.Bytes(), []byte("\n")))
		}
		if len(w.Body.Bytes()) > 100<<10 && w.n < 5 {
			t.Errorf("%d bytes came in %d pieces: a client waits for the whole", w.Body.Len(), w.n)
		}
		got, err := overSocket(t, f).Summaries(t.Context(), false)
		if err != nil || got == nil || len(got) != n {
			t.Errorf("%d jobs: the client got %d, %v", n, len(got), err)
		}
	}
}

func TestListingsThatEndTooEarlyAreErrors(t *testing.T) {
	const begin = `[{"id":"k7f3q@zeb2a"},`
	for _, c := range []struct {
		answer string
		breaks bool // the connection does
	}{{"", false}, {"null", false}, {`{"id":"k7f3q@zeb2a"}`, false}, {begin, false}, {begin + "]", false}, {begin + `{"id":3}]`, false}, {begin + `{"id":"`, true}, {"[", true}} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, c.answer)
			if c.breaks {
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		}))
		list, err := api.NewClient(srv.Client().Transport, srv.URL).Summaries(t.Context(), false)
		if !errors.Is(err, api.ErrUnavailable) || errors.Is(err, api.ErrBroken) != c.breaks || list != nil {
			t.Errorf("%q: got %v, %v", c.answer, list, err)
		}
		srv.Close()
	}
}
