package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/session/sessiontest"
	"zorilla/node/api"
	"zorilla/node/api/apitest"
)

// The body of a session is passed on, whatever it says that it is.
func TestSessionsAreNotParsed(t *testing.T) {
	f := apitest.New()
	if _, err := f.Submit(t.Context(), jobs.Spec{Args: []string{"a"}, Min: 1, Max: 1, Slots: 1}); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/jobs/last/enter?rank=3", strings.NewReader("ab\x00"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	r.ProtoMajor = 2 // both ways at once
	w := httptest.NewRecorder()
	api.Handler(f).ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Body.String() != "3ab" {
		t.Errorf("answered %d %q", w.Code, w.Body)
	}
}

// A client hears the end of a session, also while it still says much.
func TestTheEndIsHeard(t *testing.T) {
	f := apitest.New()
	if _, err := f.Submit(t.Context(), jobs.Spec{Args: []string{"a"}, Min: 1, Max: 1, Slots: 1}); err != nil {
		t.Fatal(err)
	}
	c := overSocket(t, f)
	enter := func(in io.Reader, out io.Writer) error { return c.Enter(t.Context(), "last", 3, in, out) }
	sessiontest.EndIsHeard(t, enter, "3")
}
