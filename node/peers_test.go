package node

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs/agent"
	"zorilla/vicinity"
)

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Messages of a node to itself take no connection, and come from the node; all else does.
func TestMessagesToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		self, other := vicinity.ID("z"+strings.Repeat("a", 26)), vicinity.ID("z"+strings.Repeat("b", 26))
		elsewhere := errors.New("elsewhere")
		client := &http.Client{Transport: &loopback{
			RoundTripper: transport(func(*http.Request) (*http.Response, error) { return nil, elsewhere }), self: self,
			handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				from, err := peerID(r)
				b, _ := io.ReadAll(r.Body)
				if err != nil || from != self {
					t.Errorf("the message is from %v, %v", from, err)
				}
				if string(b) == "slow" {
					time.Sleep(time.Hour)
				}
				w.WriteHeader(http.StatusConflict)
				_, _ = io.WriteString(w, "heard "+string(b))
			}),
		}}
		post := func(ctx context.Context, to vicinity.ID, path, body string) (*http.Response, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, peerURL(to)+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			return client.Do(req)
		}
		resp, err := post(t.Context(), self, agent.PeerPrefix+"report", "this")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "heard this" || resp.Status != "409 Conflict" {
			t.Errorf("answered %s, %q, %v", resp.Status, b, err)
		}
		for _, c := range []struct {
			to   vicinity.ID
			path string
		}{{other, agent.PeerPrefix + "report"}, {self, agent.PeerPrefix + "output"}, {self, agent.PeerPrefix + "enter"}, {self, "/api/v1/node"}} {
			if _, err := post(t.Context(), c.to, c.path, ""); !errors.Is(err, elsewhere) {
				t.Errorf("%s of %s: got %v", c.path, c.to.Short(), err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := post(ctx, self, agent.PeerPrefix+"beat", "slow"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		time.Sleep(2 * time.Hour) // until the slow one has ended
	})
}
