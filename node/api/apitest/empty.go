package apitest

import (
	"errors"
	"testing"

	"zorilla/node/api"
)

func testEmpty(t *testing.T, f *Fake, s api.Service) {
	if list, err := s.Jobs(t.Context(), false); err != nil || len(list) != 0 {
		t.Errorf("Jobs: got %v, %v, want none", list, err)
	}
	if list, err := s.Summaries(t.Context(), false); err != nil || len(list) != 0 {
		t.Errorf("Summaries: got %v, %v, want none", list, err)
	}
	f.Page = ""
	if _, err := s.Web(t.Context(), false); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("Web: got %v, want ErrUnavailable", err)
	}
}
