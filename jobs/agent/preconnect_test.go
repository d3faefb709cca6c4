package agent

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/peer"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestConnect(t *testing.T) {
	asked := ""
	client := &peer.Client{HTTP: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		asked = r.URL.String()
		return nil, errors.New("no route to host")
	})}}
	if connect(t.Context(), client, jobtest.Node(3)); asked != "https://"+string(jobtest.Node(3))+peer.PathClock {
		t.Errorf("asks %s", asked)
	}
}

func TestConnectionsAheadAreMadeOnce(t *testing.T) {
	a, now := preconnects{}, jobtest.Start
	for _, c := range []struct {
		node  int
		after time.Duration
		due   bool
	}{{1, 0, true}, {1, time.Second, false}, {2, 0, true}, {1, connectionLasts, true}, {1, 0, false}} {
		now = now.Add(c.after)
		if got := a.due(now, jobtest.Node(c.node)); got != c.due {
			t.Errorf("node %d after %v more: %v", c.node, c.after, got)
		}
	}
	for n := range maxPreconnects {
		a.due(now, jobtest.Node(n))
	}
	if len(a) != maxPreconnects || a.due(now, jobtest.Node(maxPreconnects+1)) {
		t.Errorf("%d are kept", len(a))
	}
	if now = now.Add(connectionLasts); !a.due(now, jobtest.Node(maxPreconnects+1)) || len(a) != 1 {
		t.Errorf("then %d are kept", len(a))
	}
}
