package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"zorilla/jobs"
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
