package peer

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire/wiretest"
)

// road is a transport that answers nothing.
type road string

func (r road) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New(string(r)) }

// A session that is held up must not hold up messages.
func TestSessionsGoARoadOfTheirOwn(t *testing.T) {
	c := Client{HTTP: &http.Client{Transport: road("messages")}, Sessions: &http.Client{Transport: road("sessions")}}
	err := c.Enter(t.Context(), jobtest.Node(1), Entry{Job: wiretest.Job}, strings.NewReader(""), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "sessions") {
		t.Errorf("a session went over %v", err)
	}
	if err := c.Send(t.Context(), jobtest.Node(1), PathBeat, 1, nil); err == nil || !strings.Contains(err.Error(), "messages") {
		t.Errorf("a message went over %v", err)
	}
}
